//! Counts the contents of a home, for an operator with the data folder.
//!
//! It changes nothing, and needs no open store. Invariant: it counts what the quota counts, but for the trash
//! of file systems that are mounted in the home.

use std::io;
use std::path::Path;

use plimsoll_io::{File, Fs};

use crate::error::Result;
use crate::owner::{FILES, accounts_in};
use crate::trash::{TRASH, count_entries};
use crate::usage::{Usage, count};
use crate::write::UploadId;
use crate::write::record::read;

/// The contents of a home.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stored {
    /// Its files and folders, and its trash.
    pub usage: Usage,
    /// Resumable uploads that are not complete.
    pub uploads: u64,
    /// Bytes of these uploads: as many as were announced, else those that were received.
    pub upload_bytes: u64,
}

/// Counts the home `name` in the data folder `root`; none if there is no such home.
///
/// # Errors
/// Any error of the file system.
pub fn stored(fs: &dyn Fs, root: &Path, name: &str) -> Result<Option<Stored>> {
    let Some(accounts) = accounts_in(fs, root)? else { return Ok(None) };
    let Some(home) = folder(fs, &accounts, name.as_bytes())? else { return Ok(None) };
    let mut stored = Stored::default();
    if let Some(files) = folder(fs, &home, FILES)? {
        stored.usage = count(fs, &files)?;
    }
    if let Some(pending) = folder(fs, &home, b"pending")? {
        add_uploads(fs, &pending, &mut stored)?;
        if let Some(trash) = folder(fs, &pending, TRASH)? {
            stored.usage = stored.usage.plus(count_entries(fs, &trash)?);
        }
    }
    Ok(Some(stored))
}

fn add_uploads(fs: &dyn Fs, pending: &File, stored: &mut Stored) -> Result<()> {
    for entry in fs.names(pending, usize::MAX)? {
        let id = entry.name.get(..32).and_then(UploadId::parse);
        let Some(id) = id.filter(|id| entry.name == id.record_name()) else { continue };
        let record = match fs.open_beneath(pending, &entry.name) {
            // It was completed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            opened => opened?,
        };
        if let Some(contents) = read(fs, &record, id)? {
            stored.uploads += 1;
            let bytes = contents.description.bytes.unwrap_or(contents.offset);
            stored.upload_bytes = stored.upload_bytes.saturating_add(bytes);
        }
    }
    Ok(())
}

fn folder(fs: &dyn Fs, parent: &File, name: &[u8]) -> Result<Option<File>> {
    match fs.open_beneath(parent, name) {
        Ok(folder) => Ok(Some(folder)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}
