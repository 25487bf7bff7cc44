//! What LIST and NLST send: a line for each file and folder.
//!
//! Not here: which files, and the facts of MLSD ([`super::facts`]). RFC 959 leaves the form of LIST open;
//! clients read the one that `ls -l` has. What must hold: one entry is one line, whatever its name; what NLST
//! sends can be sent back as a path.

use std::time::Duration;

use super::time::calendar;
use crate::decimal::write_decimal;

/// A time further back has a year in place of hours and minutes, as `ls -l` has it: about half a year.
pub const RECENT_DAYS: u64 = 180;

const RECENT: Duration = Duration::from_secs(RECENT_DAYS * 86_400);

/// How wide the size is, so that columns stand below each other.
const SIZE_WIDTH: usize = 10;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// A folder.
    Folder,
}

/// What the one who asks may do with an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Download the file; list and enter the folder.
    pub read: bool,
    /// Put bytes into the file; put files and folders into the folder.
    pub write: bool,
    /// Delete it, and so also rename it, and replace what is in the file.
    pub remove: bool,
}

/// One file or folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its name, or the path that MLST was asked for.
    pub name: &'a [u8],
    /// File or folder.
    pub kind: Kind,
    /// In bytes.
    pub size: u64,
    /// When it was changed, since the start of 1970.
    pub modified: Duration,
    /// Its device and inode: the same for two names of the same file.
    pub unique: (u64, u64),
    /// What may be done with it.
    pub rights: Rights,
}

/// Appends an entry as `ls -l` shows it. `now` is since the start of 1970, as the entry's own time.
///
/// A CR or LF in the name is shown as a question mark: the line is for people.
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

/// `drwxr-xr-x`: whoever may write is shown as the owner.
fn push_mode(out: &mut Vec<u8>, entry: &Entry<'_>) {
    let shown = |is: bool, letter: u8| if is { letter } else { b'-' };
    let is_folder = entry.kind == Kind::Folder;
    let Rights { read, write, .. } = entry.rights;
    out.push(shown(is_folder, b'd'));
    for is_owner in [true, false, false] {
        out.push(shown(read, b'r'));
        out.push(shown(write && is_owner, b'w'));
        out.push(shown(read && is_folder, b'x'));
    }
}

/// A name without what would begin another column.
fn push_word(out: &mut Vec<u8>, word: &str) {
    out.extend(word.bytes().map(|byte| if byte <= b' ' || byte == 0x7f { b'?' } else { byte }));
}

/// `Mon dd hh:mm`, or `Mon dd  yyyy` where that could be another year's.
fn push_when(out: &mut Vec<u8>, modified: Duration, now: Duration) {
    let time = calendar(modified);
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

/// Appends a number with spaces before it.
fn push_padded(out: &mut Vec<u8>, number: u64, width: usize) {
    let mut digits = Vec::new();
    write_decimal(number, &mut digits);
    out.extend(std::iter::repeat_n(b' ', width.saturating_sub(digits.len())));
    out.extend_from_slice(&digits);
}

/// Appends a name as NLST has it, after the folder's path as it was asked for with its slash, or nothing:
/// "The data returned by an NLST command MUST contain only a simple list of legal pathnames" (RFC 1123,
/// section 4.1.2.7). Whether it was: a name with a CR or LF is left out, since it would be read as two.
pub fn push_name(out: &mut Vec<u8>, folder: &[u8], name: &[u8]) -> bool {
    let is_line = is_line(folder) && is_line(name);
    if is_line {
        out.extend_from_slice(folder);
        out.extend_from_slice(name);
        out.extend_from_slice(b"\r\n");
    }
    is_line
}

/// Whether a name stays on its line.
pub(super) fn is_line(name: &[u8]) -> bool {
    !name.iter().copied().any(is_line_end)
}

fn is_line_end(byte: u8) -> bool {
    byte == b'\r' || byte == b'\n'
}
