//! Small files that are read and replaced whole.
//!
//! It does not buffer large ones. Invariant: a file is replaced atomically and durably, or not at all, also
//! with the power cut at every call.

use std::io;

use super::{Existing, File, Fs};

/// Writes all of `bytes` at an offset.
///
/// # Errors
/// As [`Fs::write_at`]; a part of the bytes may be written.
pub fn write_all(fs: &dyn Fs, file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    let mut done = 0;
    while done < bytes.len() {
        match fs.write_at(file, &bytes[done..], at + done as u64)? {
            0 => return Err(io::ErrorKind::StorageFull.into()),
            count => done += count,
        }
    }
    Ok(())
}

/// Writes the file `name` in a folder whole or not at all, and syncs it. Until then it has the name
/// `staged`, which a power cut may leave.
///
/// # Errors
/// Any error of the operating system; the old file stays, unless the folder's sync failed.
pub fn replace_whole(fs: &dyn Fs, folder: &File, name: &[u8], staged: &[u8], bytes: &[u8]) -> io::Result<()> {
    let file = match fs.create(folder, staged) {
        // A power cut left the file before its rename.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => fs.open_to_write(folder, staged)?,
        created => created?,
    };
    fs.set_len(&file, 0)?;
    write_all(fs, &file, bytes, 0)?;
    fs.sync(&file)?;
    fs.rename(folder, staged, folder, name, Existing::Replaced)?;
    fs.sync(folder)
}

/// Reads the file `name` below a folder; `None` if there is none.
///
/// # Errors
/// Any error of the operating system; [`io::ErrorKind::InvalidData`] if it is longer than `bytes_max`.
pub fn read_whole(fs: &dyn Fs, folder: &File, name: &[u8], bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
    let file = match fs.open_beneath(folder, name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened?,
    };
    let size = usize::try_from(fs.stat(&file)?.size).unwrap_or(usize::MAX);
    if size > bytes_max {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let (mut bytes, mut filled) = (vec![0; size], 0);
    while filled < bytes.len() {
        match fs.read_at(&file, &mut bytes[filled..], filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    bytes.truncate(filled);
    Ok(Some(bytes))
}
