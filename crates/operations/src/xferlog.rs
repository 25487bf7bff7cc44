//! Transfers as lines in the form of xferlog(5), which tools for FTP servers' logs can parse.
//!
//! It is not the transfer log, which has more fields. Times are in UTC. A transfer's duration is at least
//! one second, because such tools divide by it. Invariants: for any file name, a line has its number
//! of fields and one end.

use std::time::{Duration, SystemTime};

use plimsoll_wire::http::date::{DATE_BYTES, write_date};
use plimsoll_wire::text::is_unsafe_to_show;

use crate::audit::GUEST;
use crate::operation::Operation;

/// A transfer that has ended.
pub(crate) struct Entry<'a> {
    /// One of the letters that [`direction`] returns.
    pub(crate) direction: char,
    pub(crate) end: SystemTime,
    pub(crate) time: Duration,
    pub(crate) peer: &'a str,
    pub(crate) bytes: u64,
    pub(crate) path: &'a str,
    /// Whether it was transferred as text.
    pub(crate) in_ascii: bool,
    pub(crate) account: &'a str,
    pub(crate) protocol: &'a str,
    pub(crate) is_complete: bool,
}

/// Returns the letter for an operation. Other operations than these have no line here.
pub(crate) fn direction(operation: Operation) -> Option<char> {
    match operation {
        Operation::Download => Some('o'),
        Operation::Upload => Some('i'),
        Operation::Delete => Some('d'),
        _ => None,
    }
}

impl Entry<'_> {
    /// Returns the line, with its line end.
    pub(crate) fn line(&self) -> String {
        let transfer_type = if self.in_ascii { 'a' } else { 'b' };
        let access_mode = if self.account == GUEST { 'a' } else { 'r' };
        let completion = if self.is_complete { 'c' } else { 'i' };
        format!(
            "{} {} {} {} {} {transfer_type} _ {} {access_mode} {} {} 0 * {completion}\n",
            current_time(self.end),
            whole_seconds(self.time),
            field(self.peer),
            self.bytes,
            field(self.path),
            self.direction,
            field(self.account),
            field(self.protocol),
        )
    }
}

/// Returns a text as one field. Spaces and characters that are unsafe in a terminal become `_`, as in
/// ProFTPD's logs.
fn field(text: &str) -> String {
    if text.is_empty() {
        return "_".to_owned();
    }
    text.chars().map(|c| if c.is_whitespace() || is_unsafe_to_show(c) { '_' } else { c }).collect()
}

/// Formats a time as `Fri Nov  6 19:21:39 2026`, from `Fri, 06 Nov 2026 19:21:39 GMT`.
fn current_time(time: SystemTime) -> String {
    let mut date = [0; DATE_BYTES];
    write_date(time, &mut date);
    let date = String::from_utf8_lossy(&date);
    let (weekday, day, month) = (&date[..3], date[5..7].trim_start_matches('0'), &date[8..11]);
    format!("{weekday} {month} {day:>2} {} {}", &date[17..25], &date[12..16])
}

/// Rounds up to whole seconds, at least one.
fn whole_seconds(time: Duration) -> u64 {
    (time.as_secs() + u64::from(time.subsec_nanos() > 0)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry<'static> {
        Entry {
            direction: 'i',
            end: SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_202_499),
            time: Duration::from_millis(1_001),
            peer: "192.0.2.7",
            bytes: 1_048_576,
            path: "/file.bin",
            in_ascii: false,
            account: "alice",
            protocol: "ftp",
            is_complete: true,
        }
    }

    #[test]
    fn lines_are_as_the_manual_page_has_them() {
        let e = entry();
        assert_eq!(
            e.line(),
            "Fri Nov 20 19:21:39 2026 2 192.0.2.7 1048576 /file.bin b _ i r alice ftp 0 * c\n"
        );
        let guest = Entry { direction: 'o', account: GUEST, in_ascii: true, is_complete: false, ..e };
        assert_eq!(
            guest.line(),
            "Fri Nov 20 19:21:39 2026 2 192.0.2.7 1048576 /file.bin a _ o a anonymous ftp 0 * i\n"
        );
        let (time, peer) = (Duration::ZERO, "2001:db8::7");
        let removed = Entry { direction: 'd', time, peer, bytes: 0, protocol: "http", ..entry() };
        assert_eq!(
            removed.line(),
            "Fri Nov 20 19:21:39 2026 1 2001:db8::7 0 /file.bin b _ d r alice http 0 * c\n"
        );
    }

    #[test]
    fn a_line_has_eighteen_fields_and_one_end_whatever_bytes_a_name_has() {
        let bad = [
            "/a b",
            "/a\nFri",
            "/a\r\n/b",
            "/\t\u{b}\u{c}\0\u{1b}[2J\u{7f}",
            "/a\u{85}b\u{a0}c\u{2028}d\u{3000}e",
            "",
            " ",
        ];
        for text in bad {
            for line in [
                Entry { path: text, ..entry() }.line(),
                Entry { account: text, ..entry() }.line(),
                Entry { peer: text, ..entry() }.line(),
            ] {
                assert_eq!(line.split_whitespace().count(), 18, "{line:?}");
                assert_eq!(line.split(' ').count(), 18, "{line:?}");
                assert_eq!(line.find(char::is_control), Some(line.len() - 1), "{line:?}");
            }
        }
        let direction = Entry { path: "/a\u{202e}b\u{9b}c", ..entry() }.line();
        assert!(direction.contains(" /a_b_c "), "{direction}");
        let named = Entry { path: "/Ümläut 日本/x", ..entry() }.line();
        assert!(named.contains(" /Ümläut_日本/x "), "{named}");
    }

    #[test]
    fn a_day_of_one_digit_is_as_wide_as_one_of_two() {
        let at = |seconds| current_time(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "Thu Jan  1 00:00:00 1970");
        assert_eq!(at(1_709_210_096), "Thu Feb 29 12:34:56 2024");
        assert_eq!(at(1_741_564_800), "Mon Mar 10 00:00:00 2025");
        assert_eq!(at(u64::MAX / 4), "Fri Dec 31 23:59:59 9999");
        assert_eq!(current_time(SystemTime::UNIX_EPOCH - Duration::from_secs(9)), at(0));
    }

    #[test]
    fn a_begun_second_counts_whole() {
        let seconds = |millis| whole_seconds(Duration::from_millis(millis));
        assert_eq!([0, 1, 999, 1_000, 1_001, 61_000].map(seconds), [1, 1, 1, 1, 2, 61]);
    }
}
