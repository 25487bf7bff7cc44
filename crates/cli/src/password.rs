//! Passwords: from a file, from the environment, or typed without echo.
//!
//! It never takes one from an argument, which every user of the machine could read. Invariant: a new
//! password from the terminal must be typed twice.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use plimsoll_wire::password::check_new_password;

use crate::WrongUsage;
use crate::limits::PASSWORD_BYTES_MAX;
use crate::terminal;

/// The environment variable of the password.
const VARIABLE: &str = "PLIMSOLL_PASSWORD";
/// The environment variable of a new password.
const NEW_VARIABLE: &str = "PLIMSOLL_NEW_PASSWORD";

/// The sources of a password.
#[derive(Args)]
pub struct PasswordFrom {
    /// The file whose first line is the password; default: $PLIMSOLL_PASSWORD, else a prompt asks for it
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

impl PasswordFrom {
    /// Reads the password of an existing account.
    ///
    /// # Errors
    /// The source is unreadable, empty or not UTF-8, or there is no terminal to ask on.
    pub fn get(&self, of: &str) -> anyhow::Result<String> {
        let given = given(self.password_file.as_deref(), VARIABLE)?;
        given.map_or_else(|| typed(&format!("Password of {of}: "), "--password-file FILE", VARIABLE), Ok)
    }

    /// Reads the password in the file, if one is given.
    ///
    /// # Errors
    /// As of [`PasswordFrom::get`].
    pub fn from_file(&self) -> anyhow::Result<Option<String>> {
        match &self.password_file {
            Some(_) => self.given(),
            None => Ok(None),
        }
    }

    /// Reads the password of a new account, unless it must be typed.
    ///
    /// # Errors
    /// As of [`PasswordFrom::get`].
    pub fn given(&self) -> anyhow::Result<Option<String>> {
        given(self.password_file.as_deref(), VARIABLE)
    }

    /// Reads the new password of an account without its old one, unless it must be typed.
    ///
    /// # Errors
    /// As of [`PasswordFrom::get`].
    pub fn given_new(&self) -> anyhow::Result<Option<String>> {
        match (&self.password_file, given(None, NEW_VARIABLE)?) {
            (None, Some(password)) => Ok(Some(password)),
            _ => self.given(),
        }
    }
}

/// Asks for the password of a new account on the terminal. A password that no server accepts is refused
/// before it must be typed again.
///
/// # Errors
/// The password is refused, or was not typed twice alike, or there is no terminal.
pub fn typed_for(name: &str) -> anyhow::Result<String> {
    typed_twice((name, &format!("Password for {name}")), "--password-file FILE", VARIABLE)
}

/// Reads a password of the account `name` that is to replace another.
pub(crate) fn choose_new(file: Option<&Path>, name: &str) -> anyhow::Result<String> {
    let given = given(file, NEW_VARIABLE)?;
    given.map_or_else(|| typed_twice((name, "New password"), "--new-password-file FILE", NEW_VARIABLE), Ok)
}

fn given(file: Option<&Path>, variable: &str) -> anyhow::Result<Option<String>> {
    if let Some(path) = file {
        let read = read(path).with_context(|| format!("cannot read the password in {}", path.display()));
        warn_of_readers(path);
        return read.map(Some);
    }
    match std::env::var(variable) {
        Ok(password) => Ok(Some(password)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(WrongUsage(format!("{variable} must be UTF-8")).into()),
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(PASSWORD_BYTES_MAX).read_to_end(&mut bytes)?;
    first_line(bytes)
}

fn warn_of_readers(path: &Path) {
    let mode = path.metadata().map_or(0, |metadata| metadata.mode() & 0o7777);
    if mode & 0o077 != 0 {
        // Standard error may be closed; the password is valid all the same.
        let _ = writeln!(
            std::io::stderr(),
            "plimsoll: warning: other users can read the password, {0} (mode {mode:o}): chmod 600 {0}",
            path.display()
        );
    }
}

fn first_line(bytes: Vec<u8>) -> anyhow::Result<String> {
    let text = String::from_utf8(bytes).ok().context("it must be UTF-8")?;
    let line = text.lines().next().unwrap_or_default();
    if line.is_empty() {
        bail!("its first line is empty");
    }
    Ok(line.to_owned())
}

fn typed(question: &str, flag: &str, variable: &str) -> anyhow::Result<String> {
    let no_terminal = || {
        WrongUsage(format!("there is no terminal to ask for the password on; give {flag} or set {variable}"))
    };
    let terminal = terminal::open().ok_or_else(no_terminal)?;
    let line = terminal::read_hidden_line(&terminal, question).context("cannot read the password")?;
    String::from_utf8(line).ok().context("The password must be UTF-8.")
}

fn typed_twice((name, what): (&str, &str), flag: &str, variable: &str) -> anyhow::Result<String> {
    let first = typed(&format!("{what}: "), flag, variable)?;
    check_new_password(name, first.as_bytes()).map_err(|bad| anyhow!("{bad}"))?;
    if first != typed("The same again: ", flag, variable)? {
        bail!("The two are not the same. Try again.");
    }
    Ok(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_password_is_the_first_line_of_its_file() {
        for text in ["secret word", "secret word\n", "secret word\r\n", "secret word\nmore\n"] {
            assert_eq!(first_line(text.into()).unwrap(), "secret word");
        }
        for bad in [&b""[..], b"\n", b"\nsecret", b"\xff\n"] {
            assert!(first_line(bad.to_vec()).is_err(), "{bad:?}");
        }
    }
}
