//! One pass over a unit: its copy becomes equal to it, and unchanged files are not copied again.
//!
//! If two passes find the same versions, nothing changed between the end of the first and the start of the
//! second: the copy is of that moment. Invariant: an entry in the list is in the
//! copy, whole.

use std::collections::HashSet;
use std::fs::{File, FileTimes, Metadata, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;

use anyhow::Context as _;
use rustix::fs::{ioctl_ficlone, readlinkat, symlinkat};
use rustix::io::Errno;

use super::at;
use super::beneath::{Tree, create, join, look, names, open_file, remove};
use super::entry::{Entry, EntryKind, EntryPath, Version};
use super::lists::Entries;
use super::unit::{Skipped, Unit};

/// Bytes that are copied at a time.
pub(super) const COPY_BYTES: usize = 1024 * 1024;

/// Files that were copied, by method, and entries that were not.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// Files that share their blocks with the original until one of the two changes.
    pub(super) cloned: u64,
    /// Files that were read and written.
    pub(super) copied: u64,
    /// Sockets, pipes and devices.
    pub(super) special: HashSet<Vec<u8>>,
}

/// A pass over a unit.
pub(super) struct Pass<'a> {
    unit: &'a Unit,
    skipped: &'a Skipped,
    from: Tree,
    to: Tree,
    before: Entries,
    entries: Entries,
    counts: &'a mut Counts,
    /// Entries of the copy that the unit no longer has.
    gone: Vec<Vec<u8>>,
    has_changes: bool,
}

/// The result of a pass.
pub(super) struct Found {
    pub(super) entries: Entries,
    /// Whether anything differs from the pass before.
    pub(super) has_changes: bool,
}

impl<'a> Pass<'a> {
    /// Prepares a pass from the data folder to its copy. Returns `None` if the unit is gone.
    pub(super) fn new(
        (unit, skipped): (&'a Unit, &'a Skipped),
        (data, copy): (&Tree, &Tree),
        before: Entries,
        counts: &'a mut Counts,
    ) -> io::Result<Option<Pass<'a>>> {
        let folder = unit.folder();
        let from = match data.at(&folder) {
            Err(error) if is_gone(&error) => return Ok(None),
            Err(error)
                if error.kind() == io::ErrorKind::PermissionDenied
                    && Skipped::is_of_the_file_system(unit, b"") =>
            {
                return Ok(None);
            }
            opened => opened?,
        };
        copy.make_folder(&folder)?;
        let to = copy.at(&folder)?;
        let (entries, gone) = (Entries::new(), Vec::new());
        Ok(Some(Pass { unit, skipped, from, to, before, entries, counts, gone, has_changes: false }))
    }

    /// Runs the pass. Entries that it does not find stay in the copy until a pass finds no change: while
    /// files are moved, passes can miss a file that was there all the time.
    pub(super) fn run(mut self) -> anyhow::Result<Found> {
        let mut ahead = vec![Vec::new()];
        while let Some(path) = ahead.pop() {
            self.folder(&path, &mut ahead)
                .map_err(|error| naming(&path, error))
                .with_context(|| at(&self.unit.folder()))?;
        }
        let gone = std::mem::take(&mut self.gone);
        self.has_changes |= gone.iter().any(|path| !self.was_missed(path));
        let found: HashSet<(u64, u64)> = self.entries.values().filter_map(identity).collect();
        for path in gone {
            let done = match self.has_changes {
                true => self.keep(&path, &found),
                false => self.drop_copy(&path),
            };
            done.with_context(|| at(&path))?;
        }
        Ok(Found { entries: self.entries, has_changes: self.has_changes })
    }

    fn folder(&mut self, path: &[u8], ahead: &mut Vec<Vec<u8>>) -> io::Result<()> {
        let source = match self.from.folder(path) {
            Err(error) if is_gone(&error) => {
                self.gone.push(path.to_vec());
                return Ok(());
            }
            Err(error)
                if error.kind() == io::ErrorKind::PermissionDenied
                    && Skipped::is_of_the_file_system(self.unit, path) =>
            {
                return Ok(());
            }
            opened => opened?,
        };
        // Before the names: a name that is added meanwhile gives the folder another version.
        let found = source.metadata()?;
        self.note(path, EntryKind::Folder, &found, Version::of(&found));
        let target = self.to.make_folder(path)?;
        let mut present = HashSet::new();
        for name in names(&source)? {
            let inner = join(path, &name);
            if self.skipped.has(self.unit, &inner) {
                continue;
            }
            self.entry((&source, &target), &name, &inner, ahead).map_err(|error| naming(&inner, error))?;
            present.insert(name);
        }
        let gone = names(&target)?.into_iter().filter(|name| !present.contains(name));
        let gone = gone.map(|name| join(path, &name)).filter(|path| !self.skipped.has(self.unit, path));
        self.gone.extend(gone);
        Ok(())
    }

    /// Records an entry, and whether it differs from the pass before.
    fn note(&mut self, path: &[u8], kind: EntryKind, found: &Metadata, version: Option<Version>) {
        let before = self.before.get(path).filter(|entry| !entry.missed).and_then(|entry| entry.version);
        self.has_changes |= version.is_none() || version != before;
        self.entries.insert(path.to_vec(), Entry::new(path.to_vec(), kind, found, version));
    }

    fn entry(
        &mut self,
        (source, target): (&File, &File),
        name: &[u8],
        path: &[u8],
        ahead: &mut Vec<Vec<u8>>,
    ) -> io::Result<()> {
        let copied = look(source, name).and_then(|looked| {
            let found = looked.metadata()?;
            match found.file_type() {
                kind if kind.is_dir() => ahead.push(path.to_vec()),
                kind if kind.is_file() => return self.file((source, target), name, path, &found),
                kind if kind.is_symlink() => return self.link((source, target), name, path, &found),
                _ => drop(self.counts.special.insert(join(&self.unit.folder(), path))),
            }
            Ok(())
        });
        match copied {
            Err(error) if is_gone(&error) => self.gone.push(path.to_vec()),
            other => other?,
        }
        Ok(())
    }

    /// Copies a file, unless the copy has this version of it.
    fn file(
        &mut self,
        (source, target): (&File, &File),
        name: &[u8],
        path: &[u8],
        found: &Metadata,
    ) -> io::Result<()> {
        let version = Version::of(found);
        if let Some(entry) = self.before.get(path)
            && entry.size().is_some()
            && version.is_some()
            && entry.version == version
        {
            self.has_changes |= entry.missed;
            self.entries.insert(path.to_vec(), Entry { missed: false, ..entry.clone() });
            return Ok(());
        }
        let source = open_file(source, name)?;
        let found = source.metadata()?;
        if !found.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        remove(target, name)?;
        let mut copy = create(target, name)?;
        let digest = self.bytes(&source, &mut copy, found.len())?;
        let modified = found.modified()?;
        copy.set_times(FileTimes::new().set_modified(modified))?;
        let kind = EntryKind::File { size: copy.metadata()?.len(), digest };
        let after = source.metadata()?;
        // Another program writes to it in place.
        let is_torn = after.modified()? != modified || after.len() != found.len();
        let version = if is_torn { None } else { Version::of(&found) };
        self.note(path, kind, &found, version);
        Ok(())
    }

    /// Clones or copies the bytes of a file. Returns their digest if they were read.
    fn bytes(&mut self, source: &File, copy: &mut File, len: u64) -> io::Result<Option<String>> {
        if ioctl_ficlone(&*copy, source).is_ok() {
            self.counts.cloned += 1;
            return Ok(None);
        }
        self.counts.copied += 1;
        let (mut digest, mut buffer) = (blake3::Hasher::new(), vec![0; COPY_BYTES]);
        let mut source = source.take(len);
        loop {
            match source.read(&mut buffer)? {
                0 => return Ok(Some(digest.finalize().to_string())),
                count => {
                    digest.update(&buffer[..count]);
                    copy.write_all(&buffer[..count])?;
                }
            }
        }
    }

    fn link(
        &mut self,
        (source, target): (&File, &File),
        name: &[u8],
        path: &[u8],
        found: &Metadata,
    ) -> io::Result<()> {
        let to = readlinkat(source, name, Vec::new())?.into_bytes();
        remove(target, name)?;
        symlinkat(to.as_slice(), target, name)?;
        self.note(path, EntryKind::Link { target: EntryPath(to) }, found, Version::of(found));
        Ok(())
    }

    fn drop_copy(&self, path: &[u8]) -> io::Result<()> {
        match self.to.parent(path) {
            Err(error) if is_gone(&error) => Ok(()),
            parent => {
                let (folder, name) = parent?;
                remove(&folder, name)
            }
        }
    }

    /// Returns the entries of the pass before at and below `path`.
    fn before_at(&self, path: &[u8]) -> impl DoubleEndedIterator<Item = (&Vec<u8>, &Entry)> {
        // `0` is the byte after `/`.
        let below = [path, b"/"].concat()..[path, b"0"].concat();
        self.before.get_key_value(path).into_iter().chain(self.before.range(below))
    }

    /// Returns whether the pass before did not find anything at and below `path` either.
    fn was_missed(&self, path: &[u8]) -> bool {
        let mut entries = self.before_at(path).peekable();
        entries.peek().is_some() && entries.all(|(_, entry)| entry.missed)
    }

    /// Keeps what the copy has at and below `path`, but for what was `found` under another name.
    fn keep(&mut self, path: &[u8], found: &HashSet<(u64, u64)>) -> io::Result<()> {
        let before: Vec<_> = self.before_at(path).map(|(_, entry)| entry.clone()).collect();
        if before.is_empty() {
            return self.drop_copy(path);
        }
        // What is in a folder comes before the folder.
        for entry in before.into_iter().rev() {
            let path = entry.path.0.clone();
            let is_renamed = identity(&entry).is_some_and(|id| found.contains(&id));
            let below = join(&path, b"");
            let has_kept =
                self.entries.range(below.clone()..).next().is_some_and(|(kept, _)| kept.starts_with(&below));
            match is_renamed && !has_kept {
                true => self.drop_copy(&path)?,
                false => drop(self.entries.insert(path, Entry { missed: true, ..entry })),
            }
        }
        Ok(())
    }
}

/// Returns the error with the path of its entry, unless it has one.
fn naming(path: &[u8], error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(_) => io::Error::new(error.kind(), format!("{}: {error}", plimsoll_cli::output::text(path))),
        None => error,
    }
}

/// Returns the device and inode that an entry was copied from.
fn identity(entry: &Entry) -> Option<(u64, u64)> {
    entry.version.map(|version| (version.device, version.inode))
}

/// Returns whether the entry was removed, or replaced by one of another kind, since it was listed.
fn is_gone(error: &io::Error) -> bool {
    // ELOOP: it is a link now.
    let is_link = Errno::from_io_error(error) == Some(Errno::LOOP);
    is_link || matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Sets the mode and the time of a restored file or folder.
pub(super) fn set_metadata(file: &File, entry: &Entry) -> io::Result<()> {
    let (seconds, nanoseconds) = entry.modified;
    let time = rustix::fs::Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
    rustix::fs::futimens(file, &times)?;
    file.set_permissions(Permissions::from_mode(entry.mode))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;
    use crate::backup::entry::FILE_TIME_TICK;
    use crate::config::Config;

    fn pass(data: &Path, copy: &Path, before: Entries) -> Found {
        std::thread::sleep(FILE_TIME_TICK + Duration::from_millis(5));
        let (unit, skipped) = (Unit::Home(b"alice".to_vec()), Skipped::of(&Config::of(&[])));
        let trees = (&Tree::open(data).unwrap(), &Tree::open(copy).unwrap());
        let mut counts = Counts::default();
        let pass = Pass::new((&unit, &skipped), trees, before, &mut counts).unwrap().unwrap();
        pass.run().unwrap()
    }

    fn files(copy: &Path) -> Vec<String> {
        let files = std::fs::read_dir(copy.join("accounts/alice/files")).unwrap();
        let mut files: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        files.sort();
        files
    }

    #[test]
    fn a_second_pass_finds_no_change_or_copies_what_changed() {
        let (data, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (data, copy) = (data.path(), copy.path());
        std::fs::create_dir(copy.join("accounts")).unwrap();
        let home = data.join("accounts/alice/files");
        std::fs::create_dir_all(&home).unwrap();
        std::fs::create_dir_all(data.join("accounts/alice/pending/trash")).unwrap();
        for name in ["upload", "trash/deleted"] {
            std::fs::write(data.join("accounts/alice/pending").join(name), name).unwrap();
        }
        for name in ["kept", "changed", "renamed", "removed", "becomes a folder"] {
            std::fs::write(home.join(name), name).unwrap();
        }
        let first = pass(data, copy, Entries::new());
        let pending = copy.join("accounts/alice/pending");
        assert!(first.has_changes && !pending.join("upload").exists());
        assert!(pending.join("trash/deleted").exists());
        let second = pass(data, copy, first.entries);
        assert!(!second.has_changes);
        std::fs::write(home.join("changed"), "anew").unwrap();
        std::fs::rename(home.join("renamed"), home.join("another name")).unwrap();
        std::fs::remove_file(home.join("removed")).unwrap();
        std::fs::remove_file(home.join("becomes a folder")).unwrap();
        std::fs::create_dir(home.join("becomes a folder")).unwrap();
        let third = pass(data, copy, second.entries);
        assert!(third.has_changes);
        assert_eq!(std::fs::read(copy.join("accounts/alice/files/changed")).unwrap(), b"anew");
        let fourth = pass(data, copy, third.entries);
        assert!(!fourth.has_changes);
        assert_eq!(files(copy), ["another name", "becomes a folder", "changed", "kept"]);
        let listed: Vec<_> = fourth.entries.keys().map(|path| String::from_utf8_lossy(path)).collect();
        let files = ["files/another name", "files/becomes a folder", "files/changed", "files/kept"];
        let trash = ["pending", "pending/trash", "pending/trash/deleted"];
        assert_eq!(listed, [&["", "files"][..], &files, &trash].concat());
    }

    #[test]
    fn a_file_that_passes_miss_stays_until_nothing_changes_and_an_old_name_of_a_found_file_goes() {
        let (data, copy) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (data, copy) = (data.path(), copy.path());
        std::fs::create_dir(copy.join("accounts")).unwrap();
        let home = data.join("accounts/alice/files");
        std::fs::create_dir_all(home.join("missed")).unwrap();
        std::fs::create_dir(home.join("moved")).unwrap();
        for name in ["missed/inner", "missed.txt", "moved/inner", "renamed"] {
            std::fs::write(home.join(name), name).unwrap();
        }
        let first = pass(data, copy, Entries::new());
        std::fs::rename(home.join("moved"), home.join("another")).unwrap();
        std::fs::rename(home.join("renamed"), home.join("new")).unwrap();
        for name in ["missed", "missed.txt"] {
            std::fs::rename(home.join(name), data.join(name)).unwrap();
        }
        let second = pass(data, copy, first.entries);
        std::fs::write(home.join("new"), "anew").unwrap();
        let third = pass(data, copy, second.entries);
        assert_eq!(files(copy), ["another", "missed", "missed.txt", "new"]);
        std::fs::rename(data.join("missed"), home.join("missed")).unwrap();
        let fourth = pass(data, copy, third.entries);
        let listed: Vec<_> = fourth.entries.keys().map(|path| String::from_utf8_lossy(path)).collect();
        let found = ["files/another", "files/another/inner", "files/missed", "files/missed.txt"];
        assert_eq!(listed, [&["", "files"][..], &found, &["files/missed/inner", "files/new"]].concat());
        let fifth = pass(data, copy, fourth.entries);
        assert!(!fifth.has_changes);
        assert_eq!(files(copy), ["another", "missed", "new"]);
        assert_eq!(std::fs::read(copy.join("accounts/alice/files/missed/inner")).unwrap(), b"missed/inner");
    }
}
