//! The cases of the benchmark: file sizes, and the use of connections.
//!
//! Sizes are decimal: 1K is 1,000 bytes. Invariant: a case's name must describe it completely.

use std::fs;
use std::path::Path;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::limits::{NEW_BYTES_MAX, NEW_QUICK_BYTES_MAX};
use crate::stats::Chance;

/// Name, size of a file in bytes, and number of files: no size takes much more than 100 MB in total.
const SIZES: [(&str, usize, u32); 5] = [
    ("1K", 1_000, 1000),
    ("10K", 10_000, 1000),
    ("100K", 100_000, 1000),
    ("1M", 1_000_000, 100),
    ("10M", 10_000_000, 10),
];
/// From this size on, a trial is measured [`LONGER`] times as long. Downloads of equal duration end
/// together, so that half a second has eight or nine such ends: the count would be too coarse.
const LONG_FROM_BYTES: usize = 10_000_000;
const LONGER: usize = 4;

/// The use of a connection after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Connections {
    /// It is reused.
    Kept,
    /// Each request has a new one.
    New,
}

impl Connections {
    /// Returns the name in cases and on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Connections::Kept => "kept",
            Connections::New => "new",
        }
    }
}

/// One case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// The name, such as `10K-kept`.
    pub name: String,
    /// The folder of its files, such as `10K`.
    pub size: String,
    /// Bytes of each file.
    pub bytes: usize,
    /// Number of different files that are requested.
    pub files: u32,
    /// The use of connections.
    pub connections: Connections,
}

impl Case {
    fn new(&(size, bytes, files): &(&str, usize, u32), connections: Connections) -> Case {
        let name = format!("{size}-{}", connections.name());
        Case { name, size: size.to_owned(), bytes, files, connections }
    }

    /// Returns the factor by which it is measured longer than other cases.
    pub(crate) fn longer(&self) -> usize {
        if self.bytes >= LONG_FROM_BYTES { LONGER } else { 1 }
    }

    fn is_chosen(&self, word: &str) -> bool {
        [self.name.as_str(), self.size.as_str(), self.connections.name()].contains(&word)
    }
}

/// Returns all cases, those with keep-alive connections first.
pub fn all() -> Vec<Case> {
    let kept = SIZES.iter().map(|size| Case::new(size, Connections::Kept));
    let small = SIZES.iter().filter(|(_, bytes, _)| *bytes <= NEW_BYTES_MAX);
    kept.chain(small.map(|size| Case::new(size, Connections::New))).collect()
}

/// Returns the cases of a quick run.
pub fn quick() -> Vec<Case> {
    let is_quick = |case: &Case| case.connections == Connections::Kept || case.bytes <= NEW_QUICK_BYTES_MAX;
    all().into_iter().filter(is_quick).collect()
}

/// Returns the cases selected by `words`: each is a name, a size, `kept` or `new`.
///
/// # Errors
/// The word that selects no case, and the valid ones.
pub fn named(words: &[String]) -> Result<Vec<Case>> {
    let cases = all();
    if let Some(unknown) = words.iter().find(|word| !cases.iter().any(|case| case.is_chosen(word))) {
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        bail!("no case is called {unknown:?}; there are {}, and kept, new, 1K and so on", names.join(", "));
    }
    Ok(cases.into_iter().filter(|case| words.iter().any(|word| case.is_chosen(word))).collect())
}

/// Creates the files of `cases` below `root` as `SIZE/f0` and on. All differ, and none is compressible.
///
/// # Errors
/// The kernel's error.
pub(super) fn make_files(cases: &[Case], root: &Path) -> Result<()> {
    for case in cases {
        let folder = root.join(&case.size);
        if !folder.exists() {
            fs::create_dir_all(&folder)?;
            (0..case.files).try_for_each(|file| write(&folder, file, case.bytes))?;
        }
    }
    Ok(())
}

fn write(folder: &Path, file: u32, bytes: usize) -> Result<()> {
    let mut chance = Chance::new(u64::from(file) ^ ((bytes as u64) << 32));
    let numbers = std::iter::repeat_with(|| chance.draw().to_le_bytes());
    let content: Vec<u8> = numbers.take(bytes.div_ceil(8)).flatten().take(bytes).collect();
    Ok(fs::write(folder.join(format!("f{file}")), content)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str]) -> Vec<String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        named(&words).unwrap().into_iter().map(|case| case.name).collect()
    }

    #[test]
    fn cases_are_chosen_by_name_by_size_and_by_connections() {
        assert_eq!(names(&["10K-kept"]), ["10K-kept"]);
        assert_eq!(names(&["1K"]), ["1K-kept", "1K-new"]);
        assert_eq!(names(&["new"]), ["1K-new", "10K-new", "100K-new", "1M-new"]);
        assert_eq!(names(&["1M", "1M-kept", "10M"]), ["1M-kept", "10M-kept", "1M-new"]);
        assert!(named(&["2K".to_owned()]).unwrap_err().to_string().contains("10M-kept"));
    }

    #[test]
    fn files_have_their_size_and_no_two_are_alike() {
        let folder = tempfile::tempdir().unwrap();
        let case = Case { files: 3, ..Case::new(&("9B", 9, 3), Connections::Kept) };
        make_files(&[case], folder.path()).unwrap();
        let read = |file: u32| fs::read(folder.path().join(format!("9B/f{file}"))).unwrap();
        assert_eq!([0, 1, 2].map(|file| read(file).len()), [9; 3]);
        assert!(read(0) != read(1) && read(1) != read(2));
    }
}
