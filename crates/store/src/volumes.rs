//! The file systems that the operator mounted in a home, with a staging folder on each.
//!
//! A rename does not lead from one file system to another. So uploads, copies and removed folders are staged
//! on the file system of their path: in the home's `pending`, or in a folder at the top of a mounted one.
//! Invariants: no path of an account has that folder's name, and no listing shows it. `pending` has a link to
//! each mount before the first file is staged there, so that leftovers of a crash are found.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use plimsoll_io::{File, FileKind, Fs, Volume};

use crate::error::{Error, Result};
use crate::home::LocalHome;
use crate::path::Path;
use crate::store::folder_in;
use crate::write::UploadId;

/// The name of a staging folder in a home. No path of an account has it.
pub const STAGING: &[u8] = b".plimsoll-pending";
/// The suffix of the links in `pending` to mounted file systems.
const LINK: &str = ".volume";
/// The start of such a link's target: from `pending` to the home's files.
const TO_FILES: &[u8] = b"../files/";

/// The mounted file systems of a home that something was staged on.
#[derive(Default)]
pub(crate) struct Volumes {
    table: Mutex<VolumeTable>,
    /// Held while a staging folder is opened and swept: nothing may be staged there before.
    opening: Mutex<()>,
}

/// The staging folders, by volume and by upload.
#[derive(Default)]
struct VolumeTable {
    staging: HashMap<Volume, File>,
    /// The staging folders of uploads that have files in one.
    staged: HashMap<UploadId, File>,
}

impl Volumes {
    fn table(&self) -> MutexGuard<'_, VolumeTable> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LocalHome {
    /// Returns the folder in which a file is staged before it is renamed into `folder`.
    ///
    /// # Errors
    /// [`Error::OtherDisk`] if [`LocalHome::open_volume`] has not yet opened it.
    pub(crate) fn staging_for(&self, fs: &dyn Fs, folder: &File) -> Result<File> {
        let volume = fs.volume(folder)?;
        if volume == self.volume() {
            return Ok(self.pending().clone());
        }
        self.volumes().table().staging.get(&volume).cloned().ok_or(Error::OtherDisk)
    }

    /// Opens the staging folder for changes at `path`, and creates a missing one. Call it without the lock,
    /// where the disk may be waited for. An error of looking up the path is left to the caller.
    pub(crate) fn open_volume(&self, fs: &dyn Fs, path: &Path) -> Result<()> {
        let Some((folder, _)) = path.split_last().filter(|(folder, _)| !folder.is_empty()) else {
            // The home's own folder is on its volume.
            return Ok(());
        };
        let Ok(opened) = fs.open_beneath(self.files(), &folder) else { return Ok(()) };
        self.open_volume_of(fs, &opened, path.parent_bytes())
    }

    /// As [`LocalHome::open_volume`], for the open folder at `path`.
    fn open_volume_of(&self, fs: &dyn Fs, folder: &File, path: &[u8]) -> Result<()> {
        let volume = fs.volume(folder)?;
        if volume == self.volume() || self.volumes().table().staging.contains_key(&volume) {
            return Ok(());
        }
        let _alone = self.volumes().opening.lock().unwrap_or_else(PoisonError::into_inner);
        if self.volumes().table().staging.contains_key(&volume) {
            return Ok(());
        }
        // First, because it fails on a file system that cannot be written, of which no link must stay.
        let staging = folder_in(fs, &fs.volume_top(folder)?, STAGING)?;
        let mount = self.mount_path(fs, path, volume);
        match fs.make_link(self.pending(), &link_name(mount), &[TO_FILES, mount].concat()) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
            _ => fs.sync(self.pending())?,
        }
        // With 1970 as the present, no upload has expired: those are left to the next change in the home.
        let trees = self.sweep_folder(fs, &staging, SystemTime::UNIX_EPOCH)?;
        self.clear_trees(fs, &staging, &trees);
        self.volumes().table().staging.insert(volume, staging);
        Ok(())
    }

    /// Returns the shortest start of `path` that is on `volume`: the path of its mount, unless a link leads
    /// there.
    fn mount_path<'a>(&self, fs: &dyn Fs, path: &'a [u8], volume: Volume) -> &'a [u8] {
        let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let is_on = |start: &&[u8]| {
            fs.open_beneath(self.files(), start)
                .and_then(|folder| fs.volume(&folder))
                .is_ok_and(|it| it == volume)
        };
        ends.map(|end| &path[..end]).find(is_on).unwrap_or(path)
    }

    /// Opens the staging folders of mounted file systems that an earlier server used, as far as they are
    /// mounted now.
    pub(crate) fn open_known_volumes(&self, fs: &dyn Fs) -> Result<()> {
        for entry in fs.names(self.pending(), usize::MAX)? {
            if entry.stat.kind != FileKind::Other || !entry.name.ends_with(LINK.as_bytes()) {
                continue;
            }
            let target = fs.read_link(self.pending(), &entry.name)?;
            let Some(path) = target.strip_prefix(TO_FILES) else { continue };
            match fs.open_beneath(self.files(), path) {
                Ok(folder) if fs.stat(&folder)?.kind == FileKind::Folder => {
                    // A change on this file system reports the error. The rest of the home does not need it.
                    if let Err(error) = self.open_volume_of(fs, &folder, path) {
                        let home = self.name();
                        tracing::warn!(home, %error, "a file system of this home cannot be written");
                    }
                }
                _ => tracing::warn!(home = self.name(), "a file system of this home is not mounted"),
            }
        }
        Ok(())
    }

    /// Returns the folder that has the files of an upload.
    pub(crate) fn staging_of(&self, id: UploadId) -> File {
        self.volumes().table().staged.get(&id).unwrap_or(self.pending()).clone()
    }

    /// Notes that an upload has files in `staging`.
    pub(crate) fn note_staged(&self, id: UploadId, staging: &File) {
        if !staging.is(self.pending()) {
            self.volumes().table().staged.insert(id, staging.clone());
        }
    }

    /// Forgets the staging folder of an upload without files.
    pub(crate) fn forget_staged(&self, id: UploadId) {
        self.volumes().table().staged.remove(&id);
    }
}

/// The name of the link in `pending` to the file system mounted at `path`.
fn link_name(path: &[u8]) -> Vec<u8> {
    format!("{}{LINK}", &blake3::hash(path).to_hex()[..32]).into_bytes()
}
