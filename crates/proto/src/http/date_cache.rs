//! The current date as text, for responses and log lines, formatted once a second.
//!
//! The caller passes the time. Invariant: the text is of the second that the caller passed.

use std::cell::Cell;
use std::time::{Duration, SystemTime};

use plimsoll_wire::http::date::{DATE_BYTES, write_date};

/// The texts of one second.
#[derive(Clone, Copy)]
pub struct Dates {
    second: u64,
    /// In the format of the Date field.
    pub http: [u8; DATE_BYTES],
}

/// The texts of the most recent second.
pub struct DateCache(Cell<Dates>);

impl Default for DateCache {
    fn default() -> DateCache {
        DateCache::new()
    }
}

impl DateCache {
    /// Creates a cache.
    #[must_use]
    pub fn new() -> DateCache {
        DateCache(Cell::new(dates_of(0)))
    }

    /// Returns the texts of `time`.
    pub fn at(&self, time: SystemTime) -> Dates {
        let second = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        if self.0.get().second != second {
            self.0.set(dates_of(second));
        }
        self.0.get()
    }
}

fn dates_of(second: u64) -> Dates {
    let mut http = [b' '; DATE_BYTES];
    write_date(SystemTime::UNIX_EPOCH + Duration::from_secs(second), &mut http);
    Dates { second, http }
}

impl Dates {
    /// Writes the date in the common log format: `20/Nov/2026:13:40:37 +0000` for `Fri, 20 Nov 2026 13:40:37
    /// GMT`.
    pub(super) fn write_log(&self, out: &mut Vec<u8>) {
        let date = &self.http;
        for (part, after) in [(5..7, b'/'), (8..11, b'/'), (12..16, b':')] {
            out.extend_from_slice(&date[part]);
            out.push(after);
        }
        out.extend_from_slice(&date[17..25]);
        out.extend_from_slice(b" +0000");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_formatted_for_the_date_field_and_for_the_log() {
        let dates = DateCache::new().at(SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777));
        assert_eq!(&dates.http, b"Sun, 06 Nov 1994 08:49:37 GMT");
        let mut log = Vec::new();
        dates.write_log(&mut log);
        assert_eq!(log, b"06/Nov/1994:08:49:37 +0000");
    }
}
