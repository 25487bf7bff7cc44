//! Paths on the server as they are typed: `PATH` in the own home, `OWNER:PATH` in another account's.
//!
//! It sends no request. Invariants: every possible file name can be typed. Each place has one canonical
//! form. `..` is refused.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt as _;

use plimsoll_wire::http::target::encode_path;

use crate::WrongUsage;
use crate::output;

/// A path, and the home that it is in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RemotePath {
    /// The owner of the home, unless it is the own home.
    pub(crate) owner: Option<String>,
    /// The path without a slash at either end; empty for the home itself.
    pub(crate) path: Vec<u8>,
    /// Whether it was typed as a folder: with a slash at its end.
    pub(crate) is_folder: bool,
}

impl RemotePath {
    /// Parses a typed path. A colon before the first slash ends the owner's name.
    pub(crate) fn parse(typed: &OsStr) -> Result<RemotePath, WrongUsage> {
        let typed = typed.as_bytes();
        let (owner, path) = split_owner(typed)?;
        let mut names = Vec::new();
        for name in path.split(|byte| *byte == b'/') {
            match name {
                b"" | b"." => {}
                b".." => {
                    return Err(WrongUsage(format!(
                        "{:?} has \"..\" in it; write the path from the top of the home",
                        output::text(typed)
                    )));
                }
                name => names.push(name),
            }
        }
        let is_folder = names.is_empty() || path.ends_with(b"/") || path.ends_with(b"/.");
        Ok(RemotePath { owner, path: names.join(&b'/'), is_folder })
    }

    /// Returns the top of the own home.
    pub(crate) fn home() -> RemotePath {
        RemotePath { owner: None, path: Vec::new(), is_folder: true }
    }

    pub(crate) fn is_home(&self) -> bool {
        self.path.is_empty()
    }

    /// Returns the place of a name in this folder.
    pub(crate) fn join(&self, name: &[u8]) -> RemotePath {
        let path = if self.path.is_empty() { name.to_vec() } else { [&self.path, name].join(&b'/') };
        RemotePath { owner: self.owner.clone(), path, is_folder: false }
    }

    /// Returns the last name; `None` for a home.
    pub(crate) fn name(&self) -> Option<&[u8]> {
        self.path.rsplit(|byte| *byte == b'/').next().filter(|name| !name.is_empty())
    }

    /// Returns the parent folder; `None` for a home.
    pub(crate) fn parent(&self) -> Option<RemotePath> {
        let name = self.name()?;
        let end = (self.path.len() - name.len()).saturating_sub(1);
        Some(RemotePath { owner: self.owner.clone(), path: self.path[..end].to_vec(), is_folder: true })
    }

    /// Returns the place of a decoded path of a URL in the same home as this; `None` if it is of another.
    pub(crate) fn at_url_path(&self, path: &[u8]) -> Option<RemotePath> {
        let prefix = match &self.owner {
            None => "/files/".to_owned(),
            Some(owner) => format!("/shared/{owner}/"),
        };
        let path = path.strip_prefix(prefix.as_bytes())?;
        let is_folder = path.ends_with(b"/");
        let path = path.strip_suffix(b"/").unwrap_or(path).to_vec();
        Some(RemotePath { owner: self.owner.clone(), path, is_folder })
    }

    /// Returns the place as it is typed, exact to the byte, without a slash at its end.
    pub(crate) fn typed(&self) -> Vec<u8> {
        match &self.owner {
            Some(owner) => [owner.as_bytes(), b":", &self.path].concat(),
            // Neither another account's path nor an option.
            None if self.path.is_empty() || self.path.starts_with(b"-") || begins_with_owner(&self.path) => {
                [b"/", &*self.path].concat()
            }
            None => self.path.clone(),
        }
    }

    /// Returns the path of the URL, encoded, without a slash at its end.
    pub(crate) fn target(&self) -> String {
        let mut target = match &self.owner {
            None => b"/files".to_vec(),
            Some(owner) => {
                let mut target = b"/shared/".to_vec();
                encode_path(owner.as_bytes(), &mut target);
                target
            }
        };
        if !self.path.is_empty() {
            target.push(b'/');
            encode_path(&self.path, &mut target);
        }
        String::from_utf8_lossy(&target).into_owned()
    }

    /// Like [`RemotePath::target`], with a slash at its end.
    pub(crate) fn folder_target(&self) -> String {
        self.target() + "/"
    }
}

/// Splits `OWNER:PATH`.
fn split_owner(typed: &[u8]) -> Result<(Option<String>, &[u8]), WrongUsage> {
    let end = typed.iter().position(|byte| matches!(byte, b':' | b'/'));
    match end {
        Some(end @ 1..) if typed[end] == b':' => {
            let owner =
                std::str::from_utf8(&typed[..end]).ok().filter(|owner| !owner.contains(['%', '?', '#']));
            let bad = || WrongUsage(format!("{:?} names no account before its colon", output::text(typed)));
            Ok((Some(owner.ok_or_else(bad)?.to_owned()), &typed[end + 1..]))
        }
        _ => Ok((None, typed)),
    }
}

/// Formats the place as it is typed, for a terminal.
impl fmt::Display for RemotePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&output::text(&self.typed()))
    }
}

/// Returns whether a path would be parsed as `OWNER:PATH`.
fn begins_with_owner(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/').next().is_some_and(|name| name.contains(&b':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(text: &str) -> RemotePath {
        RemotePath::parse(OsStr::new(text)).unwrap()
    }

    #[test]
    fn the_same_place_has_one_form() {
        for (typed, target, is_folder) in [
            ("", "/files", true),
            ("/", "/files", true),
            (".", "/files", true),
            ("a.txt", "/files/a.txt", false),
            ("/a//./b/", "/files/a/b", true),
            ("./a:b", "/files/a%3Ab", false),
            ("a b%/\u{e9}", "/files/a%20b%25/%C3%A9", false),
            ("bob:", "/shared/bob", true),
            ("bob:/docs/x", "/shared/bob/docs/x", false),
        ] {
            assert_eq!(
                (place(typed).target().as_str(), place(typed).is_folder),
                (target, is_folder),
                "{typed}"
            );
        }
    }

    #[test]
    fn any_byte_but_slash_and_nul_can_be_in_a_name() {
        let name = OsStr::from_bytes(b"caf\xe9 \n?#");
        let target = RemotePath::parse(name).unwrap().target();
        assert_eq!(target, "/files/caf%E9%20%0A%3F%23");
    }

    #[test]
    fn a_path_with_dot_dot_is_refused() {
        for typed in ["..", "a/../b", "bob:..", "/.."] {
            assert!(RemotePath::parse(OsStr::new(typed)).is_err(), "{typed}");
        }
    }

    #[test]
    fn a_printed_path_can_be_typed_again() {
        for typed in ["/", "a/b", "/a:b", "bob:", "bob:a:b/c"] {
            let shown = place(typed).to_string();
            assert_eq!(
                RemotePath { is_folder: false, ..place(&shown) },
                RemotePath { is_folder: false, ..place(typed) }
            );
        }
    }

    #[test]
    fn a_path_of_a_url_is_a_place_of_the_same_home_or_none() {
        assert_eq!(place("x").at_url_path(b"/files/a:b/c/"), Some(place("/a:b/c/")));
        assert_eq!(place("bob:x").at_url_path(b"/shared/bob/a"), Some(place("bob:a")));
        assert_eq!(place("bob:x").at_url_path(b"/shared/bobby/a"), None);
        assert_eq!(place("x").at_url_path(b"/shared/bob/a"), None);
    }

    #[test]
    fn a_place_knows_its_name_and_its_folder() {
        let deep = place("a/b/c");
        assert_eq!(deep.name(), Some(&b"c"[..]));
        assert_eq!(deep.parent(), Some(place("a/b/")));
        assert_eq!(place("a").parent(), Some(RemotePath::home()));
        assert_eq!((place("/").name(), place("/").parent()), (None, None));
        assert_eq!(place("a").join(b"b"), place("a/b"));
    }
}
