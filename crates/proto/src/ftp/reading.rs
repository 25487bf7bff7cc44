//! Reading what a path stands for, as whoever asks may: an account's files, or a guest's site.
//!
//! It sends nothing. What must hold: guests only read, and hidden names are not there for them, as over HTTP.

use plimsoll_auth::Permissions;
use plimsoll_io::{Entry, File, FileKind, Stat, Work};
use plimsoll_operations::{Error, GUEST, Operation, Place, Shown, Transfer};
use plimsoll_wire::ftp::listing::Rights;

use super::answer::Answer;
use super::conversation::Conversation;
use super::limits::LISTING_ENTRIES_MAX;
use super::listing::ONLY_READ;
use super::place::{NOT_THERE, Spot};
use super::refusal::not_read;
use super::state::Who;
use crate::http::site::is_hidden;

/// What may be read, to be opened beneath its root.
#[derive(Clone)]
pub(super) struct Readable {
    root: File,
    name: Vec<u8>,
    shown: Shown,
    is_site: bool,
    /// What whoever asks may do with what is in it.
    pub(super) rights: Rights,
}

impl Readable {
    /// What whoever asks may do with itself: nobody removes a home.
    pub(super) fn own_rights(&self) -> Rights {
        Rights { remove: self.rights.remove && !self.name.is_empty(), ..self.rights }
    }
}

fn rights(may: Permissions) -> Rights {
    Rights { read: may.read, write: may.write, remove: may.delete }
}

impl Conversation<'_> {
    /// What `spot` leads to, for looking at it: no operation, and no record.
    pub(super) async fn look(&mut self, spot: &Spot) -> Result<Readable, Answer> {
        match spot {
            Spot::Owners => Err(NOT_THERE),
            Spot::Site(name) => self.of_site(name),
            Spot::Place(place) => {
                let (operations, caller) = self.caller().await?;
                let looked = operations.look(&caller, place).await?;
                let name = looked.path.as_bytes().to_vec();
                let rights = rights(looked.may);
                Ok(Readable { root: looked.root, name, shown: looked.shown, is_site: false, rights })
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
                let shown = Place::own(plimsoll_store::Path::parse(name).map_err(|_| NOT_THERE)?);
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
                let name = reading.path.as_bytes().to_vec();
                let rights = rights(reading.may);
                let (root, shown) = (reading.root, reading.shown);
                Ok((Readable { root, name, shown, is_site: false, rights }, reading.transfer))
            }
        }
    }

    fn of_site(&self, name: &[u8]) -> Result<Readable, Answer> {
        let site = self.shared.settings.guests.as_ref().filter(|_| matches!(self.state.who, Who::Guest));
        let site = site.filter(|_| !is_hidden(name)).ok_or(NOT_THERE)?;
        Ok(Readable {
            root: site.root().clone(),
            name: name.to_vec(),
            shown: Shown::All,
            is_site: true,
            rights: ONLY_READ,
        })
    }

    /// Opens a file.
    pub(super) async fn open(&self, readable: Readable) -> Result<(File, Stat), Error> {
        let Readable { root, name, shown, .. } = readable;
        let opened = self.shared.io.files(move |fs| {
            let file = fs.open_beneath(&root, &name)?;
            let stat = fs.stat(&file)?;
            Ok((file, stat))
        });
        let (file, stat) = opened.await.map_err(not_read)?;
        match (stat.kind, shown) {
            (FileKind::File, Shown::All) => Ok((file, stat)),
            (FileKind::Folder, _) => Err(plimsoll_store::Error::IsFolder.into()),
            _ => Err(Error::NOT_FOUND),
        }
    }

    /// What is known of a file or folder.
    pub(super) async fn stat(&self, readable: Readable) -> Result<Stat, Error> {
        let Readable { root, name, shown, .. } = readable;
        let looked = self.shared.io.files(move |fs| fs.stat(&fs.open_beneath(&root, &name)?));
        let stat = looked.await.map_err(not_read)?;
        match (stat.kind, shown) {
            (FileKind::Folder, _) | (FileKind::File, Shown::All) => Ok(stat),
            _ => Err(Error::NOT_FOUND),
        }
    }

    /// The entries of a folder, by name, made into bytes by `write`: where it may take its time.
    pub(super) async fn list(
        &self,
        readable: Readable,
        write: impl FnOnce(Vec<Entry>) -> Vec<u8> + Send + 'static,
    ) -> Result<Vec<u8>, Error> {
        let Readable { root, name, shown, is_site, .. } = readable;
        let listed = self.shared.io.ask(Work::Listings, move |fs| {
            let mut entries = fs.list(&root, &name, LISTING_ENTRIES_MAX)?;
            entries.retain(|entry| match &shown {
                Shown::All => !(is_site && is_hidden(&entry.name)),
                Shown::Only(names) => names.contains(&entry.name),
            });
            entries.retain(|entry| entry.stat.kind != FileKind::Other);
            entries.sort_by(|one, other| one.name.cmp(&other.name));
            Ok(write(entries))
        });
        listed.await.map_err(not_read)
    }
}
