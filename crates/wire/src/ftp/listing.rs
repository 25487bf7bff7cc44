//! Output of LIST and NLST: a line for each file and folder.
//!
//! Not here: which entries are listed, and the facts of MLSD ([`super::facts`]). RFC 959 leaves the form of
//! LIST open; clients parse that of `ls -l`. Invariants: one entry is one line, regardless of its name; a
//! client can send a line of NLST back as a path.

use std::time::Duration;

use crate::calendar::CalendarTime;
use crate::decimal::write_decimal;

/// Age in days above which a time shows the year instead of hours and minutes, about half a year like `ls
/// -l`.
pub const RECENT_DAYS: u64 = 180;

const RECENT: Duration = Duration::from_secs(RECENT_DAYS * 86_400);

/// Width of the size column, in characters.
const SIZE_WIDTH: usize = 10;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The type of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A file.
    File,
    /// A folder.
    Folder,
}

/// The caller's rights to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Download the file; list and enter the folder.
    pub read: bool,
    /// Write into the file; create files and folders in the folder.
    pub write: bool,
    /// Delete the entry, and so also rename it and replace its contents.
    pub remove: bool,
}

/// One file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The name, or the path that was the argument of MLST.
    pub name: &'a [u8],
    /// File or folder.
    pub kind: EntryKind,
    /// Size in bytes.
    pub size: u64,
    /// Modification time, since the start of 1970.
    pub modified: Duration,
    /// Device and inode: equal for two names of the same file.
    pub unique: (u64, u64),
    /// The caller's rights.
    pub rights: Rights,
}

/// Appends an entry in the form of `ls -l`. `now` counts from the start of 1970, as does the entry's time.
///
/// A CR or LF in the name becomes a question mark, because the line is for people.
pub fn push_list(out: &mut Vec<u8>, entry: &Entry<'_>, owner: &str, now: Duration) {
    push_mode(out, entry);
    out.extend_from_slice(b" 1 ");
    push_word(out, owner);
    out.push(b' ');
    push_word(out, owner);
    out.push(b' ');
    push_padded(out, entry.size, SIZE_WIDTH);
    out.push(b' ');
    push_when(out, entry.modified, now);
    out.push(b' ');
    out.extend(entry.name.iter().map(|&byte| if is_line_end(byte) { b'?' } else { byte }));
    out.extend_from_slice(b"\r\n");
}

/// Appends `drwxr-xr-x`. The caller's right to write is shown as the owner's.
fn push_mode(out: &mut Vec<u8>, entry: &Entry<'_>) {
    let shown = |is: bool, letter: u8| if is { letter } else { b'-' };
    let is_folder = entry.kind == EntryKind::Folder;
    let Rights { read, write, .. } = entry.rights;
    out.push(shown(is_folder, b'd'));
    for is_owner in [true, false, false] {
        out.push(shown(read, b'r'));
        out.push(shown(write && is_owner, b'w'));
        out.push(shown(read && is_folder, b'x'));
    }
}

/// Appends a name. Spaces and control characters, which could start another column, become question marks.
fn push_word(out: &mut Vec<u8>, word: &str) {
    out.extend(word.bytes().map(|byte| if byte <= b' ' || byte == 0x7f { b'?' } else { byte }));
}

/// Appends `Mon dd hh:mm`, or `Mon dd  yyyy` for a time that is not recent.
fn push_when(out: &mut Vec<u8>, modified: Duration, now: Duration) {
    let time = CalendarTime::at(modified);
    let month = usize::try_from(time.month - 1).ok().and_then(|at| MONTHS.get(at)).copied();
    out.extend_from_slice(month.unwrap_or_default().as_bytes());
    out.push(b' ');
    push_padded(out, time.day, 2);
    if modified <= now && now - modified <= RECENT {
        out.push(b' ');
        super::time::push_digits(out, time.hour, 2);
        out.push(b':');
        super::time::push_digits(out, time.minute, 2);
    } else {
        out.extend_from_slice(b"  ");
        super::time::push_digits(out, time.year, 4);
    }
}

/// Appends a number, padded with spaces.
fn push_padded(out: &mut Vec<u8>, number: u64, width: usize) {
    let mut digits = Vec::new();
    write_decimal(number, &mut digits);
    out.extend(std::iter::repeat_n(b' ', width.saturating_sub(digits.len())));
    out.extend_from_slice(&digits);
}

/// Appends a name in NLST's form. `folder` is the path from the command with its slash, or empty: "The data
/// returned by an NLST command MUST contain only a simple list of legal pathnames" (RFC 1123, section
/// 4.1.2.7). Returns false and appends nothing if a name has a CR or LF, which a client would read as two.
pub fn push_name(out: &mut Vec<u8>, folder: &[u8], name: &[u8]) -> bool {
    let is_line = is_line(folder) && is_line(name);
    if is_line {
        out.extend_from_slice(folder);
        out.extend_from_slice(name);
        out.extend_from_slice(b"\r\n");
    }
    is_line
}

/// Returns whether a name contains no line end. Another can be in no line of a listing, and in no command.
#[must_use]
pub fn is_line(name: &[u8]) -> bool {
    !name.iter().copied().any(is_line_end)
}

fn is_line_end(byte: u8) -> bool {
    byte == b'\r' || byte == b'\n'
}
