//! What is on the disk of a server's accounts, past the server.

use std::path::{Path, PathBuf};

use plimsoll_tests::binary::until;

/// The files of an account, or its pending uploads.
pub(super) fn folder(data: &Path, name: &str, part: &str) -> PathBuf {
    data.join("accounts").join(name).join(part)
}

/// The names in `pending` of an account; none where the folder is not made yet.
pub(super) fn pending(data: &Path, name: &str) -> Vec<String> {
    names(&folder(data, name, "pending"))
}

/// Waits until nothing is left of uploads that ended: they are cleared away while their answer is on its way.
pub(super) fn until_nothing_is_pending(data: &Path, name: &str) {
    until("nothing is pending", || pending(data, name).is_empty());
}

/// The names in a folder, in order.
pub(super) fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
