//! The files of a server's accounts, read directly from the disk.

use std::path::{Path, PathBuf};

use plimsoll_tests::binary::until;

/// Returns the folder of an account's files, or of its pending uploads.
pub(super) fn folder(data: &Path, name: &str, part: &str) -> PathBuf {
    data.join("accounts").join(name).join(part)
}

/// Returns the names in an account's `pending`, except its trash and the name for mounted file systems; an
/// empty vector if the folder does not exist yet.
pub(super) fn pending(data: &Path, name: &str) -> Vec<String> {
    let mut names = names(&folder(data, name, "pending"));
    names.retain(|name| !["trash", "staging-name"].contains(&&**name));
    names
}

/// Waits until nothing is left of ended uploads: they are cleaned up while their answer is sent.
pub(super) fn until_nothing_is_pending(data: &Path, name: &str) {
    until("nothing is pending", || pending(data, name).is_empty());
}

/// Returns the names in a folder, in order.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
