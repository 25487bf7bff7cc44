//! Makes and removes the files that contenders serve.
//!
//! It overwrites nothing. Invariants: all files differ, and none can be compressed; the same seed gives the
//! same bytes; the files are on the disk when the request is done, so that a later drop of the page cache
//! removes them.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::FileSet;
use crate::stats::Chance;

/// The part of a folder that the files of a set may take; the rest is left to others.
const FREE_SHARE: f64 = 0.9;

/// Makes the files of a set below `root`, unless they are there. `is_ending` ends it.
pub(super) fn make(root: &Path, set: &FileSet, is_ending: &dyn Fn() -> bool) -> Result<()> {
    let folder = root.join(&set.folder);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let missing: Vec<u64> =
        (0..set.count).filter(|number| !is_whole(&folder.join(name(set, *number)), set)).collect();
    let needed = set.bytes.saturating_mul(missing.len() as u64);
    let free = free_bytes(&folder)?;
    ensure!(
        needed as f64 <= free as f64 * FREE_SHARE,
        "the files of set {:?} need {needed} bytes, and {} has {free} left: make room, set a `budget`, \
         or choose another folder by --work",
        set.folder,
        folder.display()
    );
    for number in &missing {
        ensure!(!is_ending(), "the agent is ending");
        let path = folder.join(name(set, *number));
        write(&path, set.bytes, set.seed ^ mixed(set, *number))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if !missing.is_empty() {
        rustix::fs::syncfs(File::open(&folder)?)?;
    }
    Ok(())
}

/// Removes the folder of a set.
pub(super) fn remove(root: &Path, set: &FileSet) -> Result<()> {
    let folder = root.join(&set.folder);
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", folder.display()))
        }
        _ => Ok(()),
    }
}

fn name(set: &FileSet, number: u64) -> String {
    set.pattern.replacen("{}", &number.to_string(), 1)
}

fn is_whole(path: &Path, set: &FileSet) -> bool {
    path.metadata().is_ok_and(|file| file.len() == set.bytes)
}

fn mixed(set: &FileSet, number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ set.bytes.rotate_left(32)
}

fn write(path: &Path, bytes: u64, seed: u64) -> io::Result<()> {
    let mut chance = Chance::new(seed);
    let mut file = BufWriter::with_capacity(1 << 16, File::create(path)?);
    let mut left = bytes;
    while left > 0 {
        let word = chance.draw().to_le_bytes();
        let part = usize::try_from(left).unwrap_or(usize::MAX).min(word.len());
        file.write_all(&word[..part])?;
        left -= part as u64;
    }
    file.flush()
}

fn free_bytes(folder: &Path) -> Result<u64> {
    let space = rustix::fs::statvfs(folder)?;
    Ok(space.f_bavail.saturating_mul(space.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(count: u64, bytes: u64) -> FileSet {
        FileSet { folder: "set".to_owned(), pattern: "f{}.bin".to_owned(), bytes, count, seed: 1 }
    }

    #[test]
    fn files_have_their_size_and_differ_and_can_be_made_again() {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path(), &set(3, 1001), &|| false).unwrap();
        let read = |number: u64| fs::read(folder.path().join(format!("set/f{number}.bin"))).unwrap();
        let before = [read(0), read(1), read(2)];
        assert!(before.iter().all(|file| file.len() == 1001));
        assert!(before[0] != before[1] && before[1] != before[2]);
        remove(folder.path(), &set(3, 1001)).unwrap();
        assert!(!folder.path().join("set").exists());
        make(folder.path(), &set(3, 1001), &|| false).unwrap();
        assert_eq!([read(0), read(1), read(2)], before);
        remove(folder.path(), &set(3, 1001)).unwrap();
        remove(folder.path(), &set(3, 1001)).unwrap();
    }

    #[test]
    fn a_cut_file_is_made_again_and_a_whole_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        make(folder.path(), &set(2, 100), &|| false).unwrap();
        let path = folder.path().join("set/f0.bin");
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..50]).unwrap();
        make(folder.path(), &set(2, 100), &|| false).unwrap();
        assert_eq!(fs::read(&path).unwrap(), whole);
    }

    #[test]
    fn files_that_do_not_fit_are_refused_before_one_is_made() {
        let folder = tempfile::tempdir().unwrap();
        let refused = make(folder.path(), &set(1000, 1 << 50), &|| false).unwrap_err();
        assert!(refused.to_string().contains("make room"), "{refused}");
        assert_eq!(fs::read_dir(folder.path().join("set")).unwrap().count(), 0);
    }
}
