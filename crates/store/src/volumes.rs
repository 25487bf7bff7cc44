//! The file systems that the operator mounted in a home, with a staging folder on each.
//!
//! A rename does not lead from one file system to another. So uploads, copies and removed folders are staged
//! on the file system of their path: in the home's `pending`, or in a folder at the top of a mounted one. Two
//! homes may have a mount of one folder, so each has a folder of its own there, with a random name.
//! Invariants: no path of an account has that folder's name, and no listing shows it. A home touches no entry
//! that another one staged. `pending` has a link to each mount before the first file is staged there, so that
//! leftovers of a crash are found.

use std::collections::HashMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use plimsoll_io::{Entry, Existing, File, FileKind, Fs, Io, Volume};

use crate::error::{Error, Result};
use crate::home::LocalHome;
use crate::path::Path;
use crate::store::folder_in;
use crate::write::UploadId;

/// The name of a staging folder in a home. No path of an account has it.
pub const STAGING: &[u8] = b".plimsoll-pending";
/// The link in `pending` whose target is the name of the home's folders in staging folders.
const OWN_NAME: &[u8] = b"staging-name";
/// The suffix of the links in `pending` to mounted file systems.
const LINK: &str = ".volume";
/// The start of such a link's target: from `pending` to the home's files.
const TO_FILES: &[u8] = b"../files/";

/// The mounted file systems of a home that something was staged on.
pub(crate) struct Volumes {
    /// The name of the home's own folder in a staging folder, if `pending` has none yet.
    new_name: StagingName,
    table: Mutex<VolumeTable>,
    /// Held while a staging folder is opened and swept: nothing may be staged there before.
    opening: Mutex<()>,
}

/// A name for a home's own folder in staging folders. It is random: other homes with the same mounts may be
/// another server's.
#[derive(Clone)]
pub(crate) struct StagingName(Vec<u8>);

impl StagingName {
    pub(crate) fn draw(io: &Io) -> StagingName {
        StagingName(format!("home-{}", UploadId::draw(io)).into_bytes())
    }
}

/// The staging folders, by volume and by upload.
#[derive(Default)]
struct VolumeTable {
    staging: HashMap<Volume, File>,
    /// The staging folders of uploads that have files in one.
    staged: HashMap<UploadId, File>,
}

impl Volumes {
    pub(crate) fn new(new_name: StagingName) -> Volumes {
        Volumes { new_name, table: Mutex::default(), opening: Mutex::default() }
    }

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
        self.staging_on(fs.volume(folder)?)
    }

    /// As [`LocalHome::staging_for`], by volume.
    pub(crate) fn staging_on(&self, volume: Volume) -> Result<File> {
        if volume == self.volume() {
            return Ok(self.pending().clone());
        }
        self.volumes().table().staging.get(&volume).cloned().ok_or(Error::OtherDisk)
    }

    /// Returns the home's volumes that have an open staging folder.
    pub(crate) fn opened_volumes(&self) -> Vec<Volume> {
        let mut volumes = vec![self.volume()];
        volumes.extend(self.volumes().table().staging.keys());
        volumes
    }

    /// Opens the staging folder for changes at `path`, and creates a missing one. Call it without the lock,
    /// where the disk may be waited for. An error of looking up the path is left to the caller.
    pub(crate) fn open_volume(&self, fs: &dyn Fs, path: &Path) -> Result<()> {
        let Some((folder, _)) = path.split_last().filter(|(folder, _)| !folder.is_empty()) else {
            // The home's own folder is on its volume.
            return Ok(());
        };
        let Ok(opened) = fs.open_beneath(self.files(), &folder) else { return Ok(()) };
        let volume = fs.volume(&opened)?;
        if volume == self.volume() || self.volumes().table().staging.contains_key(&volume) {
            return Ok(());
        }
        let _alone = self.volumes().opening.lock().unwrap_or_else(PoisonError::into_inner);
        if self.volumes().table().staging.contains_key(&volume) {
            return Ok(());
        }
        self.open_volume_of(fs, &opened, self.mount_path(fs, path.parent_bytes(), volume))
    }

    /// As [`LocalHome::open_volume`], for an open folder. `mount` is the path by which the home finds its
    /// volume.
    fn open_volume_of(&self, fs: &dyn Fs, folder: &File, mount: &[u8]) -> Result<()> {
        let volume = fs.volume(folder)?;
        // First, because it fails on a file system that cannot be written, of which no link must stay.
        let top = fs.volume_top(folder)?;
        let staging = staging_in(fs, &top, mount, self.pending(), &self.volumes().new_name)?;
        match fs.make_link(self.pending(), &link_name(mount), &[TO_FILES, mount].concat()) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.into()),
            _ => fs.sync(self.pending())?,
        }
        // With 1970 as the present, no upload has expired: those are left to the next change in the home.
        let trees = self.sweep_folder(fs, &staging, SystemTime::UNIX_EPOCH)?;
        self.clear_trees(fs, &staging, &trees);
        // With the lock, so that a count of the home has the trash of this volume once.
        let state = self.lock();
        if self.volumes().table().staging.contains_key(&volume) {
            return Ok(());
        }
        self.volumes().table().staging.insert(volume, staging);
        match self.read_trash(fs, volume, true) {
            Ok(trash) => self.add_trash(&state, &trash),
            Err(error) => {
                tracing::warn!(home = self.name(), %error, "the trash on a file system cannot be read");
            }
        }
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
                Ok(folder)
                    if fs.stat(&folder)?.kind == FileKind::Folder && fs.volume(&folder)? != self.volume() =>
                {
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

/// Opens the home's own staging folder at the top of a volume that is mounted at `mount`, and creates a
/// missing one. Entries that an older version staged there, for whichever home, are moved to it.
///
/// # Errors
/// Any error of the file system.
pub(crate) fn staging_in(
    fs: &dyn Fs,
    top: &File,
    mount: &[u8],
    pending: &File,
    new_name: &StagingName,
) -> io::Result<File> {
    let shared = folder_in(fs, top, STAGING)?;
    let name = match fs.make_link(pending, OWN_NAME, &new_name.0) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs.read_link(pending, OWN_NAME)?,
        made => made.map(|()| new_name.0.clone())?,
    };
    fs.sync(pending)?;
    // One for each mount: a home may have one folder twice, and no rename leads from one mount to the other.
    let staging = folder_in(fs, &shared, &[&*name, b"-", digest_of(mount).as_bytes()].concat())?;
    take_over(fs, &shared, &staging)?;
    Ok(staging)
}

/// Moves the entries that an older version staged in the folder of all homes to that of one home. The caller
/// sweeps afterwards: if only a part of an upload's files has moved, none is lost.
fn take_over(fs: &dyn Fs, shared: &File, staging: &File) -> io::Result<()> {
    let mut entries = fs.names(shared, usize::MAX)?;
    entries.retain(|entry| entry.name.get(..32).and_then(UploadId::parse).is_some());
    for Entry { name, .. } in &entries {
        match fs.rename(shared, name, staging, name, Existing::Replaced) {
            // Another home has taken it over meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            moved => moved?,
        }
    }
    if entries.is_empty() { Ok(()) } else { fs.sync(staging).and_then(|()| fs.sync(shared)) }
}

/// The name of the link in `pending` to the file system mounted at `path`.
fn link_name(path: &[u8]) -> Vec<u8> {
    format!("{}{LINK}", digest_of(path)).into_bytes()
}

fn digest_of(path: &[u8]) -> String {
    blake3::hash(path).to_hex()[..32].to_owned()
}
