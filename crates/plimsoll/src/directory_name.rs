//! The name that a front of an older version drew for its directory of accounts.
//!
//! Older versions counted accounts from 1, and two fronts of one storage server distinguished their
//! accounts by such a name. Numbers are drawn at random now, and no name is drawn any more. Invariant: a
//! front that has a name still uses it, because homes at its storage server are marked with it.

use std::io;
use std::path::Path;

use anyhow::Context as _;

/// The file, in the data folder.
const NAME: &str = "directory.name";
/// Digits of a name.
const DIGITS: usize = 32;

/// Reads the name; empty if there is none.
pub(crate) fn directory_name(data: &Path) -> anyhow::Result<String> {
    let path = data.join(NAME);
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        read => read.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let name = text.trim_end();
    anyhow::ensure!(
        name.len() == DIGITS && name.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{} has no name in it; restore it from a backup of the data folder",
        path.display()
    );
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_an_older_version_is_used_and_none_is_drawn() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(directory_name(data.path()).unwrap(), "");
        let name = "0123456789abcdef0123456789abcdef";
        std::fs::write(data.path().join(NAME), format!("{name}\n")).unwrap();
        assert_eq!(directory_name(data.path()).unwrap(), name);
        std::fs::write(data.path().join(NAME), "").unwrap();
        assert!(directory_name(data.path()).unwrap_err().to_string().contains("has no name in it"));
    }
}
