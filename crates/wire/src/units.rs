//! Parses and formats sizes and times: `10MiB`, `30s`, `5m`.
//!
//! Fractions and sums are not accepted: `90s`, not `1m30s` or `1.5m`. Invariants: a number without a unit
//! is bytes. It is never a time, because `7` might be meant as days. Nothing overflows.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// A duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub Duration);

/// The longest settings of a duration; a longer one would be no limit in practice.
pub const DAY: &str = "1d";
/// As [`DAY`].
pub const YEAR: &str = "365d";

/// The units of bytes, the largest first.
const SIZES: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("TB", 1_000_000_000_000),
    ("GiB", 1 << 30),
    ("GB", 1_000_000_000),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("B", 1),
];

/// The units of time in milliseconds, the largest first.
const TIMES: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// Splits a whole number from its unit.
fn split(text: &str) -> Option<(u64, &str)> {
    let digits = text.find(|character: char| !character.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..digits].parse().ok()?, text[digits..].trim_start()))
}

/// Returns `number` times the size of `unit`; `None` for an unknown unit or on overflow.
fn in_ones(number: u64, unit: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (_, ones) = units.iter().find(|(name, _)| *name == unit)?;
    number.checked_mul(*ones)
}

/// Writes a number in the largest unit that divides it.
fn write(f: &mut fmt::Formatter<'_>, number: u64, units: &[(&str, u64)]) -> fmt::Result {
    let whole = units.iter().find(|(_, ones)| number >= *ones && number.is_multiple_of(*ones));
    match whole {
        Some((name, ones)) => write!(f, "{}{name}", number / ones),
        None => write!(f, "0"),
    }
}

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Size, String> {
        split(text)
            .and_then(|(number, unit)| in_ones(number, if unit.is_empty() { "B" } else { unit }, &SIZES))
            .map(Size)
            .ok_or_else(|| "write a whole number of bytes with a unit, such as 10MiB".to_owned())
    }
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Time, String> {
        let milliseconds = match split(text) {
            Some((0, "")) => Some(0),
            Some((number, "")) => {
                return Err(format!(
                    "{number} has no unit; write {number}s, {number}m, {number}h or {number}d"
                ));
            }
            Some((number, unit)) => in_ones(number, unit, &TIMES),
            None => None,
        };
        milliseconds
            .map(|milliseconds| Time(Duration::from_millis(milliseconds)))
            .ok_or_else(|| "write a whole number with a unit, such as 30s, 5m, 12h or 30d".to_owned())
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, self.0, &SIZES)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write(f, u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX), &TIMES)
    }
}

impl Size {
    /// Returns the size as a length in memory.
    pub fn in_memory(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

/// Returns a parser of times from `min` to `max`, inclusive.
pub fn time_within(
    min: &'static str,
    max: &'static str,
) -> impl Fn(&str) -> Result<Time, String> + Clone + Send + Sync + 'static {
    move |text| within(text, min, max)
}

/// Returns a parser of sizes from `min` to `max`, inclusive.
pub fn size_within(
    min: &'static str,
    max: &'static str,
) -> impl Fn(&str) -> Result<Size, String> + Clone + Send + Sync + 'static {
    move |text| within(text, min, max)
}

fn within<T: FromStr<Err = String> + PartialOrd>(text: &str, min: &str, max: &str) -> Result<T, String> {
    let value: T = text.parse()?;
    match (min.parse::<T>(), max.parse::<T>()) {
        (Ok(least), Ok(most)) if value < least || value > most => {
            Err(format!("it must be from {min} to {max}"))
        }
        (Ok(_), Ok(_)) => Ok(value),
        // A bound that is no value must not admit everything: with this, not even the default is accepted.
        _ => Err(format!("its bounds are no values: {min}, {max}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_whole_numbers_with_a_unit() {
        let size = |text: &str| text.parse::<Size>().map(|size| size.0);
        let time = |text: &str| text.parse::<Time>().map(|time| time.0.as_millis());
        assert_eq!(size("10MiB"), Ok(10 << 20));
        assert_eq!(size("10 MB"), Ok(10_000_000));
        assert_eq!((size("0"), size("77"), size("77B")), (Ok(0), Ok(77), Ok(77)));
        assert_eq!((time("0"), time("30s"), time("5m")), (Ok(0), Ok(30_000), Ok(300_000)));
        assert_eq!((time("250ms"), time("12h"), time("1d")), (Ok(250), Ok(43_200_000), Ok(86_400_000)));
    }

    #[test]
    fn a_malformed_size_or_time_is_refused_with_an_example() {
        for bad in ["", "MiB", "-1", "+1", "1.5GiB", "10mib", "1m30s", "10 M iB", "99999999TiB", "é", "1é"]
        {
            assert!(bad.parse::<Size>().unwrap_err().contains("10MiB"), "{bad:?}");
        }
        for bad in ["", "soon", "-1", "1.5h", "1m30s", "1 fortnight", "999999999999999d"] {
            assert!(bad.parse::<Time>().unwrap_err().contains("30s"), "{bad:?}");
        }
    }

    #[test]
    fn a_time_without_a_unit_is_refused_with_every_unit_it_might_mean() {
        let refused = "7".parse::<Time>().unwrap_err();
        assert_eq!(refused, "7 has no unit; write 7s, 7m, 7h or 7d");
    }

    #[test]
    fn a_printed_size_or_time_is_parsed_again() {
        for text in ["1TiB", "10MiB", "8KiB", "3MB", "77B"] {
            assert_eq!(text.parse::<Size>().unwrap().to_string(), text);
        }
        for text in ["30d", "12h", "75s", "1ms"] {
            assert_eq!(text.parse::<Time>().unwrap().to_string(), text);
        }
        assert_eq!(Time(Duration::ZERO).to_string().parse(), Ok(Time(Duration::ZERO)));
    }

    #[test]
    fn a_value_beyond_its_bounds_is_refused_and_the_bounds_are_allowed() {
        let time = time_within("10ms", DAY);
        assert!(time("10ms").is_ok() && time("24h").is_ok());
        assert_eq!(time("9ms"), Err("it must be from 10ms to 1d".to_owned()));
        assert!(time("86401s").is_err());
        assert!(size_within("1MiB", "1PiB")("2MiB").is_err(), "PiB is no unit");
    }
}
