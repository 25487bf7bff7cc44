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
        let opened = match path.split_last().filter(|(folder, _)| !folder.is_empty()) {
            Some((folder, _)) => fs.open_beneath(self.files(), &folder),
            None if self.is_divided() => Ok(self.files().clone()),
            None => return Ok(()),
        };
        let Ok(opened) = opened else { return Ok(()) };
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
        self.adopt_staging(fs, &top, mount)?;
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

    /// Gives the home's staging folder of a mount that its path does not lead to any more to the same file
    /// system's mount at `mount`, if that has none yet: a folder above it was renamed, or the operator has
    /// moved it.
    fn adopt_staging(&self, fs: &dyn Fs, top: &File, mount: &[u8]) -> Result<()> {
        let Ok(shared) = fs.open_beneath(top, STAGING) else { return Ok(()) };
        let Ok(name) = fs.read_link(self.pending(), OWN_NAME) else { return Ok(()) };
        let (own, start) = (staging_name(&name, mount), [&*name, b"-"].concat());
        let mut others = fs.names(&shared, usize::MAX)?;
        others.retain(|entry| entry.name.starts_with(&start));
        if others.iter().any(|entry| entry.name == own) {
            return Ok(());
        }
        let links = others.iter().map(|entry| [&entry.name[start.len()..], LINK.as_bytes()].concat());
        for (entry, link) in others.iter().zip(links) {
            if !self.leads_to_device_of(fs, &link, top) {
                fs.rename(&shared, &entry.name, &shared, &own, Existing::Kept)?;
                // It leads nowhere, or to another file system, which gets a new one.
                return match fs.remove_file(self.pending(), &link) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.into()),
                    _ => Ok(()),
                };
            }
        }
        Ok(())
    }

    /// Whether a link in `pending` leads to a mount of the device of `top`.
    fn leads_to_device_of(&self, fs: &dyn Fs, link: &[u8], top: &File) -> bool {
        let found = fs.read_link(self.pending(), link).and_then(|target| {
            let path = target.strip_prefix(TO_FILES).unwrap_or_default();
            let volume = fs.volume(&fs.open_beneath(self.files(), path)?)?;
            Ok(volume != self.volume() && volume.device == fs.volume(top)?.device)
        });
        found.unwrap_or_default()
    }

    /// Returns the shortest start of `path` that is on `volume`: the path of its mount, unless a link leads
    /// there.
    fn mount_path<'a>(&self, fs: &dyn Fs, path: &'a [u8], volume: Volume) -> &'a [u8] {
        if self.is_divided() && fs.volume(self.files()).is_ok_and(|it| it == volume) {
            return b"";
        }
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
    let staging = folder_in(fs, &shared, &staging_name(&name, mount))?;
    take_over(fs, &shared, &staging)?;
    Ok(staging)
}

/// The name of the staging folder of the mount at `mount`; `name` is the one of the home.
fn staging_name(name: &[u8], mount: &[u8]) -> Vec<u8> {
    [name, b"-", digest_of(mount).as_bytes()].concat()
}

/// Moves the entries that an older version staged in the folder of all homes to that of one home. The caller
/// sweeps afterwards. An upload is not resumed if two homes that open at the same time each get a part of its
/// files.
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
