//! Values of an experiment file: words, numbers, sizes and times.
//!
//! It does not interpret words. Invariant: a value keeps its text as it was written, so that reports show
//! it as the reader knows it.

use std::time::Duration;

use anyhow::{Result, anyhow};
use plimsoll_wire::units::{Size, Time};
use serde::Deserialize;

use super::limits::CORES_MAX;

/// A string, a number or a boolean of the file, as text.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(from = "Raw")]
pub struct Scalar(pub String);

#[derive(Deserialize)]
#[serde(untagged)]
enum Raw {
    Boolean(bool),
    Integer(i64),
    Float(f64),
    Text(String),
}

impl From<Raw> for Scalar {
    fn from(raw: Raw) -> Scalar {
        Scalar(match raw {
            Raw::Boolean(value) => value.to_string(),
            Raw::Integer(value) => value.to_string(),
            Raw::Float(value) => value.to_string(),
            Raw::Text(text) => text,
        })
    }
}

/// Parses a number of bytes, such as `10KiB` or `1MB`.
///
/// # Errors
/// The text is no size.
pub(super) fn size(text: &str) -> Result<u64> {
    text.parse::<Size>().map(|size| size.0).map_err(|why| anyhow!("{text:?} is no size: {why}"))
}

/// Parses a duration, such as `500ms` or `2m`.
///
/// # Errors
/// The text is no duration.
pub(super) fn time(text: &str) -> Result<Duration> {
    text.parse::<Time>().map(|time| time.0).map_err(|why| anyhow!("{text:?} is no time: {why}"))
}

/// Parses a whole number that is at least 1.
///
/// # Errors
/// The text is no such number.
pub(super) fn count(text: &str) -> Result<u64> {
    let parsed = text.parse().ok().filter(|count| *count > 0);
    parsed.ok_or_else(|| anyhow!("{text:?} is no whole number from 1 on"))
}

/// Parses a list of cores, such as `0`, `0,2` or `1-3`.
///
/// # Errors
/// The text is no such list.
pub fn core_list(text: &str) -> Result<Vec<usize>> {
    let range = |part: &str| -> Option<std::ops::RangeInclusive<usize>> {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        (first <= last && last < CORES_MAX).then_some(first..=last)
    };
    let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
    let cores = ranges.map(|ranges| ranges.into_iter().flatten().collect());
    cores.ok_or_else(|| anyhow!("`cores` is {text:?}: write a list such as 0 or 0,2-3"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_value_is_quoted_with_what_to_write() {
        assert_eq!(
            (size("10KiB").unwrap(), time("2m").unwrap(), count("12").unwrap()),
            (10_240, Duration::from_secs(120), 12)
        );
        assert!(size("1.5MB").unwrap_err().to_string().contains("10MiB"));
        assert!(time("10").unwrap_err().to_string().contains("10s"));
        assert!(count("0").is_err());
    }

    #[test]
    fn a_list_of_cores_has_numbers_and_ranges() {
        assert_eq!((core_list("0").unwrap(), core_list("0,2-3").unwrap()), (vec![0], vec![0, 2, 3]));
        for wrong in ["", "all", "3-1", "0-", "0,,1", "9999999999"] {
            assert!(core_list(wrong).unwrap_err().to_string().contains("0,2-3"), "{wrong}");
        }
    }

    #[test]
    fn a_value_is_kept_as_it_was_written() {
        #[derive(Deserialize)]
        struct All {
            values: Vec<Scalar>,
        }
        let all: All = toml::from_str("values = [true, 12, 0.5, \"1KiB\"]").unwrap();
        assert_eq!(
            all.values.iter().map(|value| value.0.as_str()).collect::<Vec<_>>(),
            ["true", "12", "0.5", "1KiB"]
        );
    }
}
