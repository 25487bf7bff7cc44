//! The manifest of a backup: a head, a line for each entry, and an end with the digest of all lines above.
//!
//! It copies nothing. Invariant: it is written after every file was read back, and gets its name when it is
//! on the disk.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, bail, ensure};
use plimsoll_cli::output::text;
use rustix::fs::{Advice, fadvise};
use serde::{Deserialize, Serialize};

use super::beneath::{Tree, open_file};
use super::entry::{Entry, EntryKind};
use super::mirror::COPY_BYTES;
use super::{MANIFEST, UNFINISHED};

/// The form of the manifest.
const FORM: u32 = 1;

/// The first line of a manifest.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Head {
    /// The form of the lines, which an older program may not know.
    plimsoll_backup: u32,
    /// The version of the program that made the backup.
    pub(super) version: String,
    /// When it was complete.
    pub(super) created: String,
    /// The user and the group that own the data, and the user's name, if it had one.
    pub(super) owner: (u32, u32, Option<String>),
}

/// The last line of a manifest.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct End {
    end: Sum,
}

/// The sum of a backup.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Sum {
    pub(super) entries: u64,
    pub(super) files: u64,
    pub(super) bytes: u64,
    /// The BLAKE3 digest of the lines above.
    digest: String,
}

impl Head {
    pub(super) fn new(created: String, owner: (u32, u32, Option<String>)) -> Head {
        Head { plimsoll_backup: FORM, version: env!("CARGO_PKG_VERSION").to_owned(), created, owner }
    }
}

impl Sum {
    /// Returns the digest of the lines above, which `lines` has, and of these numbers.
    fn digest_with(&self, lines: &blake3::Hasher) -> String {
        let numbers = [self.entries, self.files, self.bytes].map(u64::to_le_bytes);
        lines.clone().update(numbers.as_flattened()).finalize().to_string()
    }
}

/// A manifest that is being written.
pub(super) struct Writer {
    file: BufWriter<File>,
    digest: blake3::Hasher,
    sum: Sum,
}

impl Writer {
    pub(super) fn new(file: File, head: &Head) -> io::Result<Writer> {
        let (file, digest) = (BufWriter::new(file), blake3::Hasher::new());
        let mut writer = Writer { file, digest, sum: Sum::default() };
        writer.line(&serde_json::to_vec(head)?)?;
        Ok(writer)
    }

    /// Reads an entry of the backup in `tree` back, and adds it.
    ///
    /// # Errors
    /// Also that the disk does not have what was written.
    pub(super) fn add(&mut self, tree: &Tree, mut entry: Entry) -> anyhow::Result<()> {
        (entry.version, entry.missed) = (None, false);
        if let EntryKind::File { size, digest } = &mut entry.kind {
            let path = &entry.path.0;
            let read = read_back(tree, path);
            let read = read.with_context(|| format!("cannot read the copy of {} back", text(path)))?;
            let is_same = *size == read.0 && digest.as_ref().is_none_or(|digest| *digest == read.1);
            ensure!(is_same, "the copy of {} is not what was written: the disk is faulty", text(path));
            *digest = Some(read.1);
            self.sum.files += 1;
            self.sum.bytes += *size;
        }
        self.sum.entries += 1;
        Ok(self.line(&serde_json::to_vec(&entry)?)?)
    }

    /// Writes the end, and waits until the manifest is on the disk.
    pub(super) fn finish(mut self) -> io::Result<Sum> {
        self.sum.digest = self.sum.digest_with(&self.digest);
        serde_json::to_writer(&mut self.file, &End { end: self.sum.clone() })?;
        self.file.write_all(b"\n")?;
        self.file.into_inner()?.sync_all()?;
        Ok(self.sum)
    }

    fn line(&mut self, line: &[u8]) -> io::Result<()> {
        for part in [line, b"\n"] {
            self.digest.update(part);
            self.file.write_all(part)?;
        }
        Ok(())
    }
}

/// Returns the size and the digest of a file, from the disk rather than from memory.
fn read_back(tree: &Tree, path: &[u8]) -> io::Result<(u64, String)> {
    let (folder, name) = tree.parent(path)?;
    let file = open_file(&folder, name)?;
    // Only synced pages are dropped. Where the advice has no effect, memory is read.
    let _ = fadvise(&file, 0, None, Advice::DontNeed);
    let read = digest_of(&file)?;
    let _ = fadvise(&file, 0, None, Advice::DontNeed);
    Ok(read)
}

fn digest_of(mut file: &File) -> io::Result<(u64, String)> {
    let (mut digest, mut buffer, mut size) = (blake3::Hasher::new(), vec![0; COPY_BYTES], 0);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((size, digest.finalize().to_string())),
            count => {
                digest.update(&buffer[..count]);
                size += count as u64;
            }
        }
    }
}

/// A complete manifest.
pub(super) struct Manifest {
    file: File,
    pub(super) head: Head,
    pub(super) sum: Sum,
}

impl Manifest {
    /// Opens the manifest of the backup `folder`.
    ///
    /// # Errors
    /// Also that the folder has no complete backup.
    pub(super) fn open(folder: &Path) -> anyhow::Result<Manifest> {
        let shown = folder.display();
        let file = match File::open(folder.join(MANIFEST)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && folder.join(UNFINISHED).exists() => {
                bail!(
                    "{shown} has a backup that was interrupted, and cannot be restored; take another one: \
                 plimsoll backup DIR"
                )
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                bail!("{shown} has no backup: name a folder that plimsoll backup has made")
            }
            opened => opened.with_context(|| format!("cannot open the manifest of the backup {shown}"))?,
        };
        let checked =
            check(&file).with_context(|| format!("cannot read the manifest of the backup {shown}"))?;
        let Some((head, sum)) = checked else {
            bail!("the manifest of the backup {shown} is damaged: restore another backup")
        };
        ensure!(
            head.plimsoll_backup == FORM,
            "plimsoll {} made the backup {shown}: restore it with that version or a later one",
            head.version
        );
        Ok(Manifest { file, head, sum })
    }

    /// Calls `each` with each entry, folders before their contents.
    pub(super) fn entries(&self, mut each: impl FnMut(Entry) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let mut file = &self.file;
        io::Seek::rewind(&mut file)?;
        let lines = BufReader::new(file).lines().skip(1);
        for line in lines.take(usize::try_from(self.sum.entries)?) {
            each(serde_json::from_str(&line?)?)?;
        }
        Ok(())
    }
}

/// Reads a whole manifest; `None` if it is not complete.
fn check(file: &File) -> anyhow::Result<Option<(Head, Sum)>> {
    let (mut digest, mut lines) = (blake3::Hasher::new(), BufReader::new(file));
    let (mut line, mut head, mut count) = (Vec::new(), None::<Head>, 0);
    while lines.read_until(b'\n', &mut line)? > 0 {
        if let Ok(End { end }) = serde_json::from_slice(&line) {
            let is_whole = end.digest == end.digest_with(&digest) && end.entries + 1 == count;
            return Ok(head.filter(|_| is_whole).map(|head| (head, end)));
        }
        if count == 0 {
            head = serde_json::from_slice(&line).ok();
        }
        digest.update(&line);
        count += 1;
        line.clear();
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;

    use super::*;
    use crate::backup::entry::EntryKind;

    fn manifest(folder: &Path, digest: Option<String>) -> anyhow::Result<Sum> {
        std::fs::write(folder.join("file"), "bytes").unwrap();
        let found = folder.join("file").metadata().unwrap();
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).open(folder.join(MANIFEST)).unwrap();
        let mut writer = Writer::new(file, &Head::new(String::new(), (0, 0, None))).unwrap();
        let kind = EntryKind::File { size: 5, digest };
        writer.add(&Tree::open(folder).unwrap(), Entry::new(b"file".to_vec(), kind, &found, None))?;
        Ok(writer.finish().unwrap())
    }

    #[test]
    fn a_manifest_that_lacks_any_byte_of_its_end_is_no_backup() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        assert!(Manifest::open(folder).err().unwrap().to_string().contains("has no backup"));
        let sum = manifest(folder, None).unwrap();
        assert_eq!((sum.entries, sum.files, sum.bytes), (1, 1, 5));
        let opened = Manifest::open(folder).unwrap();
        let mut paths = Vec::new();
        let push = |entry: Entry| {
            paths.push(entry.path.0);
            Ok(())
        };
        opened.entries(push).unwrap();
        assert_eq!(paths, [b"file"]);
        let whole = std::fs::read(folder.join(MANIFEST)).unwrap();
        let flipped = |at: usize| {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            bytes
        };
        let cut = |len: usize| whole[..len].to_vec();
        for len in 0..whole.len() - 1 {
            for bytes in [cut(len), flipped(len)] {
                std::fs::write(folder.join(MANIFEST), bytes).unwrap();
                assert!(Manifest::open(folder).is_err(), "{len}");
            }
        }
    }

    #[test]
    fn a_copy_with_other_bytes_than_were_written_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let written = Some(blake3::hash(b"bytes").to_string());
        assert!(manifest(folder.path(), written).is_ok());
        let other = Some(blake3::hash(b"other").to_string());
        assert!(manifest(folder.path(), other).unwrap_err().to_string().contains("the disk is faulty"));
    }
}
