//! The account of a home: a file beside the home's folders with the account's number.
//!
//! A directory of accounts can be lost, restored from an old copy, or be on another machine: a folder's
//! name does not prove which account its files belong to. Invariant: a home is opened for one account
//! alone. A home with files that names no account is opened for none (it is quarantined), until an operator
//! gives it to one.

use std::io;
use std::path::Path;

use plimsoll_io::{File, FileKind, Fs, replace_whole};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::limits::{DIRECTORY_BYTES_MAX, OWNER_FILE_BYTES_MAX};
use crate::store::ACCOUNTS;

/// The file, beside a home's own folders.
const NAME: &[u8] = b"account";
/// The file before it has its name.
const NEW: &[u8] = b"account.new";
/// The folder of the home's files. A home without it holds nothing that another account could obtain.
pub(crate) const FILES: &[u8] = b"files";

/// The number that stands for no account: the owner of a home whose account was not found.
pub const NO_ACCOUNT: i64 = 0;

/// The account of a home.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HomeOwner {
    /// The account's number, which is never another account's.
    pub account: i64,
    /// The account's name.
    pub name: String,
    /// The front's name for its directory of accounts, if other fronts may have another directory; else
    /// empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub directory: String,
}

impl HomeOwner {
    /// Checks that an account can have this name: it becomes that of a folder.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Path`].
    pub(crate) fn check(&self) -> Result<()> {
        let (name, directory) = (crate::Path::parse(self.name.as_bytes())?, self.directory.as_bytes());
        let is_name = name.as_bytes() == self.name.as_bytes() && name.depth() == 1;
        let is_directory =
            directory.len() <= DIRECTORY_BYTES_MAX && directory.iter().all(u8::is_ascii_alphanumeric);
        if is_name && is_directory { Ok(()) } else { Err(Error::NotFound) }
    }
}

/// A home in a data folder, as [`homes`] finds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundHome {
    /// The name of its folder, which is that of its account.
    pub name: String,
    /// The number of its account; [`NO_ACCOUNT`] if it has none, `None` if it does not say.
    pub account: Option<i64>,
}

/// Checks that the home in `folder` is this account's. A home without files that names no account is
/// assigned to the account.
///
/// # Errors
/// [`Error::Denied`] if it is another account's, or has files and names no account.
pub(crate) fn check(fs: &dyn Fs, folder: &File, owner: &HomeOwner) -> Result<()> {
    let line = line(owner.account, &owner.directory);
    match read(fs, folder)? {
        Some(found) if found == line => Ok(()),
        Some(_) => Err(another(&owner.name)),
        None if has_files(fs, folder)? => {
            Err(quarantined(&format!("the home {} does not say which account it belongs to", owner.name)))
        }
        None => write(fs, folder, &line),
    }
}

/// The error of a home that is another account's.
pub(crate) fn another(name: &str) -> Error {
    quarantined(&format!("the home {name} belongs to another account than the one of that name"))
}

fn quarantined(why: &str) -> Error {
    let next = "it is quarantined; `plimsoll doctor` on its data folder lists such homes and what to do";
    Error::Denied(io::Error::other(format!("{why}: {next}")))
}

/// Lists the homes in the data folder `root` that have files.
///
/// # Errors
/// Any error of the file system.
pub fn homes(fs: &dyn Fs, root: &Path) -> io::Result<Vec<FoundHome>> {
    let Some(accounts) = accounts_in(fs, root)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in fs.names(&accounts, usize::MAX)? {
        let Ok(name) = String::from_utf8(entry.name) else { continue };
        if entry.stat.kind != FileKind::Folder {
            continue;
        }
        let folder = match fs.open_beneath(&accounts, name.as_bytes()) {
            // For example lost+found, which is no home. A home that cannot be read is left out, too.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                tracing::warn!(folder = name, "a folder beside the homes cannot be read, and is left alone");
                continue;
            }
            opened => opened?,
        };
        let line = read(fs, &folder)?;
        if line.is_some() || has_files(fs, &folder)? {
            found.push(FoundHome { name, account: line.map(|line| number(&line)) });
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

/// Assigns the home `name` in the data folder `root` to the account of this number, regardless of its
/// present account. No store may have the folder open.
///
/// # Errors
/// [`Error::NotFound`] if there is no such home; any error of the file system.
pub fn give_home(fs: &dyn Fs, root: &Path, name: &str, account: i64) -> Result<()> {
    let accounts = accounts_in(fs, root)?.ok_or(Error::NotFound)?;
    let folder = fs.open_beneath(&accounts, name.as_bytes())?;
    write(fs, &folder, &line(account, ""))
}

pub(crate) fn accounts_in(fs: &dyn Fs, root: &Path) -> io::Result<Option<File>> {
    match fs.open_root(root).and_then(|root| fs.open_beneath(&root, ACCOUNTS)) {
        Ok(accounts) => Ok(Some(accounts)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn line(account: i64, directory: &str) -> Vec<u8> {
    match directory {
        "" => format!("{account}\n").into_bytes(),
        directory => format!("{account} {directory}\n").into_bytes(),
    }
}

/// The account's number in a line; a line that has none stands for no account.
fn number(line: &[u8]) -> i64 {
    let digits = line.split(|byte| byte.is_ascii_whitespace()).next().unwrap_or_default();
    std::str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()).unwrap_or(NO_ACCOUNT)
}

fn has_files(fs: &dyn Fs, folder: &File) -> io::Result<bool> {
    match fs.stat_name(folder, FILES) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn write(fs: &dyn Fs, folder: &File, line: &[u8]) -> Result<()> {
    Ok(replace_whole(fs, folder, NAME, NEW, line)?)
}

/// Reads the line; none if there is no file, or if an older version was interrupted before it had written
/// the line.
fn read(fs: &dyn Fs, folder: &File) -> io::Result<Option<Vec<u8>>> {
    let file = match fs.open_beneath(folder, NAME) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let (mut bytes, mut filled) = (vec![0; OWNER_FILE_BYTES_MAX], 0);
    while filled < bytes.len() {
        match fs.read_at(&file, &mut bytes[filled..], filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    bytes.truncate(filled);
    Ok(bytes.ends_with(b"\n").then_some(bytes))
}
