//! A part file: an incomplete download, beside its target path.
//!
//! Its contents are not trusted until the digest is checked. Invariants: the file at the target path does
//! not change until the download is complete. No other process writes to the part file meanwhile.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::failure::Failure;
use crate::limits::PART_NAME_BYTES_MAX;
use crate::limits::{READ_BYTES, SYNCED_EARLY_BYTES};
use crate::state::{StateFolder, key};

/// The stored state of a part file: the entity tag of the file that it is a part of.
#[derive(Serialize, Deserialize)]
struct Remembered {
    etag: String,
}

/// A part file, open and locked.
pub(crate) struct Part {
    file: Arc<File>,
    early: EarlySync,
    /// The time of modification that the file gets.
    pub(super) modified: Option<SystemTime>,
    path: PathBuf,
    target: PathBuf,
    state: StateFolder,
    key: String,
}

/// Syncs of a long file while it is written, so that little is left for the last one.
#[derive(Default)]
struct EarlySync {
    /// Bytes written since the latest sync began.
    since: u64,
    /// The latest sync. Its error must not be lost, because the kernel reports it only once.
    latest: Option<JoinHandle<io::Result<()>>>,
    failed: bool,
}

impl EarlySync {
    /// Records that bytes were written. Begins a sync if they are many and none is in progress.
    fn after(&mut self, bytes: u64, file: &Arc<File>) {
        self.since += bytes;
        if self.since < SYNCED_EARLY_BYTES || self.latest.as_ref().is_some_and(|sync| !sync.is_finished()) {
            return;
        }
        self.since = 0;
        self.failed |= self.latest.take().is_some_and(|sync| !matches!(sync.join(), Ok(Ok(()))));
        let file = Arc::clone(file);
        // If no thread can be started, the last sync writes everything.
        self.latest = thread::Builder::new().spawn(move || file.sync_data()).ok();
    }

    /// Waits for the latest sync.
    ///
    /// # Errors
    ///
    /// # Errors
    /// If one of the syncs has failed.
    fn end(&mut self) -> io::Result<()> {
        self.failed |= self.latest.take().is_some_and(|sync| !matches!(sync.join(), Ok(Ok(()))));
        if self.failed { Err(io::Error::other("a sync of the file has failed")) } else { Ok(()) }
    }
}

impl Part {
    /// Opens the part file for `target`. `from` identifies the source by server, account and path.
    pub(super) fn open(from: &[&[u8]], target: &Path) -> Result<Part, Failure> {
        let failed = |error| Failure::local(format!("cannot write {}", target.display()), &error);
        let folder = target.parent().unwrap_or(Path::new(""));
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let folder = folder.canonicalize().map_err(failed)?;
        let name = target.file_name().unwrap_or_default();
        let target = folder.join(name);
        if target.is_dir() {
            return Err(Failure::Local(format!(
                "{} is a folder here. Move it away first.",
                target.display()
            )));
        }
        let key = key(&[from, &[target.as_os_str().as_bytes()]].concat());
        let path = folder.join(part_name(name.as_bytes(), &key));
        let file = lock(&path)
            .map_err(|error| Failure::local(format!("cannot write {}", path.display()), &error))?
            .ok_or_else(|| {
                Failure::Local("Another plimsoll gets this file right now. Wait for it.".to_owned())
            })?;
        let state = StateFolder::of("downloads")?;
        let (file, early) = (Arc::new(file), EarlySync::default());
        Ok(Part { file, early, modified: None, path, target, state, key })
    }

    /// Returns the digest, length and entity tag of an earlier download's bytes, if their tag was stored.
    pub(super) fn take_up(&mut self) -> Result<Option<(Sha256, u64, String)>, Failure> {
        let Some(Remembered { etag }) = self.state.load(&self.key)? else {
            return Ok(None);
        };
        let read = || {
            let (mut hash, mut bytes, mut block) = (Sha256::new(), 0, vec![0; READ_BYTES]);
            loop {
                match (&*self.file).read(&mut block)? {
                    0 => return io::Result::Ok((hash, bytes)),
                    read => {
                        hash.update(&block[..read]);
                        bytes += read as u64;
                    }
                }
            }
        };
        let (hash, bytes) = read().map_err(|error| self.failed(&error))?;
        Ok((bytes > 0).then_some((hash, bytes, etag)))
    }

    /// Empties the part file, for a file with this entity tag.
    pub(super) fn begin(&mut self, etag: Option<&str>) -> Result<(), Failure> {
        let emptied = self.file.set_len(0).and_then(|()| (&*self.file).seek(SeekFrom::Start(0)).map(drop));
        emptied.map_err(|error| self.failed(&error))?;
        match etag {
            Some(etag) => Ok(self.state.save(&self.key, &Remembered { etag: etag.to_owned() })?),
            None => Ok(self.state.forget(&self.key)?),
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        (&*self.file).write_all(bytes).map_err(|error| self.failed(&error))?;
        self.early.after(bytes.len() as u64, &self.file);
        Ok(())
    }

    /// Waits until all written bytes are on the disk.
    fn sync(&mut self) -> io::Result<()> {
        self.early.end()?;
        self.file.sync_all()
    }

    /// Sets the file's time of modification.
    fn date(&self) -> io::Result<()> {
        self.modified.map_or(Ok(()), |modified| self.file.set_modified(modified))
    }

    /// Renames the part file, which must be synced, to its target path.
    fn place(self) -> Result<(), Failure> {
        fs::rename(&self.path, &self.target).map_err(|error| self.failed(&error))?;
        Ok(self.state.forget(&self.key)?)
    }

    /// Removes the part file, which is not worth resuming.
    pub(super) fn discard(self) {
        // If removal fails, the next download overwrites the file.
        let _ = fs::remove_file(&self.path);
        let _ = self.state.forget(&self.key);
    }

    fn failed(&self, error: &io::Error) -> Failure {
        Failure::local(format!("cannot write {}", self.target.display()), error)
    }
}

/// Renames complete and checked part files to their target paths, after one sync of each file system. A
/// sync for each of thousands of small files would be slow. Returns the result of each.
pub(crate) fn place_all(parts: Vec<Part>) -> Vec<Result<(), Failure>> {
    let (is_alone, mut synced) = (parts.len() == 1, HashMap::new());
    let mut sync = |part: &mut Part| -> io::Result<()> {
        if is_alone {
            return part.sync();
        }
        let device = part.file.metadata()?.dev();
        part.early.end()?;
        let synced = synced.entry(device).or_insert_with(|| rustix::fs::syncfs(&part.file));
        Ok((*synced)?)
    };
    let dated: Vec<io::Result<()>> = parts.iter().map(Part::date).collect();
    let place = |(mut part, dated): (Part, io::Result<()>)| {
        dated.and_then(|()| sync(&mut part)).map_err(|error| part.failed(&error))?;
        part.place()
    };
    parts.into_iter().zip(dated).map(place).collect()
}

/// Opens and locks a part file. Returns `None` if another process has locked it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    // In a folder that others can write to, the name may be a symbolic link to any file.
    options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    loop {
        let file = options.open(path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
        // The previous holder may have renamed the file meanwhile. The lock is then on the target file.
        let now = fs::symlink_metadata(path).map(|metadata| metadata.ino()).ok();
        if now == Some(file.metadata()?.ino()) {
            return Ok(Some(file));
        }
    }
}

/// Returns `.NAME.KEY.part`, of at most 255 bytes.
fn part_name(name: &[u8], key: &str) -> OsString {
    let name = &name[..name.len().min(PART_NAME_BYTES_MAX)];
    OsString::from_vec([b".", name, b".", &key.as_bytes()[..8], b".part"].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_one_program_s_and_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("part"), folder.path().join("other"));
        let held = lock(&path).unwrap().unwrap();
        assert!(lock(&path).unwrap().is_none());
        drop(held);
        assert!(lock(&path).unwrap().is_some());
        fs::write(&other, "kept").unwrap();
        fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(lock(&path).is_err());
    }

    #[test]
    fn a_part_has_a_name_that_is_not_too_long_and_not_the_file_s() {
        let key = key(&[b"a"]);
        assert_eq!(part_name(&[b'x'; 255], &key).len(), 215);
        let name = part_name(b"caf\xe9", &key);
        assert!(name.as_bytes().starts_with(b".caf\xe9.") && name.as_bytes().ends_with(b".part"));
    }
}
