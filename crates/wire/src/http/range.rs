//! Byte ranges: the Range field, what it selects, and Content-Range (RFC 9110, section 14).
//!
//! Not here: If-Range, which is a condition. Invariants: a resolved range lies within the length and is not
//! empty; the sum of all ranges is not longer than the representation. A range set that exceeds it is
//! ignored.

use std::array;
use std::fmt;
use std::ops::Range;

use super::grammar::{decimal_saturating, list};
use crate::decimal::decimal;
use crate::limits::RANGES_MAX;

/// The reason why a Range field is ignored. The response is then the whole representation.
///
/// "A server that supports range requests MAY ignore or reject a Range header field that contains an
/// invalid ranges-specifier" (RFC 9110, section 14.2). Ignoring still serves a client that sent it by
/// mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotARange {
    /// "An origin server MUST ignore a Range header field that contains a range unit it does not
    /// understand."
    #[error("the range unit is not bytes")]
    Unit,
    /// Not a ranges-specifier, or one whose last position is before its first.
    #[error("the ranges cannot be understood")]
    Malformed,
    /// More than [`RANGES_MAX`]: "Servers ought to ignore, coalesce, or reject egregious range requests,
    /// such as requests for more than two overlapping ranges or for many small ranges" (section 17.15).
    #[error("more ranges than are served in one answer")]
    TooMany,
}

/// One requested range, before the length is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spec {
    /// From the first to the last position, both included.
    Positions(u64, u64),
    /// The last bytes, of this count.
    Suffix(u64),
}

/// The ranges of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RangeSet {
    specs: [Spec; RANGES_MAX],
    count: usize,
}

/// The result of resolving a range set against a length.
// Lives on the stack for one response: a box would cost more than the space that the small variants waste.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolved {
    /// Ignore the field and send the whole representation (200).
    Whole,
    /// No range overlaps the representation (416).
    Unsatisfiable,
    /// Send these ranges (206), in the order requested.
    Ranges(Ranges),
}

/// The resolved ranges: at least one, each within the length and not empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ranges {
    ranges: [Range<u64>; RANGES_MAX],
    count: usize,
}

impl Ranges {
    /// Returns all ranges.
    #[must_use]
    pub fn as_slice(&self) -> &[Range<u64>] {
        self.ranges.get(..self.count).unwrap_or_default()
    }

    /// Returns the range if it is the only one, which is sent without multipart.
    #[must_use]
    pub fn single(&self) -> Option<&Range<u64>> {
        match self.as_slice() {
            [range] => Some(range),
            _ => None,
        }
    }
}

/// Reads a Range field.
///
/// # Errors
///
/// [`NotARange`]: ignore the field.
pub fn parse_range(value: &[u8]) -> Result<RangeSet, NotARange> {
    let equals = value.iter().position(|&byte| byte == b'=').ok_or(NotARange::Malformed)?;
    let (unit, set) = value.split_at(equals);
    // "All range unit names are case-insensitive" (section 14.1).
    if !unit.eq_ignore_ascii_case(b"bytes") {
        return Err(NotARange::Unit);
    }
    let mut ranges = RangeSet { specs: [Spec::Suffix(0); RANGES_MAX], count: 0 };
    for member in list(set.get(1..).unwrap_or_default()) {
        let spec = parse_spec(member).ok_or(NotARange::Malformed)?;
        *ranges.specs.get_mut(ranges.count).ok_or(NotARange::TooMany)? = spec;
        ranges.count += 1;
    }
    if ranges.count == 0 { Err(NotARange::Malformed) } else { Ok(ranges) }
}

/// Parses an `int-range` or `suffix-range`. "An int-range is invalid if the last-pos value is present and
/// less than the first-pos" (section 14.1.1).
fn parse_spec(member: &[u8]) -> Option<Spec> {
    let dash = member.iter().position(|&byte| byte == b'-')?;
    let (first, last) = (member.get(..dash)?, member.get(dash + 1..)?);
    if first.is_empty() {
        return decimal_saturating(last).map(Spec::Suffix);
    }
    let first = decimal_saturating(first)?;
    let last = if last.is_empty() { u64::MAX } else { decimal_saturating(last)? };
    (first <= last).then_some(Spec::Positions(first, last))
}

impl RangeSet {
    /// Resolves these ranges against a representation of `length` bytes.
    ///
    /// Overlapping ranges whose sum exceeds the length are ignored: they request the same bytes several
    /// times (section 17.15). Of an empty representation, all ranges are: Content-Range cannot say "no
    /// bytes", and a client that requests a file of unknown length by `bytes=0-` takes 416 for an error.
    #[must_use]
    pub fn resolve(&self, length: u64) -> Resolved {
        if length == 0 {
            return Resolved::Whole;
        }
        let mut resolved = Ranges { ranges: array::from_fn(|_| 0..0), count: 0 };
        let mut total = 0u128;
        for spec in self.specs.iter().take(self.count) {
            let Some(range) = spec.resolve(length) else { continue };
            total += u128::from(range.end - range.start);
            if let Some(place) = resolved.ranges.get_mut(resolved.count) {
                *place = range;
                resolved.count += 1;
            }
        }
        match (resolved.count, total) {
            (0, _) => Resolved::Unsatisfiable,
            (_, total) if total > u128::from(length) => Resolved::Whole,
            _ => Resolved::Ranges(resolved),
        }
    }
}

impl Spec {
    /// Resolves this range against `length` bytes. Returns None if no byte is in it.
    ///
    /// "if the value is greater than or equal to the current length of the representation data, the byte
    /// range is interpreted as the remainder of the representation" (section 14.1.2).
    fn resolve(self, length: u64) -> Option<Range<u64>> {
        let range = match self {
            Self::Positions(first, last) => first..last.saturating_add(1).min(length),
            Self::Suffix(count) => length.saturating_sub(count)..length,
        };
        (range.start < range.end).then_some(range)
    }
}

/// A Content-Range value, written with `Display`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContentRange {
    /// `bytes 0-4/10`: a part of the representation, and the whole length.
    Part {
        /// The bytes that are sent; not empty.
        range: Range<u64>,
        /// The whole length in bytes.
        length: u64,
    },
    /// `bytes */10`: the whole length, sent with 416.
    Unsatisfied {
        /// The whole length in bytes.
        length: u64,
    },
}

impl fmt::Display for ContentRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Part { range, length } => {
                write!(f, "bytes {}-{}/{length}", range.start, range.end.saturating_sub(1))
            }
            Self::Unsatisfied { length } => write!(f, "bytes */{length}"),
        }
    }
}

/// Parses a Content-Range, for a client that sent Range. Returns None also for a part of unknown whole
/// length (`bytes 0-4/*`), and for a value that contradicts itself:
///
/// "a Content-Range field value is invalid if it contains a range-resp that has a last-pos value less than
/// its first-pos value, or a complete-length value less than or equal to its last-pos value" (section 14.4).
#[must_use]
pub fn parse_content_range(value: &[u8]) -> Option<ContentRange> {
    let (unit, rest) = value.split_at_checked(b"bytes ".len())?;
    let slash = rest.iter().position(|&byte| byte == b'/')?;
    let (positions, length) = (rest.get(..slash)?, decimal(rest.get(slash + 1..)?)?);
    if !unit.eq_ignore_ascii_case(b"bytes ") {
        return None;
    }
    if positions == b"*" {
        return Some(ContentRange::Unsatisfied { length });
    }
    let dash = positions.iter().position(|&byte| byte == b'-')?;
    let (first, last) = (decimal(positions.get(..dash)?)?, decimal(positions.get(dash + 1..)?)?);
    (first <= last && last < length).then(|| ContentRange::Part { range: first..last + 1, length })
}
