//! The record of an entry of the trash: a text file beside it, which an operator can read.
//!
//! The first line is a JSON object with the path that the entry had in its home, percent-encoded. The record
//! of a folder gets a second line with the folder's usage, once that is counted. Invariant: a record that was
//! torn anywhere yields what was written, or nothing.

use std::io;

use plimsoll_io::{File, Fs, write_all};
use serde::{Deserialize, Serialize};

use super::{TrashFolder, TrashId};
use crate::error::{Error, Result};
use crate::home::LocalHome;
use crate::path::Path;
use crate::usage::Usage;
use crate::write::record::read_text;

/// The first line of a record.
#[derive(Serialize, Deserialize)]
struct FirstLine {
    path: Path,
}

/// The contents of a record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TrashRecord {
    /// The path that the entry had.
    pub(super) path: Path,
    /// The usage of a folder, if it was counted.
    pub(super) usage: Option<Usage>,
}

/// Writes the record of an entry that is about to be moved, and syncs it.
pub(super) fn write(
    fs: &dyn Fs,
    home: &LocalHome,
    trash: &TrashFolder,
    id: TrashId,
    path: &Path,
) -> Result<()> {
    let file = fs.create(&trash.folder, &id.record_name())?;
    let written = write_all(fs, &file, &line(&FirstLine { path: path.clone().beneath(&Path::root()) }), 0);
    let synced = written.map_err(Error::from).and_then(|()| home.sync(fs, &[&file, &trash.folder]));
    let synced = synced.map_err(|error| match error {
        // Some file systems look for the space only now. Nothing was moved yet.
        Error::Failed(error) if is_full(&error) => Error::Full,
        error => error,
    });
    synced.inspect_err(|_| trash.remove_record(fs, id))
}

/// Adds the usage of a folder to its record, in the place of a damaged one. It is not synced: without it, the
/// folder is counted again.
pub(super) fn add_usage(fs: &dyn Fs, folder: &File, id: TrashId, usage: Usage) -> Result<()> {
    let file = fs.open_to_write(folder, &id.record_name())?;
    let text = read_text(fs, &fs.open_beneath(folder, &id.record_name())?)?;
    let end = text.iter().position(|byte| *byte == b'\n').map_or(0, |end| end as u64 + 1);
    if end == 0 {
        // A record that was lost, and has no path.
        return Ok(());
    }
    fs.set_len(&file, end)?;
    Ok(write_all(fs, &file, &line(&usage), end)?)
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Reads a record; none if there is no valid one.
pub(super) fn read(fs: &dyn Fs, folder: &File, id: TrashId) -> Result<Option<TrashRecord>> {
    match fs.open_beneath(folder, &id.record_name()) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        opened => Ok(parse(&read_text(fs, &opened?)?)),
    }
}

fn line(value: &impl Serialize) -> Vec<u8> {
    // Serialising strings and numbers into memory cannot fail.
    let mut line = serde_json::to_vec(value).unwrap_or_default();
    line.push(b'\n');
    line
}

fn parse(text: &[u8]) -> Option<TrashRecord> {
    let mut lines = text.split_inclusive(|byte| *byte == b'\n').map_while(|line| line.strip_suffix(b"\n"));
    let FirstLine { path } = serde_json::from_slice(lines.next()?).ok()?;
    let usage = lines.next().and_then(|line| serde_json::from_slice(line).ok());
    Some(TrashRecord { path, usage })
}

/// Checks the invariant of records with an input of the fuzzer, and panics if it is broken.
#[cfg(feature = "fuzzing")]
#[allow(clippy::panic, reason = "a finding of the fuzzer is a panic")]
pub fn check_trash_record(text: &[u8]) {
    let Some(record) = parse(text) else { return };
    let usage = record.usage.map(|usage| line(&usage)).unwrap_or_default();
    assert_eq!(parse(&[line(&FirstLine { path: record.path.clone() }), usage].concat()), Some(record));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_cut_anywhere_yields_what_was_written_or_nothing() {
        let path = Path::parse(b"a folder/\xff 100%\n").unwrap();
        let usage = Usage { bytes: 123, files: 4, folders: 5 };
        let first = line(&FirstLine { path: path.clone() });
        let text = [first.clone(), line(&usage)].concat();
        for cut in 0..=text.len() {
            let expected = (cut >= first.len())
                .then(|| TrashRecord { path: path.clone(), usage: (cut == text.len()).then_some(usage) });
            assert_eq!(parse(&text[..cut]), expected, "{cut}");
        }
        let torn = [first, vec![0; 20], b"\n".to_vec()].concat();
        assert_eq!(parse(&torn), Some(TrashRecord { path, usage: None }));
    }
}
