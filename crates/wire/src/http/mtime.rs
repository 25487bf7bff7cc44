//! X-OC-Mtime: the modification time for an uploaded file, in the form that rclone, ownCloud and Nextcloud
//! clients send. A fraction is also accepted.
//!
//! Not here: dates of HTTP, which have whole seconds. Invariant: a written time reads as the same time, to
//! the nanosecond.

use core::time::Duration;

use crate::calendar::LAST_SECOND;
use crate::decimal::decimal;

/// Parses a time since 1970: seconds, with an optional point and at most nine digits. Returns None for any
/// other text, or for a time later than the year 9999.
#[must_use]
pub fn parse_mtime(value: &[u8]) -> Option<Duration> {
    let point = value.iter().position(|byte| *byte == b'.');
    let (seconds, fraction) = value.split_at(point.unwrap_or(value.len()));
    let seconds = decimal(seconds).filter(|seconds| *seconds <= LAST_SECOND)?;
    let nanoseconds = match fraction.strip_prefix(b".") {
        None => 0,
        Some(digits) if digits.len() <= 9 => {
            let scale = 10u64.pow(9 - u32::try_from(digits.len()).ok()?);
            u32::try_from(decimal(digits)? * scale).ok()?
        }
        Some(_) => return None,
    };
    Some(Duration::new(seconds, nanoseconds))
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
        for bad in ["", ".", "1.", ".5", "-1", "1e9", "1.0000000001", "253402300800", "now", "1,5", " 1"] {
            assert_eq!(parse_mtime(bad.as_bytes()), None, "{bad:?}");
        }
    }
}
