//! Formats the figures of the benchmark: those of all reports, and ratios with their bootstrap interval.
//!
//! It computes nothing. Invariant: all figures of a column have the same number of significant digits.

pub(super) use crate::format::figures::{NONE, bytes, rate, round, three_digits as microseconds};
use crate::stats::Estimate;

/// Formats a ratio with its interval, such as `1.52 [1.48, 1.55]`.
pub(super) fn ratio(estimate: Option<Estimate>) -> String {
    let formatted = |Estimate { median, low, high }| format!("{median:.2} [{low:.2}, {high:.2}]");
    estimate.map_or_else(|| NONE.to_owned(), formatted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_has_its_interval() {
        assert_eq!(ratio(Some(Estimate { median: 1.523, low: 1.479, high: 1.55 })), "1.52 [1.48, 1.55]");
        assert_eq!(ratio(None), NONE);
    }
}
