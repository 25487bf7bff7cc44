//! Files and folders of this machine, to be sent.
//!
//! It reads none of them. What must hold: a link to a folder is not followed inside of a folder, so that a
//! walk ends; what is neither file nor folder is told, not passed over.

use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use super::limits::LEVELS_MAX;

/// Something in a folder that is walked through, as a name below the folder's own.
#[derive(Debug)]
pub(crate) enum Step {
    /// A folder; it comes before what is in it.
    Folder(PathBuf),
    /// A file, and what is known of it.
    File(PathBuf, Metadata),
    /// What cannot be sent, and why.
    Not(PathBuf, String),
}

/// Everything in a folder, in the order of names.
pub(crate) fn walk(folder: &Path) -> Vec<Step> {
    let mut steps = Vec::new();
    walk_into(folder, 0, &mut steps);
    steps
}

fn walk_into(folder: &Path, level: usize, steps: &mut Vec<Step>) {
    if level >= LEVELS_MAX {
        steps.push(Step::Not(folder.to_owned(), "the folder is too deep".to_owned()));
        return;
    }
    match fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect()) {
        Ok(paths) => walk_over(paths, level, steps),
        Err(error) => steps.push(Step::Not(folder.to_owned(), error.to_string())),
    }
}

fn walk_over(mut paths: Vec<PathBuf>, level: usize, steps: &mut Vec<Step>) {
    paths.sort_unstable();
    for path in paths {
        let is_link = fs::symlink_metadata(&path).is_ok_and(|about| about.is_symlink());
        match fs::metadata(&path) {
            Ok(about) if about.is_file() => steps.push(Step::File(path, about)),
            Ok(about) if about.is_dir() && is_link => {
                steps.push(Step::Not(path, "a link to a folder is not followed".to_owned()));
            }
            Ok(about) if about.is_dir() => {
                steps.push(Step::Folder(path.clone()));
                walk_into(&path, level + 1, steps);
            }
            Ok(_) => steps.push(Step::Not(path, "it is neither a file nor a folder".to_owned())),
            Err(error) => steps.push(Step::Not(path, error.to_string())),
        }
    }
}

/// The time of modification, since 1970; none of a file from before.
pub(crate) fn modified(about: &Metadata) -> Option<Duration> {
    about.modified().ok()?.duration_since(UNIX_EPOCH).ok()
}

/// The last name of a path, also of `.` and `..`, whose names are not written there.
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
        let told: Vec<String> = walk(root.path()).iter().map(|step| tell(root.path(), step)).collect();
        assert_eq!(told, ["a 2", "b/", "b/c 0", "b/deep/", "broken not", "link 2", "loop not"]);
    }

    fn tell(root: &Path, step: &Step) -> String {
        let below = |path: &Path| path.strip_prefix(root).unwrap().display().to_string();
        match step {
            Step::Folder(path) => format!("{}/", below(path)),
            Step::File(path, about) => format!("{} {}", below(path), about.len()),
            Step::Not(path, _) => format!("{} not", below(path)),
        }
    }

    #[test]
    fn dots_have_the_names_of_their_folders() {
        assert_eq!(name_of(Path::new("a/b/")), Some(b"b".to_vec()));
        assert_eq!(name_of(Path::new("/")), None);
        assert_eq!(name_of(Path::new(".")), name_of(&std::env::current_dir().unwrap()));
    }
}
