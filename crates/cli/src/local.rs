//! Local files and folders, to be uploaded.
//!
//! It reads no file contents. Invariants: a link to a folder is not followed inside a folder, so that a
//! walk ends. An entry that is neither a file nor a folder is reported, not skipped.

use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plimsoll_wire::http::mtime::nearest_mtime;

use crate::limits::LEVELS_MAX;

/// An entry that a walk finds; its path begins with the walked folder's.
#[derive(Debug)]
pub(crate) enum WalkEntry {
    /// A folder; it precedes its entries.
    Folder(PathBuf),
    /// A file with its metadata.
    File(PathBuf, Metadata),
    /// An entry that cannot be sent, and the reason.
    Unsupported(PathBuf, String),
}

/// Returns all entries below a folder, in the order of names.
pub(crate) fn walk(folder: &Path) -> Vec<WalkEntry> {
    let mut steps = Vec::new();
    walk_into(folder, 0, &mut steps);
    steps
}

fn walk_into(folder: &Path, level: usize, steps: &mut Vec<WalkEntry>) {
    if level >= LEVELS_MAX {
        steps.push(WalkEntry::Unsupported(folder.to_owned(), "the folder is too deep".to_owned()));
        return;
    }
    match fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect()) {
        Ok(paths) => walk_over(paths, level, steps),
        Err(error) => steps.push(WalkEntry::Unsupported(folder.to_owned(), error.to_string())),
    }
}

fn walk_over(mut paths: Vec<PathBuf>, level: usize, steps: &mut Vec<WalkEntry>) {
    paths.sort_unstable();
    for path in paths {
        let is_link = fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink());
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => steps.push(WalkEntry::File(path, metadata)),
            Ok(metadata) if metadata.is_dir() && is_link => {
                steps.push(WalkEntry::Unsupported(path, "a link to a folder is not followed".to_owned()));
            }
            Ok(metadata) if metadata.is_dir() => {
                steps.push(WalkEntry::Folder(path.clone()));
                walk_into(&path, level + 1, steps);
            }
            Ok(_) => steps.push(WalkEntry::Unsupported(path, "it is neither a file nor a folder".to_owned())),
            Err(error) => steps.push(WalkEntry::Unsupported(path, error.to_string())),
        }
    }
}

/// Returns the time of modification that a server gets: the nearest from 1970 on.
pub(crate) fn modified(metadata: &Metadata) -> Duration {
    nearest_mtime(metadata.mtime(), u32::try_from(metadata.mtime_nsec()).unwrap_or(0))
}

/// Returns the last name of a path. Resolves `.` and `..` to the name of their folder.
pub(crate) fn name_of(path: &Path) -> Option<Vec<u8>> {
    let written = path.file_name().map(|name| name.as_bytes().to_vec());
    let whole = || path.canonicalize().ok()?.file_name().map(|name| name.as_bytes().to_vec());
    written.or_else(whole)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_walk_meets_everything_once_and_ends() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir_all(at("b/deep")).unwrap();
        fs::write(at("a"), "12").unwrap();
        fs::write(at("b/c"), "").unwrap();
        symlink(at("a"), at("link")).unwrap();
        symlink(root.path(), at("loop")).unwrap();
        symlink("nowhere", at("broken")).unwrap();
        let found: Vec<String> = walk(root.path()).iter().map(|step| describe(root.path(), step)).collect();
        assert_eq!(found, ["a 2", "b/", "b/c 0", "b/deep/", "broken not", "link 2", "loop not"]);
    }

    fn describe(root: &Path, step: &WalkEntry) -> String {
        let below = |path: &Path| path.strip_prefix(root).unwrap().display().to_string();
        match step {
            WalkEntry::Folder(path) => format!("{}/", below(path)),
            WalkEntry::File(path, metadata) => format!("{} {}", below(path), metadata.len()),
            WalkEntry::Unsupported(path, _) => format!("{} not", below(path)),
        }
    }

    #[test]
    fn dots_have_the_names_of_their_folders() {
        assert_eq!(name_of(Path::new("a/b/")), Some(b"b".to_vec()));
        assert_eq!(name_of(Path::new("/")), None);
        assert_eq!(name_of(Path::new(".")), name_of(&std::env::current_dir().unwrap()));
    }
}
