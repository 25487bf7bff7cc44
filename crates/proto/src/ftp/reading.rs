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

use super::answer::Answer;
use super::conversation::Conversation;
use super::limits::LISTING_ENTRIES_MAX;
use super::listing::{FolderLines, ONLY_READ, Telling};
use super::place::{NOT_THERE, Spot};
use super::state::Who;
use crate::http::site::is_hidden;
use crate::opening::{At, Opened, not_read, not_read_elsewhere};

/// A file or folder that may be read.
#[derive(Clone)]
pub(super) struct Readable {
    at: At,
    shown: Shown,
    is_site: bool,
    /// The caller's rights to its entries.
    pub(super) rights: Rights,
}

impl Readable {
    /// Returns the caller's rights to it itself: a home cannot be removed.
    pub(super) fn own_rights(&self) -> Rights {
        Rights { remove: self.rights.remove && !self.at.is_top(), ..self.rights }
    }
}

fn rights(may: Permissions) -> Rights {
    Rights { read: may.read, write: may.write, remove: may.delete }
}

impl Conversation<'_> {
    /// Checks that the caller may see `spot`, without an operation and an audit record.
    pub(super) async fn look(&mut self, spot: &Spot) -> Result<Readable, Answer> {
        match spot {
            Spot::Owners => Err(NOT_THERE),
            Spot::Site(name) => self.of_site(name),
            Spot::Place(place) => {
                let (operations, caller) = self.caller().await?;
                let looked = operations.look(&caller, place).await?;
                let (at, rights) = (At::new(looked.files, looked.path), rights(looked.may));
                Ok(Readable { at, shown: looked.shown, is_site: false, rights })
            }
        }
    }

    /// As [`Conversation::look`], for an operation, with its record.
    pub(super) async fn read(
        &mut self,
        spot: &Spot,
        operation: Operation,
    ) -> Result<(Readable, Transfer), Answer> {
        match spot {
            Spot::Owners => Err(NOT_THERE),
            Spot::Site(name) => {
                let shown = Place::own(Path::parse(name).map_err(|_| NOT_THERE)?);
                let record = self.shared.served.recorder.begin(&self.visitor(), operation, GUEST, &shown);
                match self.of_site(name) {
                    Ok(readable) => Ok((readable, record)),
                    Err(refused) => {
                        record.failed("not found");
                        Err(refused)
                    }
                }
            }
            Spot::Place(place) => {
                let (operations, caller) = self.caller().await?;
                let reading = operations.read(&caller, place, operation).await?;
                let (at, rights) = (At::new(reading.files, reading.path), rights(reading.may));
                let shown = reading.shown;
                Ok((Readable { at, shown, is_site: false, rights }, reading.transfer))
            }
        }
    }

    fn of_site(&self, name: &[u8]) -> Result<Readable, Answer> {
        let site = self.shared.settings.guests.as_ref().filter(|_| matches!(self.state.who, Who::Guest));
        let site = site.filter(|_| !is_hidden(name)).ok_or(NOT_THERE)?;
        Ok(Readable {
            at: At::Folder(site.root().clone(), name.to_vec()),
            shown: Shown::All,
            is_site: true,
            rights: ONLY_READ,
        })
    }

    /// Opens a file, to be read from `offset` on.
    pub(super) async fn open(&self, readable: Readable, offset: u64) -> Result<Opened, Error> {
        readable.at.open(&self.shared.io, &readable.shown, offset).await
    }

    /// Returns the remote location of a file, whose store then computes the digest.
    pub(super) fn elsewhere(readable: &Readable) -> Option<(Elsewhere, Path)> {
        match &readable.at {
            At::Elsewhere(home, path) if readable.shown == Shown::All => Some((home.clone(), path.clone())),
            _ => None,
        }
    }

    /// Returns the metadata of a file or folder.
    pub(super) async fn stat(&self, readable: Readable) -> Result<Stat, Error> {
        let (io, shown) = (&self.shared.io, readable.shown);
        let stat = match readable.at {
            At::Folder(root, name) => {
                let looked = io.files(move |fs| fs.stat(&fs.open_beneath(&root, &name)?));
                looked.await.map_err(not_read)?
            }
            At::Elsewhere(home, path) => home.stat(io, &path).await.map_err(not_read_elsewhere)?,
        };
        match (stat.kind, shown) {
            (FileKind::Folder, _) | (FileKind::File, Shown::All) => Ok(stat),
            _ => Err(Error::NOT_FOUND),
        }
    }

    /// Returns the lines of a folder's listing, generated on a thread that may block, in turns with other
    /// accounts.
    pub(super) async fn list(&self, readable: Readable, telling: Telling) -> Result<Vec<u8>, Error> {
        let Readable { at, shown, is_site, .. } = readable;
        let io = self.owned_io();
        let lines = FolderLines::new(telling, shown, is_site);
        let listing = match at {
            At::Folder(root, name) => FolderListing::of_folder(root, name, LISTING_ENTRIES_MAX, lines),
            At::Elsewhere(home, path) => {
                let listed = home.list(&io, &path, LISTING_ENTRIES_MAX, None).await;
                FolderListing::of_entries(listed.map_err(not_read_elsewhere)?, lines)
            }
        };
        io.list(listing).await.map_err(not_read)
    }

    /// Returns the engine, for work on behalf of the account, or of the guests of the client's address.
    fn owned_io(&self) -> Io {
        match &self.state.who {
            Who::Person(caller) => caller.io().clone(),
            _ => self.shared.io.for_owner(JobOwner::guest(&self.peer)),
        }
    }
}
