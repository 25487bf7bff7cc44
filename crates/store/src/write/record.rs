//! The record of a resumable upload: a small file next to its bytes.
//!
//! The first line is a JSON object that describes the upload. After it are two lines of equal length,
//! written in turn. Each has an offset up to which the bytes are synced, and a check code; it is written
//! only after that sync. A third such line has the upload's length, if that was announced later. The record
//! is text, so that an operator can read it, and it does not grow further.
//!
//! Invariant: a record that was truncated or torn anywhere yields an offset that was synced, or none.

use std::time::{Duration, SystemTime};

use plimsoll_io::{File, Fs, write_all};
use plimsoll_wire::http::target::{decode_path, encoded_path};
use serde::{Deserialize, Serialize};

use super::id::UploadId;
use crate::error::{Error, Result};
use crate::home::{ByPath, LocalHome};
use crate::limits::RECORD_BYTES_MAX;
use crate::path::Path;

/// The description of an upload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UploadDescription {
    /// The path that it is to have; the root for a partial upload, which has none.
    pub(crate) to: Path,
    /// Its length in bytes, if it was announced.
    pub(crate) bytes: Option<u64>,
    /// When it began.
    pub(crate) created: SystemTime,
    /// The condition at its commit, in the protocol's own syntax; empty if there is none.
    pub(crate) condition: String,
    /// The client's metadata, in the protocol's own syntax.
    pub(crate) metadata: String,
    /// Whether its path alone identifies it, as FTP resumes. An upload with an identifier of its own is not
    /// resumed by path: its client would not learn of that.
    pub(crate) is_by_path: bool,
}

/// An open record.
pub(super) struct Record {
    id: UploadId,
    file: File,
    /// The offset in the file at which the two lines with offsets begin.
    begin: u64,
    /// The index of the line that is written next: not the one that was written last.
    next: u64,
    /// Whether the line that was written last is synced.
    is_synced: bool,
}

/// The index of the line with the length, behind those with offsets.
const LENGTH_LINE: usize = 2;

/// Bytes of a line with an offset: 20 digits, a space, a check code of 8, the line's end.
const OFFSET_LINE_BYTES: usize = 30;

/// The contents of a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RecordContents {
    pub(crate) description: UploadDescription,
    pub(crate) offset: u64,
    begin: u64,
    next: u64,
}

/// The first line of a record.
#[derive(Serialize, Deserialize)]
struct FirstLine {
    path: String,
    bytes: Option<u64>,
    created_micros: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    condition: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    metadata: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    by_path: bool,
}

impl Record {
    /// Writes the record of a new upload.
    pub(super) fn create(
        fs: &dyn Fs,
        staging: &File,
        id: UploadId,
        description: &UploadDescription,
    ) -> Result<Record> {
        let file = fs.create(staging, &id.record_name())?;
        let line = description.to_line();
        write_all(fs, &file, &line, 0)?;
        Ok(Record { id, file, begin: line.len() as u64, next: 0, is_synced: true })
    }

    /// Opens the record of an upload. Also returns the description and the offset.
    pub(super) fn open(
        fs: &dyn Fs,
        home: &LocalHome,
        id: UploadId,
        now: SystemTime,
    ) -> Result<(Record, UploadDescription, u64)> {
        let file = fs.open_to_write(&home.staging_of(id), &id.record_name())?;
        let stat = fs.stat(&file)?;
        if has_expired(stat.modified, home, now) {
            return Err(Error::NotFound);
        }
        let RecordContents { description, offset, begin, next } =
            read(fs, &file, id)?.ok_or(Error::NotFound)?;
        Ok((Record { id, file, begin, next, is_synced: true }, description, offset))
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    /// Syncs the line that was written last.
    pub(super) fn sync(&mut self, fs: &dyn Fs, home: &LocalHome) -> Result<()> {
        home.sync(fs, &[&self.file])?;
        self.is_synced = true;
        Ok(())
    }

    /// Notes that the line that was written last is synced: a [recording](super::recording) syncs it while
    /// the upload continues.
    pub(super) fn note_synced(&mut self) {
        self.is_synced = true;
    }

    /// Records that the bytes up to `offset` are synced, which must be true. The other line stays: a power
    /// cut may tear this one. So the other line is synced first, if a recording has not done that yet.
    pub(super) fn write_offset(&mut self, fs: &dyn Fs, home: &LocalHome, offset: u64) -> Result<()> {
        if !self.is_synced {
            self.sync(fs, home)?;
        }
        let at = self.begin + self.next * OFFSET_LINE_BYTES as u64;
        write_all(fs, &self.file, &offset_line(self.id, offset), at)?;
        (self.next, self.is_synced) = (1 - self.next, false);
        Ok(())
    }

    /// Records the length of the upload, which has none yet, and syncs it. A torn line counts as none.
    pub(super) fn write_length(&mut self, fs: &dyn Fs, home: &LocalHome, bytes: u64) -> Result<()> {
        let at = self.begin + (LENGTH_LINE * OFFSET_LINE_BYTES) as u64;
        write_all(fs, &self.file, &length_line(self.id, bytes), at)?;
        self.sync(fs, home)
    }

    /// Returns to a smaller `offset`, before other bytes are written beyond it. The larger of the two
    /// offsets counts, so both lines are overwritten, that with the larger offset last. A power cut between
    /// them changes nothing.
    ///
    /// After an error the record may yield either offset, now or after a power cut.
    pub(super) fn cut_to(&mut self, fs: &dyn Fs, home: &LocalHome, offset: u64) -> Result<()> {
        for _ in 0..2 {
            self.write_offset(fs, home, offset)?;
            self.sync(fs, home)?;
        }
        Ok(())
    }
}

impl UploadDescription {
    /// Returns the offset to report when the bytes up to `offset` are synced: never that of the end before
    /// the commit. The commit may have failed or never have been requested; a client that takes the upload
    /// for complete would never retry. A partial upload is complete by itself.
    pub(super) fn reported_offset(&self, offset: u64) -> u64 {
        if self.to.is_root() {
            return offset;
        }
        self.bytes.map_or(offset, |bytes| offset.min(bytes.saturating_sub(1)))
    }
}

/// Whether an upload has expired that was last written at `modified`.
pub(crate) fn has_expired(modified: Duration, home: &LocalHome, now: SystemTime) -> bool {
    expires(modified, home) <= now
}

/// Returns when an upload expires that was last written at `modified`.
pub(super) fn expires(modified: Duration, home: &LocalHome) -> SystemTime {
    SystemTime::UNIX_EPOCH + modified + home.common().settings.upload_kept_time
}

/// Reads a record's file; none if it is no valid record.
pub(crate) fn read(fs: &dyn Fs, file: &File, id: UploadId) -> Result<Option<RecordContents>> {
    Ok(parse(&read_text(fs, file)?, id))
}

/// Reads the text of a record or a list, up to [`RECORD_BYTES_MAX`].
pub(crate) fn read_text(fs: &dyn Fs, file: &File) -> Result<Vec<u8>> {
    let size = fs.stat(file)?.size.min(RECORD_BYTES_MAX);
    let mut text = vec![0; usize::try_from(size).unwrap_or(0)];
    let mut filled = 0;
    while filled < text.len() {
        match fs.read_at(file, &mut text[filled..], filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    text.truncate(filled);
    Ok(text)
}

fn parse(text: &[u8], id: UploadId) -> Option<RecordContents> {
    let end = text.iter().position(|byte| *byte == b'\n')?;
    let mut description = UploadDescription::from_line(&text[..end])?;
    let begin = end + 1;
    let line_at = |line: usize| {
        let start = begin + line * OFFSET_LINE_BYTES;
        text.get(start..start + OFFSET_LINE_BYTES).unwrap_or_default()
    };
    let (first, second) = (parse_offset(line_at(0), id), parse_offset(line_at(1), id));
    description.bytes = description.bytes.or_else(|| parse_length(line_at(LENGTH_LINE), id));
    // Offsets only grow, and a cut overwrites both lines: the larger one is the later one.
    let next = u64::from(first > second);
    Some(RecordContents { description, offset: first.max(second).unwrap_or(0), begin: begin as u64, next })
}

impl UploadDescription {
    /// Describes a new upload, with its time as a record keeps it: to the microsecond.
    pub(super) fn new(
        to: Path,
        bytes: Option<u64>,
        (condition, metadata): (String, String),
        now: SystemTime,
    ) -> UploadDescription {
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let micros = Duration::from_micros(u64::from(since.subsec_micros()));
        let created = SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs()) + micros;
        UploadDescription { to, bytes, created, condition, metadata, is_by_path: false }
    }

    /// Describes a new upload that its path alone identifies: of unknown length, without a condition.
    pub(super) fn new_by_path(to: Path, now: SystemTime) -> UploadDescription {
        UploadDescription {
            is_by_path: true,
            ..UploadDescription::new(to, None, (String::new(), String::new()), now)
        }
    }

    /// The path and time that identify it, if it can be resumed by path.
    pub(crate) fn by_path(&self) -> Option<ByPath> {
        self.is_by_path.then(|| ByPath { to: self.to.clone(), created: self.created })
    }

    fn to_line(&self) -> Vec<u8> {
        let created = self.created.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_micros();
        let created_micros = u64::try_from(created).unwrap_or(0);
        let path = encoded_path(self.to.as_bytes());
        let (bytes, condition, by_path) = (self.bytes, self.condition.clone(), self.is_by_path);
        let metadata = self.metadata.clone();
        let line = FirstLine { path, bytes, created_micros, condition, metadata, by_path };
        // Serialising strings and numbers into memory cannot fail.
        let mut line = serde_json::to_vec(&line).unwrap_or_default();
        line.push(b'\n');
        line
    }

    fn from_line(line: &[u8]) -> Option<UploadDescription> {
        let line: FirstLine = serde_json::from_slice(line).ok()?;
        let mut path = Vec::new();
        decode_path(format!("/{}", line.path).as_bytes(), &mut path).ok()?;
        let created = SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(line.created_micros))?;
        let to = Path::parse(&path).ok()?;
        let FirstLine { bytes, condition, metadata, by_path: is_by_path, .. } = line;
        Some(UploadDescription { to, bytes, created, condition, metadata, is_by_path })
    }
}

fn offset_line(id: UploadId, offset: u64) -> Vec<u8> {
    number_line(offset, &format!("{id} {offset}"))
}

fn parse_offset(line: &[u8], id: UploadId) -> Option<u64> {
    parse_number(line, |offset| format!("{id} {offset}"))
}

/// Returns the line with the length. Its check code differs from that of an offset.
fn length_line(id: UploadId, bytes: u64) -> Vec<u8> {
    number_line(bytes, &format!("{id} length {bytes}"))
}

fn parse_length(line: &[u8], id: UploadId) -> Option<u64> {
    parse_number(line, |bytes| format!("{id} length {bytes}"))
}

fn number_line(number: u64, checked: &str) -> Vec<u8> {
    format!("{number:020} {}\n", check_of(checked)).into_bytes()
}

fn parse_number(line: &[u8], checked: impl FnOnce(u64) -> String) -> Option<u64> {
    let text = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
    let (number, check) = text.split_once(' ')?;
    let number = number.parse().ok()?;
    (check == check_of(&checked(number))).then_some(number)
}

/// Computes the check code, which tells a written line from the remains of a power cut.
fn check_of(checked: &str) -> String {
    blake3::hash(checked.as_bytes()).to_hex()[..8].to_owned()
}

/// Checks the invariants of records with an input of the fuzzer, and panics if one is broken.
#[cfg(feature = "fuzzing")]
#[allow(clippy::panic, reason = "a finding of the fuzzer is a panic")]
pub fn check_upload_record(id: &[u8], text: &[u8]) {
    let Some(id) = UploadId::parse(id) else { return };
    let Some(record) = parse(text, id) else { return };
    let written = [record.description.to_line(), offset_line(id, record.offset)].concat();
    let again = parse(&written, id);
    assert!(
        again.is_some_and(|again| again.description == record.description && again.offset == record.offset)
    );
    // After the first line, only two lines with offsets are read.
    let begin = usize::try_from(record.begin).unwrap_or(usize::MAX);
    let end = begin.saturating_add(2 * OFFSET_LINE_BYTES).min(text.len());
    for cut in begin..end {
        let offset = parse(&text[..cut], id).map_or(0, |cut| cut.offset);
        assert!(offset <= record.offset, "{offset} after a cut at {cut}, {} before", record.offset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description() -> UploadDescription {
        let to = Path::parse(b"a folder/\xff 100%").unwrap();
        let created = SystemTime::UNIX_EPOCH + Duration::from_secs(7);
        let (condition, metadata) = ("If-None-Match: *".to_owned(), "name YQ==,type".to_owned());
        UploadDescription { to, bytes: Some(10), created, condition, metadata, is_by_path: false }
    }

    fn id() -> UploadId {
        UploadId::parse(b"000102030405060708090a0b0c0d0e0f").unwrap()
    }

    fn text(offsets: &[u64]) -> Vec<u8> {
        let lines = offsets.iter().flat_map(|offset| offset_line(id(), *offset));
        description().to_line().into_iter().chain(lines).collect()
    }

    fn offset_of(text: &[u8]) -> u64 {
        parse(text, id()).unwrap().offset
    }

    #[test]
    fn a_record_says_what_was_written() {
        let begin = description().to_line().len() as u64;
        for (offsets, offset, next) in [(&[][..], 0, 0), (&[4], 4, 1), (&[4, 10], 10, 0), (&[12, 10], 12, 1)]
        {
            let contents = RecordContents { description: description(), offset, begin, next };
            assert_eq!(parse(&text(offsets), id()), Some(contents), "{offsets:?}");
        }
    }

    #[test]
    fn a_record_without_the_field_is_not_of_an_upload_by_path() {
        let description = UploadDescription::new_by_path(Path::parse(b"a").unwrap(), SystemTime::UNIX_EPOCH);
        let line = description.to_line();
        assert_eq!(parse(&line, id()).unwrap().description, description);
        let without = String::from_utf8(line).unwrap().replace(",\"by_path\":true", "");
        assert_eq!(parse(without.as_bytes(), id()).unwrap().description.by_path(), None);
    }

    #[test]
    fn a_length_that_was_announced_later_counts_once_its_line_is_whole() {
        let description = UploadDescription { bytes: None, ..description() };
        let before = [description.to_line(), offset_line(id(), 4)].concat();
        let whole = [&before[..], &[0; OFFSET_LINE_BYTES], &length_line(id(), 10)].concat();
        for len in before.len()..=whole.len() {
            let contents = parse(&whole[..len], id()).unwrap();
            let bytes = (len == whole.len()).then_some(10);
            assert_eq!((contents.description.bytes, contents.offset, contents.next), (bytes, 4, 1), "{len}");
        }
        // A line with an offset is never taken for the length, nor does one replace a length.
        let offsets = [&before[..], &[0; OFFSET_LINE_BYTES], &offset_line(id(), 10)].concat();
        assert_eq!(parse(&offsets, id()).unwrap().description.bytes, None);
        let other = [text(&[4, 5]), length_line(id(), 7)].concat();
        assert_eq!(parse(&other, id()).unwrap().description.bytes, Some(10));
    }

    #[test]
    fn cut_short_anywhere_it_tells_an_offset_that_was_synced() {
        let text = text(&[4, 10]);
        for len in 0..text.len() {
            match parse(&text[..len], id()) {
                None => assert!(len < description().to_line().len()),
                Some(contents) => {
                    assert_eq!(contents.description, description());
                    assert!(contents.offset == 0 || contents.offset == 4, "{} at {len}", contents.offset);
                }
            }
        }
    }

    #[test]
    fn a_line_that_was_torn_leaves_the_other() {
        let (old, new) = (text(&[12, 10]), text(&[12, 14]));
        let begin = description().to_line().len() + OFFSET_LINE_BYTES;
        // The line's end alone is the same in both.
        for torn in 0..OFFSET_LINE_BYTES - 1 {
            let mut text = old.clone();
            text[begin..begin + torn].copy_from_slice(&new[begin..begin + torn]);
            assert_eq!(offset_of(&text), 12, "{torn}");
        }
        assert_eq!(offset_of(&new), 14);
    }

    #[test]
    fn zeros_and_other_lines_are_no_offsets() {
        let first = description().to_line();
        let others = UploadId::parse(b"ffffffffffffffffffffffffffffffff").unwrap();
        let others = offset_line(others, 9);
        for tail in [&[0; 60][..], b"00000000000000000010 00000000\n", b"10 abc\n", b"\n", &others] {
            assert_eq!(offset_of(&[&first, tail].concat()), 0, "{tail:?}");
        }
    }

    #[test]
    fn a_path_that_leads_out_is_no_record() {
        for path in ["../a", "a//../b", "%2e%2e/a", "a%00"] {
            let line = format!("{{\"path\":\"{path}\",\"bytes\":1,\"created_micros\":1}}\n");
            assert_eq!(parse(line.as_bytes(), id()), None, "{path}");
        }
    }
}
