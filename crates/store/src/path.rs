//! A path in a home: plain names, from the home's root down.
//!
//! It is not yet a file. What must hold: no name in it is empty, `.`, `..`, or has a `/`, NUL or another
//! control character; so it means the same to a file system as to whoever compares it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::limits::{NAME_BYTES_MAX, PATH_BYTES_MAX, PATH_NAMES_MAX};

/// A path in a home. The empty path is the home itself. Clones share their bytes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(Arc<[u8]>);

/// What is wrong with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum BadPath {
    /// An empty name between slashes.
    #[error("a path has \"//\" in it")]
    EmptyName,
    /// `.` or `..`.
    #[error("a path has \".\" or \"..\" in it")]
    DotName,
    /// A control character, NUL among them.
    #[error("a path has a control character in it")]
    Control,
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
        Path(Arc::default())
    }

    /// Reads a path; a slash at its start and one at its end may be there or not.
    ///
    /// # Errors
    /// What no path may be.
    pub fn parse(text: &[u8]) -> Result<Path, BadPath> {
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
        if names > PATH_NAMES_MAX { Err(BadPath::TooDeep) } else { Ok(Path(text.into())) }
    }

    /// Its bytes, without a slash at either end.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Whether it is the home itself.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The folder that it is in, and its last name; none for the home itself.
    pub fn split_last(&self) -> Option<(&[u8], &[u8])> {
        if self.is_root() {
            return None;
        }
        Some(match self.0.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => (&self.0[..slash], &self.0[slash + 1..]),
            None => (&[], &self.0),
        })
    }

    /// How many names it has.
    pub fn depth(&self) -> usize {
        if self.is_root() { 0 } else { self.0.split(|byte| *byte == b'/').count() }
    }

    /// Whether it is `folder` or lies below it.
    pub fn is_within(&self, folder: &Path) -> bool {
        folder.is_root()
            || self.0.strip_prefix(&*folder.0).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
    }
}

impl std::fmt::Display for Path {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", String::from_utf8_lossy(&self.0))
    }
}

fn check_name(name: &[u8]) -> Result<(), BadPath> {
    match name {
        b"" => Err(BadPath::EmptyName),
        b"." | b".." => Err(BadPath::DotName),
        _ if name.len() > NAME_BYTES_MAX => Err(BadPath::TooLong),
        _ if name.iter().any(u8::is_ascii_control) => Err(BadPath::Control),
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
    fn slashes_at_the_ends_mean_nothing() {
        assert_eq!(path("/a/b/"), path("a/b"));
        assert!(path("/").is_root() && path("").is_root());
    }

    #[test]
    fn what_a_file_system_would_understand_otherwise_is_refused() {
        for (text, bad) in [
            ("a//b", BadPath::EmptyName),
            ("//a", BadPath::EmptyName),
            ("a//", BadPath::EmptyName),
            ("..", BadPath::DotName),
            ("a/../b", BadPath::DotName),
            ("./a", BadPath::DotName),
            ("a\0b", BadPath::Control),
            ("a\nb", BadPath::Control),
            ("a\x7f", BadPath::Control),
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
    fn the_last_name_is_split_off() {
        assert_eq!(path("a/b/c").split_last(), Some((&b"a/b"[..], &b"c"[..])));
        assert_eq!(path("c").split_last(), Some((&b""[..], &b"c"[..])));
        assert_eq!(Path::root().split_last(), None);
    }
}
