//! The shares that matter at a path: those that cover it, else one for each name below it that leads to a
//! share.
//!
//! It stores nothing: a directory finds the first share at or after a path. Invariants: the numbers of
//! lookups and results are bounded, however many shares there are. No share that covers the path is
//! missed.

use std::iter;

use super::DirectoryError;
use crate::limits::{NAMES_BELOW_MAX, SHARE_PARTS_MAX};
use crate::shares::Share;

/// Returns the shares that cover `path`. If there are none, returns one for each name below it, in byte
/// order. `first` finds the first share at or after a path in that order.
pub(super) fn effective_shares(
    path: &[u8],
    mut first: impl FnMut(&[u8]) -> Result<Option<Share>, DirectoryError>,
) -> Result<Vec<Share>, DirectoryError> {
    let mut covering = Vec::new();
    for folder in folders(path) {
        covering.extend(first(folder)?.filter(|share| share.path == folder));
    }
    if covering.is_empty() { below(path, first) } else { Ok(covering) }
}

/// The whole home, each folder above `path`, and `path` itself: to the greatest depth of a share.
fn folders(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = (0..path.len()).filter(|at| path[*at] == b'/');
    let ends = iter::once(0).chain(slashes).chain((!path.is_empty()).then_some(path.len()));
    ends.map(|end| &path[..end]).take(SHARE_PARTS_MAX + 1)
}

/// One share for each of the first names below `path`. Further shares below a name are skipped, not read.
fn below(
    path: &[u8],
    mut first: impl FnMut(&[u8]) -> Result<Option<Share>, DirectoryError>,
) -> Result<Vec<Share>, DirectoryError> {
    let inside = if path.is_empty() { Vec::new() } else { [path, b"/"].concat() };
    let (mut found, mut from): (Vec<Share>, _) = (Vec::new(), inside.clone());
    while found.len() < NAMES_BELOW_MAX {
        let Some(share) = first(&from)?.filter(|share| share.path.starts_with(&inside)) else { break };
        let slash = share.path[inside.len()..].iter().position(|byte| *byte == b'/');
        let name = &share.path[..slash.map_or(share.path.len(), |at| inside.len() + at)];
        // `a-b` comes between `a` and `a/b`. After everything in `a/` comes `a0`.
        let after: &[u8] = if slash.is_some() { b"0" } else { b"\0" };
        from = [name, after].concat();
        if !found.iter().any(|other| other.path == name) {
            found.push(share);
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folders_that_can_cover_a_path_are_its_prefixes() {
        let listed = |path: &str| {
            let folders = folders(path.as_bytes()).map(|folder| String::from_utf8_lossy(folder).into_owned());
            folders.collect::<Vec<_>>()
        };
        assert_eq!(listed(""), [""]);
        assert_eq!(listed("a"), ["", "a"]);
        assert_eq!(listed("a/bc/d"), ["", "a", "a/bc", "a/bc/d"]);
        assert_eq!(listed(&["x"; 1000].join("/")).len(), SHARE_PARTS_MAX + 1);
    }
}
