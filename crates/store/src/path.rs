//! A path in a home: plain names, from the home's root down.
//!
//! It is not yet a file. Invariant: no name in it is empty, `.` or `..`, or contains `/` or NUL. So a path
//! means the same to a file system as in a comparison. Other control characters may be in names that the
//! operator made: these are read, replaced, moved away and removed as others are, but no new one is made.

use std::sync::Arc;

use plimsoll_io::BOUNDARY;
use plimsoll_wire::http::target::has_adjacent_slashes;
use serde::{Deserialize, Serialize};

use crate::limits::{NAME_BYTES_MAX, PATH_BYTES_MAX, PATH_NAMES_MAX};
use crate::volumes::STAGING;

/// A path in a home. The empty path is the home itself. Clones share their bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    bytes: Arc<[u8]>,
    /// How many of the bytes name the folder that no link may lead out of; none for the home itself.
    top: usize,
}

/// The reason why a path is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum BadPath {
    /// `.` or `..`.
    #[error("a path has \".\" or \"..\" in it")]
    DotName,
    /// NUL, or another control character in a new name.
    #[error("a path has a control character in it")]
    Control,
    /// The name of the server's own folder for staging.
    #[error("a path has the name of the server's own folder in it")]
    Reserved,
    /// A name of more than [`NAME_BYTES_MAX`] bytes, or a path of more than [`PATH_BYTES_MAX`].
    #[error("a name is longer than 255 bytes, or a path longer than 3900")]
    TooLong,
    /// More than [`PATH_NAMES_MAX`] folders deep.
    #[error("a path is more than 128 folders deep")]
    TooDeep,
}

impl Path {
    /// The home itself.
    pub fn root() -> Path {
        Path { bytes: Arc::default(), top: 0 }
    }

    /// Parses a path. Slashes at its start and end are optional, and adjacent ones count as one.
    ///
    /// # Errors
    /// [`BadPath`] if the path is invalid.
    pub fn parse(text: &[u8]) -> Result<Path, BadPath> {
        let merged = has_adjacent_slashes(text).then(|| merge_slashes(text));
        let text = merged.as_deref().unwrap_or(text);
        let text = text.strip_prefix(b"/").unwrap_or(text);
        let text = text.strip_suffix(b"/").unwrap_or(text);
        if text.is_empty() {
            return Ok(Path::root());
        }
        if text.len() > PATH_BYTES_MAX {
            return Err(BadPath::TooLong);
        }
        let mut names = 0;
        for name in text.split(|byte| *byte == b'/') {
            check_name(name)?;
            names += 1;
        }
        if names > PATH_NAMES_MAX { Err(BadPath::TooDeep) } else { Ok(Path { bytes: text.into(), top: 0 }) }
    }

    /// Returns the same path, resolved beneath `folder`: links on the way may lead anywhere within
    /// `folder`, and not out of it. A path that is neither `folder` nor below it is returned unchanged.
    #[must_use]
    pub fn beneath(self, folder: &Path) -> Path {
        let top = if self.is_within(folder) { folder.bytes.len() } else { self.top };
        Path { top, ..self }
    }

    /// Returns the path of the entry `name` of this folder, bounded as the folder is.
    ///
    /// # Errors
    /// As [`Path::parse`].
    pub(crate) fn entry(&self, name: &[u8]) -> Result<Path, BadPath> {
        let inner = Path::parse(&[&*self.bytes, b"/", name].concat())?;
        Ok(Path { top: self.top, ..inner })
    }

    /// Whether it is the folder that no link may lead out of, and not an entry in it.
    pub fn is_top(&self) -> bool {
        self.top == self.bytes.len()
    }

    /// Whether links in the path may lead at least as far out as those of `other`, which names the same
    /// file.
    pub fn is_bounded_no_closer_than(&self, other: &Path) -> bool {
        self.top <= other.top
    }

    /// The folder that no link may lead out of.
    pub(crate) fn top(&self) -> &[u8] {
        &self.bytes[..self.top]
    }

    /// Its bytes, without a slash at either end.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The path as [`plimsoll_io::Fs::open_beneath`] takes it, below the home's folder. [`BOUNDARY`]
    /// follows the folder that no link may lead out of.
    pub fn to_open(&self) -> Vec<u8> {
        self.bounded(&self.bytes)
    }

    /// Returns the entry `inner` of this folder, as a name to open.
    pub(crate) fn to_open_below(&self, inner: &[u8]) -> Vec<u8> {
        let slash: &[u8] = if self.is_root() || self.is_top() { b"" } else { b"/" };
        [&self.to_open(), slash, inner].concat()
    }

    /// The start of the path as a name to open.
    fn bounded(&self, start: &[u8]) -> Vec<u8> {
        if self.top == 0 || start.len() < self.top {
            return start.to_vec();
        }
        [self.top(), BOUNDARY, start[self.top..].strip_prefix(b"/").unwrap_or_default()].concat()
    }

    /// Whether it is the home itself.
    pub fn is_root(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The parent folder, as a name to open, and the last name; none for the home itself.
    pub(crate) fn split_last(&self) -> Option<(Vec<u8>, &[u8])> {
        if self.is_root() {
            return None;
        }
        Some(match self.bytes.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (self.bounded(&self.bytes[..slash]), &self.bytes[slash + 1..]),
            None => (Vec::new(), &self.bytes),
        })
    }

    /// Its parent folder; none for the home itself, and for a folder that no link may lead out of.
    pub fn parent(&self) -> Option<Path> {
        let end = self.parent_bytes().len();
        let is_inside = !self.is_root() && end >= self.top && !(self.top > 0 && self.is_top());
        is_inside.then(|| Path { bytes: self.bytes[..end].into(), top: self.top })
    }

    /// The bytes of its parent folder, without a slash at either end.
    pub(crate) fn parent_bytes(&self) -> &[u8] {
        let end = self.bytes.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        &self.bytes[..end]
    }

    /// The number of names in it.
    pub fn depth(&self) -> usize {
        if self.is_root() { 0 } else { self.bytes.split(|byte| *byte == b'/').count() }
    }

    /// Whether it is `folder` or lies below it.
    pub fn is_within(&self, folder: &Path) -> bool {
        folder.is_root()
            || self.bytes.strip_prefix(&*folder.bytes).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", String::from_utf8_lossy(&self.bytes))
    }
}

fn merge_slashes(text: &[u8]) -> Vec<u8> {
    let mut merged = text.to_vec();
    merged.dedup_by(|next, last| (*next, *last) == (b'/', b'/'));
    merged
}

/// Whether a path can have the name. No listing shows another.
pub fn is_name(name: &[u8]) -> bool {
    check_name(name).is_ok()
}

/// Checks a name that is to be made: scripts and terminals take a control character in it for more than a
/// name.
pub(crate) fn check_new_name(name: &[u8]) -> Result<(), BadPath> {
    if name.iter().any(u8::is_ascii_control) { Err(BadPath::Control) } else { Ok(()) }
}

fn check_name(name: &[u8]) -> Result<(), BadPath> {
    match name {
        b"." | b".." => Err(BadPath::DotName),
        STAGING => Err(BadPath::Reserved),
        _ if name.len() > NAME_BYTES_MAX => Err(BadPath::TooLong),
        _ if name.contains(&0) => Err(BadPath::Control),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Path {
        Path::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn slashes_at_the_ends_and_repeated_slashes_mean_nothing() {
        for text in ["/a/b/", "//a/b", "a//b", "a/b//", "///a////b///"] {
            assert_eq!(path(text), path("a/b"), "{text}");
            assert_eq!(path(text).as_bytes(), b"a/b");
        }
        assert!(path("/").is_root() && path("").is_root() && path("//").is_root());
        assert_eq!(Path::parse(b"a//../b"), Err(BadPath::DotName));
    }

    #[test]
    fn a_path_that_a_file_system_reads_differently_is_refused() {
        for (text, bad) in [
            ("..", BadPath::DotName),
            ("a/../b", BadPath::DotName),
            ("./a", BadPath::DotName),
            ("a\0b", BadPath::Control),
        ] {
            assert_eq!(Path::parse(text.as_bytes()), Err(bad), "{text:?}");
        }
    }

    #[test]
    fn names_and_paths_are_bounded() {
        let name = "n".repeat(NAME_BYTES_MAX);
        assert!(Path::parse(name.as_bytes()).is_ok());
        assert_eq!(Path::parse(format!("{name}n").as_bytes()), Err(BadPath::TooLong));
        let deep = vec!["d"; PATH_NAMES_MAX].join("/");
        assert!(Path::parse(deep.as_bytes()).is_ok());
        assert_eq!(Path::parse(format!("{deep}/d").as_bytes()), Err(BadPath::TooDeep));
        let long = vec![name.as_str(); PATH_BYTES_MAX / 256 + 1].join("/");
        assert_eq!(Path::parse(long.as_bytes()), Err(BadPath::TooLong));
    }

    #[test]
    fn names_may_be_any_other_bytes() {
        assert!(Path::parse(b"\xff\xfe/ \\:*?\"<>|/...").is_ok());
    }

    #[test]
    fn within_goes_by_whole_names() {
        assert!(path("a/b").is_within(&path("a")) && path("a").is_within(&path("a")));
        assert!(path("a").is_within(&Path::root()));
        assert!(!path("ab").is_within(&path("a")) && !path("a").is_within(&path("a/b")));
    }

    #[test]
    fn a_path_beneath_a_folder_is_opened_in_two_steps() {
        let beneath = |text, folder| path(text).beneath(&path(folder));
        for (text, folder, opened, parent) in [
            ("a/b/c", "a", "a//b/c", "a//b"),
            ("a/b", "a", "a//b", "a//"),
            ("a/b", "a/b", "a/b//", "a"),
            ("a/b", "", "a/b", "a"),
            ("a/b", "x", "a/b", "a"),
        ] {
            let path = beneath(text, folder);
            assert_eq!(path.to_open(), opened.as_bytes(), "{text} {folder}");
            assert_eq!(path.split_last().unwrap().0, parent.as_bytes(), "{text} {folder}");
            assert_eq!(path.as_bytes(), text.as_bytes());
        }
    }

    #[test]
    fn the_last_name_is_split_off() {
        assert_eq!(path("a/b/c").split_last(), Some((b"a/b".to_vec(), &b"c"[..])));
        assert_eq!(path("c").split_last(), Some((Vec::new(), &b"c"[..])));
        assert_eq!(Path::root().split_last(), None);
    }
}
