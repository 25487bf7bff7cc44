//! Files that only the server's user can read, replaced as a whole.
//!
//! It reads nothing. Invariant: after a crash at any moment, the path has the old contents or the new ones.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

/// The end of the name of a file that is being written.
const STAGED: &str = "new";

/// Writes a file of mode 600, in a folder of mode 700 that is made if it is missing.
pub(super) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let staged = path.with_added_extension(format!("{}.{STAGED}", std::process::id()));
    // Left by a killed process with the same number.
    let _ = fs::remove_file(&staged);
    let written = stage(&staged, bytes).and_then(|()| fs::rename(&staged, path));
    written.inspect_err(|_| drop(fs::remove_file(&staged)))?;
    File::open(folder)?.sync_all()
}

fn stage(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_only_its_owner_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tls/key");
        for bytes in [&b"one"[..], b"another"] {
            replace(&path, bytes).unwrap();
            assert_eq!(fs::read(&path).unwrap(), bytes);
        }
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o7777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1, "nothing is left behind");
    }
}
