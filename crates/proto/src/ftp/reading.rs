//! Reads files and folders with the caller's permissions: an account's, or those of the guests' site.
//!
//! This module sends nothing. Invariant: guests only read, and hidden names do not exist for them, as over
//! HTTP.

use plimsoll_auth::Permissions;
use plimsoll_content::{OpenFile, is_hidden, open};
use plimsoll_io::{FileKind, Io, JobOwner, Stat};
use plimsoll_operations::{AuditEntry, Error, GUEST, HomePath, Operation, ReadAccess, VisibleEntries};
use plimsoll_store::{Error as StoreError, Location, Path};
use plimsoll_wire::ftp::listing::Rights;

use super::conversation::Conversation;
use super::limits::LISTING_ENTRIES_MAX;
use super::listing::{EntryFormatter, FolderLines, ONLY_READ};
use super::path::{NOT_FOUND, PathTarget};
use super::reply::Reply;
use super::state::Login;

/// A file or folder that may be read.
#[derive(Clone)]
pub(super) struct Readable {
    location: Location,
    shown: VisibleEntries,
    is_site: bool,
    /// The caller's rights to its entries.
    pub(super) rights: Rights,
}

impl Readable {
    /// Returns the caller's rights to it itself: a home cannot be removed.
    pub(super) fn rights_to_itself(&self) -> Rights {
        Rights { remove: self.rights.remove && !self.location.is_top(), ..self.rights }
    }
}

fn rights(may: Permissions) -> Rights {
    Rights { read: may.read, write: may.write, remove: may.delete }
}

impl Conversation<'_> {
    /// Checks that the caller may see `target`, without an operation and an audit entry.
    pub(super) async fn authorise_lookup(&mut self, target: &PathTarget) -> Result<Readable, Reply> {
        match target {
            PathTarget::Sharers => Err(NOT_FOUND),
            PathTarget::Site(name) => self.readable_of_site(name),
            PathTarget::Home(place) => {
                let (operations, caller) = self.caller().await?;
                let lookup = operations.look(&caller, place).await?;
                let ReadAccess { location, shown, may } = lookup;
                Ok(Readable { location, shown, is_site: false, rights: rights(may) })
            }
        }
    }

    /// As [`Conversation::authorise_lookup`], for an operation, with its audit entry.
    pub(super) async fn authorise_read(
        &mut self,
        target: &PathTarget,
        operation: Operation,
    ) -> Result<(Readable, AuditEntry), Reply> {
        match target {
            PathTarget::Sharers => Err(NOT_FOUND),
            PathTarget::Site(name) => {
                let shown = HomePath::own(Path::parse(name).map_err(|_| NOT_FOUND)?);
                let audit = self.shared.services.audit_log.begin(&self.visitor(), operation, GUEST, &shown);
                match self.readable_of_site(name) {
                    Ok(readable) => Ok((readable, audit)),
                    Err(refused) => {
                        audit.failed("not found");
                        Err(refused)
                    }
                }
            }
            PathTarget::Home(place) => {
                let (operations, caller) = self.caller().await?;
                let (access, transfer) = operations.read(&caller, place, operation).await?;
                let ReadAccess { location, shown, may } = access;
                Ok((Readable { location, shown, is_site: false, rights: rights(may) }, transfer))
            }
        }
    }

    fn readable_of_site(&self, name: &[u8]) -> Result<Readable, Reply> {
        let site = self.shared.settings.guests.as_ref().filter(|_| matches!(self.state.login, Login::Guest));
        let site = site.filter(|_| !is_hidden(name)).ok_or(NOT_FOUND)?;
        Ok(Readable {
            location: site.location(name.to_vec()),
            shown: VisibleEntries::All,
            is_site: true,
            rights: ONLY_READ,
        })
    }

    /// Opens a file, to be read from `offset` on.
    pub(super) async fn open(&self, readable: &Readable, offset: u64) -> Result<OpenFile, Error> {
        Ok(open(&self.io_for_caller(), self.location_of_file(readable).await?, offset).await?)
    }

    /// Returns the location of a file that may be read. Above shares, only folders may be seen.
    pub(super) async fn location_of_file<'r>(&self, readable: &'r Readable) -> Result<&'r Location, Error> {
        match readable.shown {
            VisibleEntries::All => Ok(&readable.location),
            VisibleEntries::Only(_) => self.stat(readable).await.and(Err(StoreError::IsFolder.into())),
        }
    }

    /// Returns the metadata of a file or folder.
    pub(super) async fn stat(&self, readable: &Readable) -> Result<Stat, Error> {
        let stat = readable.location.stat(&self.shared.io).await?;
        match (stat.kind, &readable.shown) {
            (FileKind::Folder, _) | (FileKind::File, VisibleEntries::All) => Ok(stat),
            _ => Err(Error::NOT_FOUND),
        }
    }

    /// Returns the lines of a folder's listing, generated on a thread that may block, in turns with other
    /// accounts.
    pub(super) async fn list(&self, readable: Readable, formatter: EntryFormatter) -> Result<Vec<u8>, Error> {
        let Readable { location, shown, is_site, .. } = readable;
        let lines = FolderLines::new(formatter, shown, is_site);
        Ok(location.list(&self.io_for_caller(), LISTING_ENTRIES_MAX, None, lines).await?)
    }

    /// Returns the engine, for work on behalf of the account, or of the guests of the client's address.
    fn io_for_caller(&self) -> Io {
        match &self.state.login {
            Login::Account(caller) => caller.io().clone(),
            _ => self.shared.io.for_owner(JobOwner::guest(&self.peer)),
        }
    }
}
