//! Cleanup of the `pending` folders: leftovers of a server that ended, expired uploads, removed trees.
//!
//! It touches nothing outside the `pending` folders. Invariant: an upload that was reported to its owner
//! stays until it expires.

use std::collections::VecDeque;
use std::io;
use std::time::SystemTime;

use plimsoll_io::{Entry, Existing, File, FileKind, Fs};

use crate::error::Result;
use crate::home::{LocalHome, UploadEntry};
use crate::write::UploadId;
use crate::write::parts::ended_parts;
use crate::write::record::{RecordContents, has_expired, read};

/// The suffix of trees in `pending`, which are to be removed, or are not in place yet.
const TREE: &str = ".tree";

/// The name of a tree in `pending`.
pub(crate) fn tree_name(id: UploadId) -> Vec<u8> {
    format!("{id}{TREE}").into_bytes()
}

impl LocalHome {
    /// Cleans up `pending` when the home is opened: no connection writes to it then. Returns the names of
    /// trees, which take longer to remove.
    pub(crate) fn sweep(&self, fs: &dyn Fs, now: SystemTime) -> Result<Vec<Vec<u8>>> {
        self.sweep_joined(fs)?;
        self.sweep_folder(fs, self.pending(), now)
    }

    /// As [`LocalHome::sweep`], of one staging folder, before anything is staged there.
    pub(crate) fn sweep_folder(&self, fs: &dyn Fs, staging: &File, now: SystemTime) -> Result<Vec<Vec<u8>>> {
        let mut trees = Vec::new();
        for entry in fs.names(staging, usize::MAX)? {
            let Some(id) = entry.name.get(..32).and_then(UploadId::parse) else { continue };
            self.note_staged(id, staging);
            if entry.name == id.record_name() {
                self.sweep_upload(fs, id, now)?;
            } else if entry.stat.kind == FileKind::Folder {
                self.forget_staged(id);
                trees.push(entry.name);
            } else if entry.name == id.data_name() && !exists(fs, staging, &id.record_name())? {
                self.remove_upload(fs, id);
            }
        }
        Ok(trees)
    }

    /// Removes the parts of files that were committed, where the server ended right after it. The parts of a
    /// join that was not committed stay.
    fn sweep_joined(&self, fs: &dyn Fs) -> Result<()> {
        for entry in fs.names(self.pending(), usize::MAX)? {
            let id = entry.name.get(..32).and_then(UploadId::parse);
            let Some(id) = id.filter(|id| entry.name == id.parts_name()) else { continue };
            ended_parts(fs, self, id)?.into_iter().for_each(|part| self.remove_upload(fs, part));
            self.sync(fs, &[self.pending()])?;
            fs.remove_file(self.pending(), &entry.name)?;
        }
        Ok(())
    }

    /// Removes trees in a staging folder.
    pub(crate) fn clear_trees(&self, fs: &dyn Fs, staging: &File, names: &[Vec<u8>]) {
        for name in names {
            if let Err(error) = clear_tree(fs, staging, name) {
                tracing::warn!(home = self.name(), %error, "a removed folder was not deleted");
            }
        }
    }

    /// Keeps an upload that has a valid record and the recorded bytes, and has not expired. Removes any
    /// other.
    fn sweep_upload(&self, fs: &dyn Fs, id: UploadId, now: SystemTime) -> Result<()> {
        let staging = self.staging_of(id);
        let record = fs.open_beneath(&staging, &id.record_name())?;
        let contents = read(fs, &record, id)?.filter(|contents| has_bytes(fs, &staging, id, contents.offset));
        match contents {
            Some(RecordContents { description, offset, .. })
                if !has_expired(fs.stat(&record)?.modified, self, now) =>
            {
                let bytes = description.bytes.unwrap_or(offset);
                let by_path = description.by_path();
                self.lock().uploads.insert(id, UploadEntry { by_path, ..UploadEntry::new(bytes, false) });
            }
            _ => self.remove_upload(fs, id),
        }
        Ok(())
    }

    /// Removes the uploads that have expired.
    pub(crate) fn remove_expired(&self, fs: &dyn Fs, now: SystemTime) -> Result<()> {
        let idle: Vec<UploadId> = {
            let state = self.lock();
            let idle = state.uploads.iter().filter(|(_, upcoming)| !upcoming.in_use);
            idle.map(|(id, _)| *id).collect()
        };
        for id in idle {
            let expired = match fs.stat_name(&self.staging_of(id), &id.record_name()) {
                Ok(stat) => has_expired(stat.modified, self, now),
                Err(error) if error.kind() == io::ErrorKind::NotFound => true,
                Err(error) => return Err(error.into()),
            };
            let mut state = self.lock();
            if expired && state.uploads.get(&id).is_some_and(|upcoming| !upcoming.in_use) {
                state.uploads.remove(&id);
                self.remove_upload(fs, id);
            }
        }
        Ok(())
    }
}

/// Whether a staging folder has an entry of this name.
fn exists(fs: &dyn Fs, staging: &File, name: &[u8]) -> Result<bool> {
    match fs.stat_name(staging, name) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Whether an upload's file has the bytes that its record states.
fn has_bytes(fs: &dyn Fs, staging: &File, id: UploadId, offset: u64) -> bool {
    fs.stat_name(staging, &id.data_name()).is_ok_and(|stat| stat.size >= offset)
}

/// Removes the folder `name` of `pending` with its contents. A subfolder that is not empty is moved up and
/// removed later. So few folders are open and no path is long, however deep the tree is. A file system that
/// is mounted in it keeps its contents.
///
/// # Errors
/// [`Error::OtherDisk`](crate::Error::OtherDisk) if one is mounted in it.
pub(crate) fn clear_tree(fs: &dyn Fs, pending: &File, name: &[u8]) -> Result<()> {
    let mut ahead = VecDeque::from([name.to_vec()]);
    let mut moved = 0_u64;
    while let Some(tree) = ahead.pop_front() {
        let folder = fs.open_beneath(pending, &tree)?;
        for Entry { name: inner, stat } in fs.names(&folder, usize::MAX)? {
            if stat.kind != FileKind::Folder {
                fs.remove_file(&folder, &inner)?;
                continue;
            }
            match fs.remove_folder(&folder, &inner) {
                Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {
                    moved += 1;
                    let up = [name, format!(".{moved}{TREE}").as_bytes()].concat();
                    fs.rename(&folder, &inner, pending, &up, Existing::Kept)?;
                    ahead.push_back(up);
                }
                other => other?,
            }
        }
        fs.remove_folder(pending, &tree)?;
    }
    Ok(())
}
