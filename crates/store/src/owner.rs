//! Whose a home is: a file beside it with the account's number, and with the name of the directory that has
//! it.
//!
//! It is for a store whose accounts are kept elsewhere, a front's own among them: nobody tells it when an
//! account has gone, and its name may be another's after that. What must hold: a home is opened for one
//! account of one directory alone, until an operator has moved it away; so it has one lock, and nobody finds
//! another's files in it.

use std::io;

use plimsoll_io::{File, Fs};

use crate::error::{Error, Result};
use crate::limits::DIRECTORY_BYTES_MAX;
use crate::write::written::write_all;

/// The file, beside a home's own folders.
const NAME: &[u8] = b"account";
/// Bytes of it: a number, a blank, the name of a directory.
const BYTES_MAX: usize = 32 + DIRECTORY_BYTES_MAX;

/// Whose a home is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Whose {
    /// The account's number.
    pub(crate) account: i64,
    /// The account's name.
    pub(crate) name: String,
    /// What the directory of accounts is called; nothing if there is one alone.
    pub(crate) directory: String,
}

/// Whether the home in `folder` is this account's; if it is nobody's, it is from now on.
pub(crate) fn check(fs: &dyn Fs, folder: &File, whose: &Whose) -> Result<()> {
    let line = line(whose);
    let file = match fs.create(folder, NAME) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match read(fs, folder)?.as_slice() {
            // The power was cut before it was written.
            b"" => fs.open_to_write(folder, NAME)?,
            told if told == line => return Ok(()),
            _ => return Err(another()),
        },
        Err(error) => return Err(error.into()),
    };
    write_all(fs, &file, &line, 0)?;
    fs.sync(&file)?;
    Ok(fs.sync(folder)?)
}

/// The home is another account's.
pub(crate) fn another() -> Error {
    let why = "the home of this name is another account's; move DATA/accounts/NAME away if that has gone";
    Error::Denied(io::Error::other(why))
}

fn line(whose: &Whose) -> Vec<u8> {
    match whose.directory.as_str() {
        "" => format!("{}\n", whose.account).into_bytes(),
        directory => format!("{} {directory}\n", whose.account).into_bytes(),
    }
}

fn read(fs: &dyn Fs, folder: &File) -> Result<Vec<u8>> {
    let file = fs.open_beneath(folder, NAME)?;
    let (mut bytes, mut filled) = (vec![0; BYTES_MAX], 0);
    while filled < bytes.len() {
        match fs.read_at(&file, &mut bytes[filled..], filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    bytes.truncate(filled);
    // A line that was cut off says nothing.
    if !bytes.ends_with(b"\n") {
        bytes.clear();
    }
    Ok(bytes)
}
