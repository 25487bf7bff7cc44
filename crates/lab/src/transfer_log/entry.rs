//! One line of a transfer log: of plimsoll's own, or of xferlog(5).
//!
//! It keeps nothing. Invariants: a line that does not have its format is an error that says what was
//! expected; no bytes of a line reach the error, because they may come from a client.

use std::borrow::Cow;

use plimsoll_wire::calendar::CalendarTime;
use serde::{Deserialize, Serialize};

/// The format of a transfer log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// The transfer log of plimsoll: a JSON object in each line, with times in microseconds.
    Plimsoll,
    /// The log of wu-ftpd, vsftpd and others, with times in seconds.
    Xferlog,
}

/// A transfer.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry<'a> {
    /// Microseconds since 1970.
    pub(super) start: u64,
    /// Microseconds since 1970.
    pub(super) end: u64,
    pub(super) path: Cow<'a, str>,
    pub(super) bytes: u64,
    pub(super) is_download: bool,
    pub(super) is_complete: bool,
}

/// The fields of plimsoll's log that are read.
#[derive(Deserialize)]
struct JsonEntry<'a> {
    start: u64,
    end: u64,
    #[serde(borrow)]
    operation: Cow<'a, str>,
    #[serde(borrow)]
    path: Cow<'a, str>,
    bytes: u64,
    #[serde(borrow)]
    result: Cow<'a, str>,
}

const SECOND: u64 = 1_000_000;
/// The fields of xferlog(5) before and after the name of the file.
const BEFORE_NAME: usize = 8;
const AFTER_NAME: usize = 9;
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

impl LogFormat {
    /// Detects the format by the first line of a log.
    pub(super) fn detect(line: &[u8]) -> Result<LogFormat, String> {
        match line.first() {
            Some(b'{') => Ok(LogFormat::Plimsoll),
            Some(letter) if letter.is_ascii_uppercase() => Ok(LogFormat::Xferlog),
            _ => Err("expected a JSON object of plimsoll's transfer log, or a line of xferlog(5), which \
                      begins with a date such as `Wed Nov 25 11:00:00 2026`"
                .to_owned()),
        }
    }

    /// Returns the smallest time that the log can express, in microseconds.
    pub(super) fn resolution(self) -> u64 {
        match self {
            LogFormat::Plimsoll => 1,
            LogFormat::Xferlog => SECOND,
        }
    }

    /// Parses a line without its line end.
    ///
    /// # Errors
    /// The expectation that the line does not meet.
    pub(super) fn parse(self, line: &[u8]) -> Result<Entry<'_>, String> {
        match self {
            LogFormat::Plimsoll => json_entry(line),
            LogFormat::Xferlog => xferlog_entry(line),
        }
    }
}

fn json_entry(line: &[u8]) -> Result<Entry<'_>, String> {
    let entry: JsonEntry<'_> = serde_json::from_slice(line).map_err(|error| {
        format!(
            "expected a JSON object of plimsoll's transfer log, with the numbers start, end and bytes and \
             the strings operation, path and result; the mistake is at column {}",
            error.column()
        )
    })?;
    Ok(Entry {
        start: entry.start,
        end: entry.end,
        path: entry.path,
        bytes: entry.bytes,
        is_download: entry.operation == "download",
        is_complete: entry.result == "ok",
    })
}

/// Parses a line of xferlog(5): date, duration, host, bytes, name, type, special action, direction, access
/// mode, account, service, authentication method and account, completion. The name may contain spaces, as
/// that of some servers does.
fn xferlog_entry(line: &[u8]) -> Result<Entry<'_>, String> {
    let line = String::from_utf8_lossy(line);
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let Some(name_fields) = fields.len().checked_sub(BEFORE_NAME + AFTER_NAME).filter(|count| *count > 0)
    else {
        return Err(format!(
            "expected the 18 fields of xferlog(5), from the date to the completion status; there are {}",
            fields.len()
        ));
    };
    let (before, rest) = fields.split_at(BEFORE_NAME);
    let (name, after) = rest.split_at(name_fields);
    let end = date(&before[1..5])
        .ok_or("expected a date in the first five fields, such as `Wed Nov 25 11:00:00 2026`")?;
    let number = |field: usize, label: &str| {
        let digits = before[field].bytes().all(|byte| byte.is_ascii_digit()).then_some(before[field]);
        let expected = || format!("expected the {label} in field {}, as a number", field + 1);
        digits.and_then(|digits| digits.parse::<u64>().ok()).ok_or_else(expected)
    };
    let (seconds, bytes) = (number(5, "duration in seconds")?, number(7, "number of bytes")?);
    if !matches!(after[0], "a" | "b") {
        return Err("expected the transfer type after the name: a or b".to_owned());
    }
    if !matches!(after[2], "i" | "o" | "d") {
        return Err("expected the direction in the seventh field from the end: i, o or d".to_owned());
    }
    if !matches!(after[8], "c" | "i") {
        return Err("expected the completion status in the last field: c or i".to_owned());
    }
    Ok(Entry {
        start: (end * SECOND).saturating_sub(seconds.saturating_mul(SECOND)),
        end: end * SECOND,
        path: name.join(" ").into(),
        bytes,
        is_download: after[2] == "o",
        is_complete: after[8] == "c",
    })
}

/// Parses `Nov 25 11:00:00 2026` into seconds since 1970. The zone does not matter, because only differences
/// are used.
fn date(fields: &[&str]) -> Option<u64> {
    let [month, day, time, year] = fields else { return None };
    let month = MONTHS.iter().position(|name| name == month)?;
    let mut parts = time.split(':').map(digits);
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() {
        return None;
    }
    let (year, month, day) = (digits(year)?, month as u64 + 1, digits(day)?);
    CalendarTime { year, month, day, hour, minute, second }.seconds_since_1970()
}

fn digits(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    const XFERLOG: &str =
        "Wed Nov 25 11:00:00 2026 3 127.0.0.1 1048576 /a/1MB.same.1.2.3 b _ o a ? ftp 0 * c";
    /// 2026-11-25T11:00:00Z.
    const AT: u64 = 1_795_604_400 * SECOND;

    #[test]
    fn an_xferlog_line_ends_at_its_date_and_starts_its_duration_earlier() {
        let entry = LogFormat::Xferlog.parse(XFERLOG.as_bytes()).unwrap();
        let expected = Entry {
            start: AT - 3 * SECOND,
            end: AT,
            path: "/a/1MB.same.1.2.3".into(),
            bytes: 1_048_576,
            is_download: true,
            is_complete: true,
        };
        assert_eq!(entry, expected);
        let one_digit = XFERLOG.replace("Nov 25", "Nov  5");
        let entry = LogFormat::Xferlog.parse(one_digit.as_bytes()).unwrap();
        assert_eq!(entry.end, AT - 20 * 86_400 * SECOND);
    }

    #[test]
    fn a_name_with_spaces_does_not_move_the_fields_after_it() {
        let line = XFERLOG.replace("/a/", "/a  b c/");
        let entry = LogFormat::Xferlog.parse(line.as_bytes()).unwrap();
        assert_eq!((&*entry.path, entry.is_complete), ("/a b c/1MB.same.1.2.3", true));
    }

    #[test]
    fn a_malformed_xferlog_line_is_refused_with_the_expected_field() {
        for (from, to, expected) in [
            (" * c", "", "18 fields"),
            ("Nov", "Now", "date"),
            ("11:00:00", "11:00", "date"),
            ("11:00:00", "11:60:00", "date"),
            (" 3 ", " three ", "duration"),
            (" 1048576 ", " -1 ", "bytes"),
            (" b _", " c _", "type"),
            (" o ", " out ", "direction"),
            (" * c", " * x", "completion"),
        ] {
            let line = XFERLOG.replacen(from, to, 1);
            let error = LogFormat::Xferlog.parse(line.as_bytes()).unwrap_err();
            assert!(error.contains(expected), "{line}: {error}");
        }
    }

    #[test]
    fn a_json_line_is_read_whatever_other_fields_it_has() {
        let line = br#"{"start":5,"end":9,"protocol":"ftp","operation":"download","peer":"p",
            "account":"a","path":"\/a\u0020b","to":"x","bytes":7,"result":"gone","later":[1]}"#;
        let entry = LogFormat::Plimsoll.parse(line).unwrap();
        assert_eq!((entry.start, entry.end, entry.bytes), (5, 9, 7));
        assert_eq!((&*entry.path, entry.is_download, entry.is_complete), ("/a b", true, false));
        for bad in ["{}", "{\"start\":-1}", "{", "[]", "\u{1b}[2J"] {
            let error = LogFormat::Plimsoll.parse(bad.as_bytes()).unwrap_err();
            assert!(error.starts_with("expected a JSON object") && !error.contains('\u{1b}'), "{error}");
        }
    }
}
