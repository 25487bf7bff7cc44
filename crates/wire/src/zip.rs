//! Writes a zip archive as a stream (PKWARE's APPNOTE 6.3.10): no byte is written twice, and none but the
//! directory at the end is kept.
//!
//! Not here: files, and the choice of entries. Contents are stored without compression: a server's files
//! are mostly compressed already, and deflate is ten times slower than a fast network. The size of a file
//! is known before its first byte, its CRC only after the last: so the CRC follows in a data descriptor.
//! The zip64 forms are used only where a number does not fit, because some readers lack them.
//!
//! Invariants: a file has exactly the bytes that its entry announces. The directory is kept in a compact
//! form, a few bytes above the part of the name in which an entry differs from the one before.

use core::time::Duration;

use crc32fast::Hasher;

use crate::calendar::CalendarTime;

const LOCAL_HEADER: u32 = 0x0403_4b50;
const DESCRIPTOR: u32 = 0x0807_4b50;
const CENTRAL_HEADER: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const ZIP64_END: u32 = 0x0606_4b50;
const ZIP64_LOCATOR: u32 = 0x0706_4b50;

/// The CRC and the sizes follow the contents (section 4.4.4).
const HAS_DESCRIPTOR: u16 = 1 << 3;
/// The name is UTF-8.
const IS_UTF8: u16 = 1 << 11;
/// The version of a reader that knows folders.
const VERSION: u16 = 20;
/// The version of a reader that knows zip64.
const VERSION_ZIP64: u16 = 45;
/// The operating system whose attributes the entries have (section 4.4.2).
const UNIX: u16 = 3 << 8;
/// The attributes of entries: their Unix modes, and the MS-DOS bit of a folder.
const FILE_ATTRIBUTES: u32 = 0o100_644 << 16;
const FOLDER_ATTRIBUTES: u32 = 0o040_755 << 16 | 0x10;
/// The extended timestamp: the UTC time that the DOS time lacks.
const TIMESTAMP_EXTRA: u16 = 0x5455;
const ZIP64_EXTRA: u16 = 1;
/// Stands for a number that is in a zip64 form.
const IN_ZIP64: u32 = u32::MAX;

/// The reason why an archive cannot be continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ZipError {
    /// The format has two bytes for the length of a name.
    #[error("a name is longer than 65,535 bytes")]
    NameTooLong,
    /// A file has more or fewer bytes than its entry announces.
    #[error("a file does not have the announced size")]
    Size,
}

/// The first part of an archive: its entries, one after the other.
#[derive(Debug, Default)]
pub struct ZipWriter {
    /// Bytes written so far.
    offset: u64,
    count: u64,
    records: Records,
    /// The entry whose contents are being written.
    file: Option<(Entry, Hasher, u64)>,
}

/// The second part of an archive: the directory of its entries.
#[derive(Debug)]
pub struct ZipDirectory {
    start: u64,
    count: u64,
    bytes: u64,
    rest: RecordReader,
    /// The offset of the next entry in the archive.
    entry_offset: u64,
}

/// An entry, as its record has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Entry {
    name: Vec<u8>,
    /// Length in bytes; none of a folder.
    size: Option<u64>,
    crc: u32,
    /// Seconds since 1970.
    modified: u64,
}

impl ZipWriter {
    /// Creates an empty archive.
    #[must_use]
    pub fn new() -> ZipWriter {
        ZipWriter::default()
    }

    /// Adds a folder. `name` is a path with slashes, without one at its end.
    ///
    /// # Errors
    /// [`ZipError::NameTooLong`]; [`ZipError::Size`] if a file is not ended.
    pub fn add_folder(&mut self, name: &[u8], modified: Duration, out: &mut Vec<u8>) -> Result<(), ZipError> {
        let name = [name, b"/"].concat();
        let entry = Entry { name, size: None, crc: 0, modified: modified.as_secs() };
        self.begin(&entry, out)?;
        self.note(&entry);
        Ok(())
    }

    /// Begins a file of `size` bytes, which the caller sends next.
    ///
    /// # Errors
    /// As [`ZipWriter::add_folder`].
    pub fn begin_file(
        &mut self,
        name: &[u8],
        size: u64,
        modified: Duration,
        out: &mut Vec<u8>,
    ) -> Result<(), ZipError> {
        let entry = Entry { name: name.to_vec(), size: Some(size), crc: 0, modified: modified.as_secs() };
        self.begin(&entry, out)?;
        self.file = Some((entry, Hasher::new(), 0));
        Ok(())
    }

    /// Takes note of the next bytes of the file, which the caller sends.
    pub fn contents(&mut self, bytes: &[u8]) {
        if let Some((_, hasher, received)) = &mut self.file {
            hasher.update(bytes);
            *received += bytes.len() as u64;
        }
    }

    /// Ends the file.
    ///
    /// # Errors
    /// [`ZipError::Size`].
    pub fn end_file(&mut self, out: &mut Vec<u8>) -> Result<(), ZipError> {
        let Some((mut entry, hasher, received)) = self.file.take() else { return Err(ZipError::Size) };
        if entry.size != Some(received) {
            return Err(ZipError::Size);
        }
        entry.crc = hasher.finalize();
        put32(out, DESCRIPTOR);
        put32(out, entry.crc);
        if entry.is_zip64() {
            put64(out, received);
            put64(out, received);
        } else {
            put32(out, low32(received));
            put32(out, low32(received));
        }
        self.note(&entry);
        Ok(())
    }

    /// Returns the bytes of memory that the directory takes so far.
    #[must_use]
    pub fn directory_bytes(&self) -> u64 {
        self.records.bytes.capacity() as u64
    }

    /// Ends the entries.
    ///
    /// # Errors
    /// [`ZipError::Size`] if a file is not ended.
    pub fn finish(self) -> Result<ZipDirectory, ZipError> {
        if self.file.is_some() {
            return Err(ZipError::Size);
        }
        let rest = RecordReader { bytes: self.records.bytes, position: 0, name: Vec::new() };
        Ok(ZipDirectory { start: self.offset, count: self.count, bytes: 0, rest, entry_offset: 0 })
    }

    /// Writes a local file header (section 4.3.7).
    fn begin(&mut self, entry: &Entry, out: &mut Vec<u8>) -> Result<(), ZipError> {
        let name_length = u16::try_from(entry.name.len()).map_err(|_| ZipError::NameTooLong)?;
        if self.file.is_some() {
            return Err(ZipError::Size);
        }
        put32(out, LOCAL_HEADER);
        entry.put_common(out);
        let sizes = if entry.is_zip64() { IN_ZIP64 } else { 0 };
        for number in [0, sizes, sizes] {
            put32(out, number);
        }
        put16(out, name_length);
        put16(out, entry.local_extra_bytes());
        out.extend_from_slice(&entry.name);
        entry.put_timestamp(out);
        if entry.is_zip64() {
            // "This entry in the Local header MUST include BOTH original and compressed file size fields"
            // (section 4.5.3). As the CRC, they follow in the descriptor.
            put_zip64(out, &[0, 0]);
        }
        Ok(())
    }

    /// Adds a complete entry to the directory.
    fn note(&mut self, entry: &Entry) {
        self.records.push(entry);
        self.offset += entry.bytes();
        self.count += 1;
    }
}

impl ZipDirectory {
    /// Writes a part of the directory: until `out` has `enough` bytes, or all is written. Returns whether it
    /// is.
    #[must_use]
    pub fn write(&mut self, enough: usize, out: &mut Vec<u8>) -> bool {
        while out.len() < enough {
            let before = out.len();
            let Some(entry) = self.rest.next_entry() else {
                self.write_end(out);
                return true;
            };
            entry.put_central(self.entry_offset, out);
            self.entry_offset += entry.bytes();
            self.bytes += (out.len() - before) as u64;
        }
        false
    }

    /// Returns the bytes of memory that the directory takes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.rest.bytes.capacity() as u64
    }

    /// Writes the end of central directory record, and before it that of zip64 if it is needed (sections
    /// 4.3.14 to 4.3.16).
    fn write_end(&self, out: &mut Vec<u8>) {
        let count = u16::try_from(self.count).unwrap_or(u16::MAX);
        let (bytes, start) = (low32(self.bytes), low32(self.start));
        if count == u16::MAX || bytes == IN_ZIP64 || start == IN_ZIP64 {
            put32(out, ZIP64_END);
            put64(out, 44);
            put16(out, UNIX | VERSION_ZIP64);
            put16(out, VERSION_ZIP64);
            put64(out, 0);
            for number in [self.count, self.count, self.bytes, self.start] {
                put64(out, number);
            }
            put32(out, ZIP64_LOCATOR);
            put32(out, 0);
            put64(out, self.start + self.bytes);
            put32(out, 1);
        }
        put32(out, END);
        put32(out, 0);
        put16(out, count);
        put16(out, count);
        put32(out, bytes);
        put32(out, start);
        put16(out, 0);
    }
}

impl Entry {
    /// Whether the size does not fit into four bytes.
    fn is_zip64(&self) -> bool {
        self.size.is_some_and(|size| size >= u64::from(IN_ZIP64))
    }

    /// Whether the time fits into the extended timestamp.
    fn has_timestamp(&self) -> bool {
        i32::try_from(self.modified).is_ok()
    }

    fn local_extra_bytes(&self) -> u16 {
        u16::from(self.has_timestamp()) * 9 + u16::from(self.is_zip64()) * 20
    }

    /// The bytes of the entry in the archive: its header, its contents and its descriptor.
    fn bytes(&self) -> u64 {
        let header = 30 + self.name.len() as u64 + u64::from(self.local_extra_bytes());
        match self.size {
            None => header,
            Some(size) => header + size + if self.is_zip64() { 24 } else { 16 },
        }
    }

    /// Writes the version, flags, method and time, which both headers have.
    fn put_common(&self, out: &mut Vec<u8>) {
        let is_utf8 = core::str::from_utf8(&self.name).is_ok();
        let flags = if is_utf8 { IS_UTF8 } else { 0 } | if self.size.is_some() { HAS_DESCRIPTOR } else { 0 };
        let (date, time) = dos_date_and_time(self.modified);
        let version = if self.is_zip64() { VERSION_ZIP64 } else { VERSION };
        for number in [version, flags, 0, time, date] {
            put16(out, number);
        }
    }

    fn put_timestamp(&self, out: &mut Vec<u8>) {
        if self.has_timestamp() {
            put16(out, TIMESTAMP_EXTRA);
            put16(out, 5);
            out.push(1);
            put32(out, low32(self.modified));
        }
    }

    /// Writes a central directory header (section 4.3.12).
    fn put_central(&self, offset: u64, out: &mut Vec<u8>) {
        let size = self.size.unwrap_or(0);
        let mut zip64 = Vec::new();
        if self.is_zip64() {
            zip64.extend([size, size]);
        }
        if offset >= u64::from(IN_ZIP64) {
            zip64.push(offset);
        }
        let zip64_bytes = if zip64.is_empty() { 0 } else { 4 + 8 * zip64.len() };
        let extra_bytes = usize::from(self.has_timestamp()) * 9 + zip64_bytes;
        put32(out, CENTRAL_HEADER);
        put16(out, UNIX | VERSION_ZIP64);
        self.put_common(out);
        for number in [self.crc, low32(size), low32(size)] {
            put32(out, number);
        }
        // Neither is above the length of a name, and that was checked, plus 37 bytes.
        put16(out, u16::try_from(self.name.len()).unwrap_or(u16::MAX));
        put16(out, u16::try_from(extra_bytes).unwrap_or(u16::MAX));
        for number in [0, 0, 0] {
            put16(out, number);
        }
        put32(out, if self.size.is_some() { FILE_ATTRIBUTES } else { FOLDER_ATTRIBUTES });
        put32(out, low32(offset));
        out.extend_from_slice(&self.name);
        self.put_timestamp(out);
        if !zip64.is_empty() {
            put_zip64(out, &zip64);
        }
    }
}

/// The entries so far. Each is the length of the start of the name that it has in common with the one
/// before, the rest of its name, its size plus one, or zero for a folder, its CRC and its time. Numbers
/// have seven bits a byte, the lowest first, and the eighth says that more follow.
#[derive(Debug, Default)]
struct Records {
    bytes: Vec<u8>,
    last_name: Vec<u8>,
}

impl Records {
    fn push(&mut self, entry: &Entry) {
        let pairs = entry.name.iter().zip(&self.last_name);
        let shared = pairs.take_while(|(one, other)| one == other).count();
        let rest = entry.name.get(shared..).unwrap_or_default();
        put_number(&mut self.bytes, shared as u64);
        put_number(&mut self.bytes, rest.len() as u64);
        self.bytes.extend_from_slice(rest);
        put_number(&mut self.bytes, entry.size.map_or(0, |size| size.saturating_add(1)));
        put32(&mut self.bytes, entry.crc);
        put_number(&mut self.bytes, entry.modified);
        self.last_name.clone_from(&entry.name);
    }
}

/// Reads [`Records`].
#[derive(Debug)]
struct RecordReader {
    bytes: Vec<u8>,
    position: usize,
    name: Vec<u8>,
}

impl RecordReader {
    fn next_entry(&mut self) -> Option<Entry> {
        let shared = usize::try_from(self.number()?).ok()?;
        let length = usize::try_from(self.number()?).ok()?;
        let rest = self.position..self.position + length;
        self.name.truncate(shared);
        self.name.extend_from_slice(self.bytes.get(rest.clone())?);
        self.position = rest.end;
        let size = self.number()?.checked_sub(1);
        let crc = u32::from_le_bytes(self.bytes.get(self.position..)?.first_chunk().copied()?);
        self.position += 4;
        Some(Entry { name: self.name.clone(), size, crc, modified: self.number()? })
    }

    fn number(&mut self) -> Option<u64> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = *self.bytes.get(self.position)?;
            self.position += 1;
            number |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return Some(number);
            }
        }
    }
}

fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

fn put16(out: &mut Vec<u8>, number: u16) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn put32(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn put64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn put_zip64(out: &mut Vec<u8>, numbers: &[u64]) {
    put16(out, ZIP64_EXTRA);
    // At most three numbers.
    put16(out, u16::try_from(8 * numbers.len()).unwrap_or(u16::MAX));
    numbers.iter().for_each(|number| put64(out, *number));
}

/// Returns a number in four bytes, or the one that refers to a zip64 form.
fn low32(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(IN_ZIP64)
}

/// Returns a time in the form of MS-DOS: two seconds exact, from 1980 to 2107. Here it is in UTC.
fn dos_date_and_time(seconds: u64) -> (u16, u16) {
    let at = CalendarTime::at(Duration::from_secs(seconds));
    let (date, time) = match at.year {
        ..1980 => (1 << 5 | 1, 0),
        1980..=2107 => {
            ((at.year - 1980) << 9 | at.month << 5 | at.day, at.hour << 11 | at.minute << 5 | (at.second / 2))
        }
        _ => (127 << 9 | 12 << 5 | 31, 23 << 11 | 59 << 5 | 29),
    };
    // Each is below 65,536.
    (u16::try_from(date).unwrap_or(u16::MAX), u16::try_from(time).unwrap_or(u16::MAX))
}
