//! Reads files and folders with the caller's permissions: an account's, or those of the guests' site.
//!
//! This module sends nothing. Invariant: guests only read, and hidden names do not exist for them, as over
//! HTTP.

use plimsoll_auth::Permissions;
use plimsoll_io::{FileKind, FolderListing, Io, JobOwner, Stat};
use plimsoll_operations::{Error, GUEST, Operation, Place, Shown, Transfer};
use plimsoll_store::Path;
use plimsoll_store::apart::Elsewhere;
use plimsoll_wire::ftp::listing::Rights;

use super::conversation::Conversation;
use super::limits::LISTING_ENTRIES_MAX;
use super::listing::{EntryFormatter, FolderLines, ONLY_READ};
use super::path::{NOT_FOUND, PathTarget};
use super::reply::Reply;
use super::state::Login;
use crate::opening::{FileLocation, Opened, open_error, remote_open_error};
use plimsoll_content::is_hidden;

/// A file or folder that may be read.
#[derive(Clone)]
pub(super) struct Readable {
    location: FileLocation,
    shown: Shown,
    is_site: bool,
    /// The caller's rights to its entries.
    pub(super) rights: Rights,
}

impl Readable {
    /// Returns the caller's rights to it itself: a home cannot be removed.
    pub(super) fn rights_to_itself(&self) -> Rights {
        Rights { remove: self.rights.remove && !self.location.is_root_itself(), ..self.rights }
    }
}

fn rights(may: Permissions) -> Rights {
    Rights { read: may.read, write: may.write, remove: may.delete }
}

impl Conversation<'_> {
    /// Checks that the caller may see `target`, without an operation and an audit record.
    pub(super) async fn authorise_lookup(&mut self, target: &PathTarget) -> Result<Readable, Reply> {
        match target {
            PathTarget::Sharers => Err(NOT_FOUND),
            PathTarget::Site(name) => self.readable_of_site(name),
            PathTarget::Home(place) => {
                let (operations, caller) = self.caller().await?;
                let lookup = operations.look(&caller, place).await?;
                let (location, rights) = (FileLocation::new(lookup.files, lookup.path), rights(lookup.may));
                Ok(Readable { location, shown: lookup.shown, is_site: false, rights })
            }
        }
    }

    /// As [`Conversation::authorise_lookup`], for an operation, with its record.
    pub(super) async fn authorise_read(
        &mut self,
        target: &PathTarget,
        operation: Operation,
    ) -> Result<(Readable, Transfer), Reply> {
        match target {
            PathTarget::Sharers => Err(NOT_FOUND),
            PathTarget::Site(name) => {
                let shown = Place::own(Path::parse(name).map_err(|_| NOT_FOUND)?);
                let record = self.shared.services.recorder.begin(&self.visitor(), operation, GUEST, &shown);
                match self.readable_of_site(name) {
                    Ok(readable) => Ok((readable, record)),
                    Err(refused) => {
                        record.failed("not found");
                        Err(refused)
                    }
                }
            }
            PathTarget::Home(place) => {
                let (operations, caller) = self.caller().await?;
                let reading = operations.read(&caller, place, operation).await?;
                let (location, rights) =
                    (FileLocation::new(reading.files, reading.path), rights(reading.may));
                let shown = reading.shown;
                Ok((Readable { location, shown, is_site: false, rights }, reading.transfer))
            }
        }
    }

    fn readable_of_site(&self, name: &[u8]) -> Result<Readable, Reply> {
        let site = self.shared.settings.guests.as_ref().filter(|_| matches!(self.state.login, Login::Guest));
        let site = site.filter(|_| !is_hidden(name)).ok_or(NOT_FOUND)?;
        Ok(Readable {
            location: FileLocation::Local(site.root().folder.clone(), name.to_vec()),
            shown: Shown::All,
            is_site: true,
            rights: ONLY_READ,
        })
    }

    /// Opens a file, to be read from `offset` on.
    pub(super) async fn open(&self, readable: Readable, offset: u64) -> Result<Opened, Error> {
        readable.location.open(&self.shared.io, &readable.shown, offset).await
    }

    /// Returns the remote location of a file, whose store then computes the digest.
    pub(super) fn remote_location(readable: &Readable) -> Option<(Elsewhere, Path)> {
        match &readable.location {
            FileLocation::Remote(home, path) if readable.shown == Shown::All => {
                Some((home.clone(), path.clone()))
            }
            _ => None,
        }
    }

    /// Returns the metadata of a file or folder.
    pub(super) async fn stat(&self, readable: Readable) -> Result<Stat, Error> {
        let (io, shown) = (&self.shared.io, readable.shown);
        let stat = match readable.location {
            FileLocation::Local(root, name) => {
                let lookup = io.files(move |fs| fs.stat(&fs.open_beneath(&root, &name)?));
                lookup.await.map_err(open_error)?
            }
            FileLocation::Remote(home, path) => home.stat(io, &path).await.map_err(remote_open_error)?,
        };
        match (stat.kind, shown) {
            (FileKind::Folder, _) | (FileKind::File, Shown::All) => Ok(stat),
            _ => Err(Error::NOT_FOUND),
        }
    }

    /// Returns the lines of a folder's listing, generated on a thread that may block, in turns with other
    /// accounts.
    pub(super) async fn list(&self, readable: Readable, formatter: EntryFormatter) -> Result<Vec<u8>, Error> {
        let Readable { location, shown, is_site, .. } = readable;
        let io = self.io_for_caller();
        let lines = FolderLines::new(formatter, shown, is_site);
        let listing = match location {
            FileLocation::Local(root, name) => {
                FolderListing::of_folder(root, name, LISTING_ENTRIES_MAX, lines)
            }
            FileLocation::Remote(home, path) => {
                let listed = home.list(&io, &path, LISTING_ENTRIES_MAX, None).await;
                FolderListing::of_entries(listed.map_err(remote_open_error)?, lines)
            }
        };
        io.list(listing).await.map_err(open_error)
    }

    /// Returns the engine, for work on behalf of the account, or of the guests of the client's address.
    fn io_for_caller(&self) -> Io {
        match &self.state.login {
            Login::Account(caller) => caller.io().clone(),
            _ => self.shared.io.for_owner(JobOwner::guest(&self.peer)),
        }
    }
}
