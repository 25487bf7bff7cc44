//! Resolves a path to its target: a file or folder of the caller's home, of others' shares, or of a site.
//!
//! It does not check that the target exists. Invariants: equal paths have one form. No path leads above `/`.

use plimsoll_operations::Place;
use plimsoll_store::Path;

use super::answer::Answer;
use super::state::{State, Who};

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    /// A file or folder in the home of an account.
    Place(Place),
    /// The folder that has one folder for each account that shares with the caller.
    Owners,
    /// A file or folder of the guests' site, relative to the site's root.
    Site(Vec<u8>),
}

/// The name of the folder of others' shares in an account's `/`.
pub(super) const SHARED: &[u8] = b"shared";

impl State {
    /// Returns the target of `typed`.
    pub(super) fn spot(&self, typed: &[u8]) -> Result<Spot, Answer> {
        let whole = absolute(&self.folder, typed);
        let name = whole.strip_prefix(b"/").unwrap_or_default();
        match self.who {
            Who::Guest => Ok(Spot::Site(name.to_vec())),
            _ => in_accounts(name),
        }
    }
}

fn in_accounts(name: &[u8]) -> Result<Spot, Answer> {
    let mut parts = name.splitn(3, |&byte| byte == b'/');
    if parts.next() != Some(SHARED) {
        return Ok(Spot::Place(Place::own(parse(name)?)));
    }
    let Some(owner) = parts.next() else { return Ok(Spot::Owners) };
    let owner = std::str::from_utf8(owner).map_err(|_| NOT_THERE)?;
    Ok(Spot::Place(Place::shared(owner, parse(parts.next().unwrap_or_default())?)))
}

/// The reply for a file or folder that does not exist, or that the caller may not know of.
pub(super) const NOT_THERE: Answer = Answer::new(550, "There is no such file or folder.");

fn parse(name: &[u8]) -> Result<Path, Answer> {
    Path::parse(name).map_err(|bad| Answer::made(553, format!("The path is invalid: {bad}.")))
}

/// Returns the absolute path of `typed` relative to `folder`. It has a leading slash and no trailing one; `/`
/// itself is empty.
pub(super) fn absolute(folder: &[u8], typed: &[u8]) -> Vec<u8> {
    let mut whole = if typed.starts_with(b"/") { Vec::new() } else { folder.to_vec() };
    for part in typed.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                let end = whole.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
                whole.truncate(end);
            }
            name => {
                whole.push(b'/');
                whole.extend_from_slice(name);
            }
        }
    }
    whole
}

/// Returns an absolute path as replies show it.
pub(super) fn shown(whole: &[u8]) -> &[u8] {
    if whole.is_empty() { b"/" } else { whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_followed_from_where_one_is_and_never_above_the_top() {
        for (folder, typed, whole) in [
            ("", "", ""),
            ("", "a", "/a"),
            ("/a", "b/c", "/a/b/c"),
            ("/a", "/b", "/b"),
            ("/a/b", "..", "/a"),
            ("/a/b", "../../../..", ""),
            ("/a", "./b//c/", "/a/b/c"),
            ("/a", "../a..b/...", "/a..b/..."),
        ] {
            assert_eq!(absolute(folder.as_bytes(), typed.as_bytes()), whole.as_bytes(), "{folder} {typed}");
        }
    }

    #[test]
    fn what_others_share_is_below_shared_and_the_rest_is_ones_own() {
        let own = |path: &[u8]| Spot::Place(Place::own(Path::parse(path).unwrap()));
        let shared = |owner, path: &[u8]| Spot::Place(Place::shared(owner, Path::parse(path).unwrap()));
        for (typed, spot) in [
            ("/", own(b"")),
            ("/a/b", own(b"a/b")),
            ("/sharedx", own(b"sharedx")),
            ("/a/shared", own(b"a/shared")),
            ("/shared", Spot::Owners),
            ("/shared/alice", shared("alice", b"")),
            ("/shared/alice/a/b", shared("alice", b"a/b")),
        ] {
            assert_eq!(State::new().spot(typed.as_bytes()).unwrap(), spot, "{typed}");
        }
    }

    #[test]
    fn a_name_that_cannot_be_is_refused() {
        let long = [b'x'; 300];
        assert_eq!(State::new().spot(&long).unwrap_err().code, 553);
        assert_eq!(State::new().spot(b"/shared/\xff/a").unwrap_err().code, 550);
    }
}
