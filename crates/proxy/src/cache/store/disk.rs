//! The cache's folder: objects are written to a staging name, synced, and renamed.
//!
//! It does not decide what is stored. All functions block and run inside a closure over [`Fs`]. Invariants:
//! a name in `objects` leads to a complete, synced file; a file that a crash leaves in `pending`, or torn in
//! `objects`, is removed at the next start, and no file with another name is; a purge and a commit exclude
//! each other; after a purge, the files
//! of objects that left the index before it are gone for good.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use plimsoll_io::{Entry, Existing, File, Fs};

use super::checksums::{ChecksumWriter, read_all};
use super::file_format::{TRAILER_BYTES, Trailer, encode_end};
use super::folder::{CacheFolder, Folders, OBJECTS, PENDING, is_own_file, read_all_names};
use super::stored_file::{Folder, Removals, StoredFile, name_of, sequence_of};
use crate::cache::limits::FILES_MAX;
use crate::cache::policy::StoredHead;

/// Whether stored bodies have checksums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksums {
    /// They are written and verified. A body without them is not found.
    #[default]
    On,
    /// They are neither written nor verified.
    Off,
}

/// The cache's folder.
#[derive(Debug)]
pub struct Disk {
    folder: Arc<CacheFolder>,
    folders: RwLock<Folders>,
    next: AtomicU64,
    removals: Arc<Removals>,
    /// Read by commits, written by purges.
    commits: RwLock<()>,
    /// Serialises removals: a purge must not return while another thread has yet to remove a file that it
    /// took from the queue.
    removing: Mutex<()>,
    /// Whether files of objects were removed, and the folder was not synced since.
    is_unsynced: AtomicBool,
}

/// A complete object that a start found.
#[derive(Debug)]
pub struct FoundObject {
    /// Its head.
    pub head: StoredHead,
    /// Its file.
    pub file: StoredFile,
}

/// An object that is being written.
#[derive(Debug)]
pub struct ObjectWriter {
    sequence: u64,
    file: File,
    written: u64,
    /// The checksums of what is written, if they are on.
    checksums: Option<ChecksumWriter>,
    removals: Arc<Removals>,
    is_committed: bool,
}

impl Disk {
    /// Opens the folder, and creates it if it is missing. Removes incomplete files, and returns the
    /// complete objects, the oldest first.
    ///
    /// # Errors
    /// The operating system's error; as [`CacheFolder::claim`].
    pub fn open(fs: &dyn Fs, folder: &Arc<CacheFolder>) -> io::Result<(Disk, Vec<FoundObject>)> {
        let folders = Folders::open(fs, folder.take(fs)?)?;
        for entry in own_files(fs, &folders.root, PENDING)?.0 {
            fs.remove_file(&folders.pending, &entry.name)?;
        }
        let mut disk = Disk {
            folder: Arc::clone(folder),
            folders: RwLock::new(folders.clone()),
            next: AtomicU64::new(1),
            removals: Arc::default(),
            commits: RwLock::new(()),
            removing: Mutex::new(()),
            is_unsynced: AtomicBool::new(false),
        };
        let (mut found, last) = disk.scan(fs, &folders)?;
        found.sort_by_key(|object| object.file.sequence());
        *disk.next.get_mut() = last + 1;
        Ok((disk, found))
    }

    /// Opens the folders again, and creates those that were removed. Returns whether the objects are gone.
    ///
    /// # Errors
    /// As [`Disk::open`].
    pub fn reopen(&self, fs: &dyn Fs) -> io::Result<bool> {
        let mut folders = self.folders.write().unwrap_or_else(PoisonError::into_inner);
        let is_gone = |folder: &File| fs.stat(folder).map(|stat| stat.links == 0);
        let lost_objects = is_gone(&folders.objects)?;
        let root = if is_gone(&folders.root)? { self.folder.retake(fs)? } else { folders.root.clone() };
        *folders = Folders::open(fs, root)?;
        let path = self.folder.path().display();
        tracing::warn!(folder = %path, "the cache's folder was removed, and is made again");
        Ok(lost_objects)
    }

    fn folders(&self) -> Folders {
        self.folders.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the complete objects, and the largest number of a name.
    fn scan(&self, fs: &dyn Fs, folders: &Folders) -> io::Result<(Vec<FoundObject>, u64)> {
        let (entries, last) = own_files(fs, &folders.root, OBJECTS)?;
        let mut found = Vec::new();
        for Entry { name, .. } in entries {
            let object = match sequence_of(&name) {
                Some(sequence) if found.len() < FILES_MAX => {
                    self.read_object(fs, &folders.objects, &name, sequence)?
                }
                _ => None,
            };
            match object {
                Some(object) => found.push(object),
                None => fs.remove_file(&folders.objects, &name)?,
            }
        }
        Ok((found, last))
    }

    /// Reads the head of an object. Returns `None` if the file is torn, cut, of another version, or without
    /// checksums that are on.
    fn read_object(
        &self,
        fs: &dyn Fs,
        objects: &File,
        name: &[u8],
        sequence: u64,
    ) -> io::Result<Option<FoundObject>> {
        let file = fs.open_beneath(objects, name)?;
        let file_bytes = fs.stat(&file)?.size;
        let Some(trailer_at) = file_bytes.checked_sub(TRAILER_BYTES as u64) else { return Ok(None) };
        let mut trailer = [0; TRAILER_BYTES];
        if !read_exact(fs, &file, &mut trailer, trailer_at)? {
            return Ok(None);
        }
        let Some(trailer) = Trailer::parse(&trailer, file_bytes) else { return Ok(None) };
        let is_usable = self.folder.checksums() == Checksums::Off || trailer.has_checksums();
        let mut metadata = vec![0; usize::try_from(trailer.metadata_bytes).unwrap_or_default()];
        if trailer.sequence != sequence
            || !is_usable
            || !read_exact(fs, &file, &mut metadata, trailer.metadata_at())?
        {
            return Ok(None);
        }
        Ok(trailer.decode(&metadata).map(|head| {
            let file = StoredFile::new(sequence, trailer.content_bytes, file_bytes, &self.removals);
            FoundObject { head, file }
        }))
    }

    /// Creates the staging file of a new object.
    ///
    /// # Errors
    /// As [`Fs::create`].
    pub fn create(&self, fs: &dyn Fs) -> io::Result<ObjectWriter> {
        let sequence = self.next.fetch_add(1, Ordering::Relaxed);
        let file = fs.create(&self.folders().pending, &name_of(sequence))?;
        let removals = Arc::clone(&self.removals);
        let checksums = (self.folder.checksums() == Checksums::On).then(ChecksumWriter::default);
        Ok(ObjectWriter { sequence, file, written: 0, checksums, removals, is_committed: false })
    }

    /// Completes an object: syncs it, gives it its name, and publishes it. `is_wanted` is called before the
    /// rename, and `publish` after it; no purge runs from the one to the other. If the object is not
    /// wanted, it is discarded.
    ///
    /// # Errors
    /// The operating system's error. The object is then discarded.
    pub fn commit(
        &self,
        fs: &dyn Fs,
        mut writer: ObjectWriter,
        head: &StoredHead,
        is_wanted: impl FnOnce() -> bool,
        publish: impl FnOnce(StoredFile),
    ) -> io::Result<bool> {
        let content_bytes = writer.written;
        let mut end = writer.checksums.take().map(ChecksumWriter::finish).unwrap_or_default();
        end.extend_from_slice(&encode_end(head, content_bytes, writer.sequence));
        writer.write(fs, &end)?;
        // Without this, a power cut could leave a valid trailer behind content that was never written.
        fs.sync(&writer.file)?;
        let name = name_of(writer.sequence);
        let commit = self.commits.read().unwrap_or_else(PoisonError::into_inner);
        if !is_wanted() {
            return Ok(false);
        }
        let Folders { pending, objects, .. } = self.folders();
        fs.rename(&pending, &name, &objects, &name, Existing::Replaced)?;
        writer.is_committed = true;
        publish(StoredFile::new(writer.sequence, content_bytes, writer.written, &self.removals));
        drop(commit);
        Ok(true)
    }

    /// Runs `purge`, which takes objects out of the index, while no object can be committed. Then removes
    /// the files of all objects that have left the index, durably: a purged object does not come back after
    /// a power cut, nor does an earlier one of the same resource. A response that is being sent from such a
    /// file is sent to its end. Returns the numbers of the removed objects.
    ///
    /// # Errors
    /// The operating system's error: the removal may not be durable.
    pub fn purge(&self, fs: &dyn Fs, purge: impl FnOnce()) -> io::Result<Vec<u64>> {
        let exclusive = self.commits.write().unwrap_or_else(PoisonError::into_inner);
        purge();
        drop(exclusive);
        let removing = self.removing.lock().unwrap_or_else(PoisonError::into_inner);
        let removed = self.remove_queued(fs)?;
        if self.is_unsynced.load(Ordering::Acquire) {
            fs.sync(&self.folders().objects)?;
            self.is_unsynced.store(false, Ordering::Release);
        }
        drop(removing);
        Ok(removed)
    }

    /// Whether files of objects that have left the index may be found by a start after a power cut.
    #[must_use]
    pub fn has_removals(&self) -> bool {
        // In this order: a removal sets the flag before it empties the queue.
        self.removals.has_objects() || self.is_unsynced.load(Ordering::Acquire)
    }

    /// Whether files of objects that have left the index wait for their removal.
    #[must_use]
    pub fn has_queued(&self) -> bool {
        self.removals.has_objects()
    }

    /// Removes the files of objects that have left the index. Returns the numbers of the objects.
    ///
    /// # Errors
    /// The operating system's error, after all files were tried. The others stay queued.
    pub fn remove_discarded(&self, fs: &dyn Fs) -> io::Result<Vec<u64>> {
        let _removing = self.removing.lock().unwrap_or_else(PoisonError::into_inner);
        self.remove_queued(fs)
    }

    fn remove_queued(&self, fs: &dyn Fs) -> io::Result<Vec<u64>> {
        if self.removals.has_objects() {
            self.is_unsynced.store(true, Ordering::Release);
        }
        let (mut removed, mut failed) = (Vec::new(), None);
        for (folder, sequence) in self.removals.take() {
            match self.remove(fs, folder, sequence) {
                Ok(()) if folder == Folder::Objects => removed.push(sequence),
                Ok(()) => {}
                Err(error) => {
                    self.removals.add(folder, sequence);
                    failed = Some(error);
                }
            }
        }
        failed.map_or(Ok(removed), Err)
    }

    fn remove(&self, fs: &dyn Fs, folder: Folder, sequence: u64) -> io::Result<()> {
        let Folders { pending, objects, .. } = self.folders();
        let parent = match folder {
            Folder::Pending => pending,
            Folder::Objects => objects,
        };
        match fs.remove_file(&parent, &name_of(sequence)) {
            // The staging file of an object whose creation failed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Opens the file of an object for sending.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn open_object(&self, fs: &dyn Fs, sequence: u64) -> io::Result<File> {
        fs.open_beneath(&self.folders().objects, &name_of(sequence))
    }
}

impl ObjectWriter {
    /// Appends to the content.
    ///
    /// # Errors
    /// As [`Fs::write_at`]. The object can then only be discarded.
    pub fn append(&mut self, fs: &dyn Fs, bytes: &[u8]) -> io::Result<()> {
        if let Some(checksums) = &mut self.checksums {
            checksums.add(bytes);
        }
        self.write(fs, bytes)
    }

    fn write(&mut self, fs: &dyn Fs, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let count = fs.write_at(&self.file, bytes, self.written)?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.written += count as u64;
            bytes = bytes.get(count..).unwrap_or_default();
        }
        Ok(())
    }

    /// Returns the file, from which others can send what is written.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the number of bytes written.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }
}

impl Drop for ObjectWriter {
    fn drop(&mut self) {
        if !self.is_committed {
            self.removals.add(Folder::Pending, self.sequence);
        }
    }
}

/// Returns the cache's own files in a folder, and the largest number of a name there. Anything else stays
/// there.
fn own_files(fs: &dyn Fs, root: &File, folder: &[u8]) -> io::Result<(Vec<Entry>, u64)> {
    let entries = read_all_names(fs, root, folder)?;
    let last = entries.iter().filter_map(|entry| sequence_of(&entry.name)).max().unwrap_or(0);
    let (own, others): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_own_file);
    if let Some(other) = others.first() {
        let (folder, name) = (String::from_utf8_lossy(folder), String::from_utf8_lossy(&other.name));
        tracing::warn!(%folder, %name, "the cache's folder has files that are not its own");
    }
    Ok((own, last))
}

/// Fills `into`. Returns false if the file ends before.
fn read_exact(fs: &dyn Fs, file: &File, into: &mut [u8], offset: u64) -> io::Result<bool> {
    match read_all(fs, file, into, offset) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}

#[cfg(test)]
mod tests;
