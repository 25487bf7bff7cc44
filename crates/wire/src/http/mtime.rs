//! X-OC-Mtime: the modification time for an uploaded file, in the form that rclone, ownCloud and Nextcloud
//! clients send. A fraction is also accepted.
//!
//! Not here: dates of HTTP, which have whole seconds. Invariant: a written time reads as the same time, to
//! the nanosecond.

use core::time::Duration;

use super::grammar::decimal_saturating;
use crate::calendar::LAST_SECOND;

/// A modification time that a client sends with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SentMtime {
    /// A time since 1970.
    Since1970(Duration),
    /// A time before 1970 or after the year 9999, which no file gets. Browsers on Windows send that of 1601
    /// for a file without a time.
    Unusable,
}

/// Parses a time: seconds since 1970, with an optional minus sign, and a fraction, whose digits after the
/// ninth are dropped. Returns None for any other text.
#[must_use]
pub fn parse_sent_mtime(value: &[u8]) -> Option<SentMtime> {
    let (is_negative, value) = value.strip_prefix(b"-").map_or((false, value), |rest| (true, rest));
    let point = value.iter().position(|byte| *byte == b'.');
    let (seconds, fraction) = value.split_at(point.unwrap_or(value.len()));
    let seconds = decimal_saturating(seconds)?;
    let nanoseconds = match fraction.strip_prefix(b".") {
        None => 0,
        Some(digits) => nanoseconds(digits)?,
    };
    let time = Duration::new(seconds, nanoseconds);
    let is_usable = seconds <= LAST_SECOND && (!is_negative || time.is_zero());
    Some(if is_usable { SentMtime::Since1970(time) } else { SentMtime::Unusable })
}

fn nanoseconds(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let nine = digits.iter().copied().chain([b'0'; 9]).take(9);
    Some(nine.fold(0, |number, digit| number * 10 + u32::from(digit - b'0')))
}

/// Parses a time since 1970, up to the year 9999. Returns None for any other text.
#[must_use]
pub fn parse_mtime(value: &[u8]) -> Option<Duration> {
    match parse_sent_mtime(value)? {
        SentMtime::Since1970(time) => Some(time),
        SentMtime::Unusable => None,
    }
}

/// Returns the time to send for a file with this one: the nearest that [`parse_mtime`] accepts.
#[must_use]
pub fn nearest_mtime(seconds: i64, nanoseconds: u32) -> Duration {
    match u64::try_from(seconds) {
        Ok(seconds) if seconds <= LAST_SECOND => Duration::new(seconds, nanoseconds),
        Ok(_) => Duration::from_secs(LAST_SECOND),
        Err(_) => Duration::ZERO,
    }
}

/// Formats a time since 1970: seconds, a point and nine digits.
#[must_use]
pub fn write_mtime(time: Duration) -> String {
    format!("{}.{:09}", time.as_secs(), time.subsec_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_modification_time_parses_as_it_was_written() {
        for time in [Duration::ZERO, Duration::new(1, 5), Duration::new(1_763_900_000, 123_456_789)] {
            assert_eq!(parse_mtime(write_mtime(time).as_bytes()), Some(time));
        }
        assert_eq!(parse_mtime(b"1763900000"), Some(Duration::from_secs(1_763_900_000)));
        assert_eq!(parse_mtime(b"1.5"), Some(Duration::from_millis(1500)));
    }

    #[test]
    fn a_malformed_modification_time_is_rejected() {
        for bad in ["", ".", "1.", ".5", "-", "--1", "-.5", "1e9", "1.x", "+1", "now", "1,5", " 1"] {
            assert_eq!(parse_sent_mtime(bad.as_bytes()), None, "{bad:?}");
        }
    }

    #[test]
    fn a_time_that_no_file_gets_is_a_time_all_the_same() {
        for far in ["-11644473600", "-1", "-0.000000001", "253402300800", "99999999999999999999999", "-1.5"] {
            assert_eq!(parse_sent_mtime(far.as_bytes()), Some(SentMtime::Unusable), "{far}");
            assert_eq!(parse_mtime(far.as_bytes()), None);
        }
        let second = Some(Duration::new(1, 123_456_789));
        for (text, time) in
            [("-0", Some(Duration::ZERO)), ("-0.0", Some(Duration::ZERO)), ("1.1234567891", second)]
        {
            assert_eq!(parse_mtime(text.as_bytes()), time, "{text}");
        }
    }

    #[test]
    fn the_nearest_time_is_one_that_a_file_gets() {
        for (seconds, nanoseconds, time) in [
            (-157_766_400, 5, Duration::ZERO),
            (-1, 999_999_999, Duration::ZERO),
            (0, 5, Duration::new(0, 5)),
            (253_402_300_799, 5, Duration::new(LAST_SECOND, 5)),
            (253_402_300_800, 5, Duration::from_secs(LAST_SECOND)),
            (i64::MAX, 0, Duration::from_secs(LAST_SECOND)),
        ] {
            assert_eq!(nearest_mtime(seconds, nanoseconds), time, "{seconds}");
            assert_eq!(parse_mtime(write_mtime(time).as_bytes()), Some(time));
        }
    }
}
