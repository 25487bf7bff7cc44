//! What a storage server is told of whose accounts a front has: a name that was drawn for a directory in a
//! file.
//!
//! Accounts of one authentication server, or of one database, have one number for all fronts, and need none.
//! What must hold: two directories in files never have one name, so that nobody of one finds a home of the
//! other; a name outlives a power cut, or else nobody finds the own home any more.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use plimsoll_auth::directory::file_of;

use crate::config::{AuthAt, Fixed};

/// The file, in the data folder.
const NAME: &str = "directory.name";
/// Bytes that are drawn; each is two digits of the name.
const DRAWN_BYTES: usize = 16;

/// The name of the directory, drawn if there is none yet; empty where it needs none.
pub(crate) fn directory_name(fixed: &Fixed) -> anyhow::Result<String> {
    if fixed.auth != AuthAt::Embedded || file_of(&fixed.directory).is_none() {
        return Ok(String::new());
    }
    let at = fixed.data.join(NAME);
    let told = || format!("cannot keep the name of the directory of accounts in {}", at.display());
    match std::fs::read_to_string(&at) {
        Ok(text) => is_name(text.trim_end()).then(|| text.trim_end().to_owned()).with_context(|| {
            format!("{} has no name in it; take it back from a copy of the data folder", at.display())
        }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => draw(&fixed.data).with_context(told),
        Err(error) => Err(error).with_context(told),
    }
}

fn is_name(text: &str) -> bool {
    text.len() == 2 * DRAWN_BYTES && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Draws a name, and keeps it: whole or not at all.
fn draw(data: &Path) -> io::Result<String> {
    let mut drawn = [0; DRAWN_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut drawn)?;
    let name: String = drawn.iter().map(|byte| format!("{byte:02x}")).collect();
    let new = data.join(format!("{NAME}.new"));
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&new)?;
    writeln!(file, "{name}")?;
    file.sync_all()?;
    std::fs::rename(&new, data.join(NAME))?;
    File::open(data)?.sync_all()?;
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn named(data: &Path, args: &[&str]) -> anyhow::Result<String> {
        let data = format!("--data={}", data.display());
        directory_name(&Config::of(&[&[data.as_str()], args].concat()).fixed)
    }

    #[test]
    fn a_directory_in_a_file_has_a_name_that_stays_and_that_no_other_has() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let name = named(one.path(), &[]).unwrap();
        assert!(is_name(&name), "{name}");
        assert_eq!(named(one.path(), &[]).unwrap(), name);
        assert_ne!(named(two.path(), &[]).unwrap(), name);
    }

    #[test]
    fn what_fronts_have_in_common_needs_none() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(named(data.path(), &["--auth", "http://10.0.0.5:8070"]).unwrap(), "");
        assert_eq!(
            named(data.path(), &["--directory", "postgres://plimsoll@10.0.0.5/plimsoll"]).unwrap(),
            ""
        );
    }

    #[test]
    fn a_file_with_no_name_in_it_is_not_written_over() {
        let data = tempfile::tempdir().unwrap();
        std::fs::write(data.path().join(NAME), "").unwrap();
        assert!(named(data.path(), &[]).unwrap_err().to_string().contains("has no name in it"));
    }
}
