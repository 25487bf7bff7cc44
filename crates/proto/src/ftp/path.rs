//! Resolves a path to its target: a file or folder of the caller's home, of others' shares, or of a site.
//!
//! It does not check that the target exists. Invariants: equal paths have one form. No path leads above `/`.

use plimsoll_operations::HomePath;
use plimsoll_store::Path;
use plimsoll_wire::ftp::listing::is_line;

use super::reply::Reply;
use super::state::{Login, State};

/// The target of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PathTarget {
    /// A file or folder in the home of an account.
    Home(HomePath),
    /// The folder that has one folder for each account that shares with the caller.
    Sharers,
    /// A file or folder of the guests' site, relative to the site's root.
    Site(Vec<u8>),
}

/// The name of the folder of others' shares in an account's `/`.
pub(super) const SHARED: &[u8] = b"shared";

impl State {
    /// Returns the target of `path`.
    pub(super) fn resolve(&self, path: &[u8]) -> Result<PathTarget, Reply> {
        let absolute_path = absolute(&self.folder, path);
        let name = absolute_path.strip_prefix(b"/").unwrap_or_default();
        match self.login {
            Login::Guest => parse(name).map(|_| PathTarget::Site(name.to_vec())).map_err(|_| NOT_FOUND),
            _ => resolve_account_path(name),
        }
    }
}

fn resolve_account_path(name: &[u8]) -> Result<PathTarget, Reply> {
    let mut parts = name.splitn(3, |&byte| byte == b'/');
    if parts.next() != Some(SHARED) {
        return Ok(PathTarget::Home(HomePath::own(parse(name)?)));
    }
    let Some(owner) = parts.next() else { return Ok(PathTarget::Sharers) };
    let owner = std::str::from_utf8(owner).map_err(|_| NOT_FOUND)?;
    Ok(PathTarget::Home(HomePath::shared(owner, parse(parts.next().unwrap_or_default())?)))
}

/// The reply for a file or folder that does not exist, or that the caller may not know of.
pub(super) const NOT_FOUND: Reply = Reply::new(550, "There is no such file or folder.");

/// Parses a path. A name with a line end exists over HTTP alone: a listing cannot have it in a line.
fn parse(name: &[u8]) -> Result<Path, Reply> {
    if !is_line(name) {
        return Err(Reply::new(553, "The path is invalid: it has a line end in it."));
    }
    Path::parse(name).map_err(|bad| Reply::formatted(553, format!("The path is invalid: {bad}.")))
}

/// Returns the absolute path of `path` relative to `folder`. It has a leading slash and no trailing one; `/`
/// itself is empty.
pub(super) fn absolute(folder: &[u8], path: &[u8]) -> Vec<u8> {
    let mut absolute_path = if path.starts_with(b"/") { Vec::new() } else { folder.to_vec() };
    for part in path.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                let end = absolute_path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
                absolute_path.truncate(end);
            }
            name => {
                absolute_path.push(b'/');
                absolute_path.extend_from_slice(name);
            }
        }
    }
    absolute_path
}

/// Returns an absolute path as replies show it.
pub(super) fn display(absolute_path: &[u8]) -> &[u8] {
    if absolute_path.is_empty() { b"/" } else { absolute_path }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_resolves_from_the_current_folder_and_never_above_the_root() {
        for (folder, path, absolute_path) in [
            ("", "", ""),
            ("", "a", "/a"),
            ("/a", "b/c", "/a/b/c"),
            ("/a", "/b", "/b"),
            ("/a/b", "..", "/a"),
            ("/a/b", "../../../..", ""),
            ("/a", "./b//c/", "/a/b/c"),
            ("/a", "../a..b/...", "/a..b/..."),
        ] {
            assert_eq!(
                absolute(folder.as_bytes(), path.as_bytes()),
                absolute_path.as_bytes(),
                "{folder} {path}"
            );
        }
    }

    #[test]
    fn paths_below_shared_resolve_to_others_shares_and_all_others_to_the_home() {
        let own = |path: &[u8]| PathTarget::Home(HomePath::own(Path::parse(path).unwrap()));
        let shared =
            |owner, path: &[u8]| PathTarget::Home(HomePath::shared(owner, Path::parse(path).unwrap()));
        for (path, target) in [
            ("/", own(b"")),
            ("/a/b", own(b"a/b")),
            ("/sharedx", own(b"sharedx")),
            ("/a/shared", own(b"a/shared")),
            ("/shared", PathTarget::Sharers),
            ("/shared/alice", shared("alice", b"")),
            ("/shared/alice/a/b", shared("alice", b"a/b")),
        ] {
            assert_eq!(State::new().resolve(path.as_bytes()).unwrap(), target, "{path}");
        }
    }

    #[test]
    fn an_invalid_name_is_refused() {
        let long = [b'x'; 300];
        assert_eq!(State::new().resolve(&long).unwrap_err().code, 553);
        assert_eq!(State::new().resolve(b"/shared/\xff/a").unwrap_err().code, 550);
    }
}
