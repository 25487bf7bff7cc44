//! Formats figures for people: three significant digits, and a unit.
//!
//! It computes nothing. Invariant: all figures of a column have the same number of significant digits.

use crate::stats::Estimate;

/// Placeholder for a missing figure.
pub(super) const NONE: &str = "–";

/// Formats a rate per second, such as `412`, `15.3k` or `1.20M`.
pub(super) fn rate(per_second: f64) -> String {
    scaled(per_second, &["", "k", "M", "G"])
}

/// Formats bytes per second, such as `1.53 GB/s`.
pub(super) fn bytes(per_second: f64) -> String {
    let text = scaled(per_second, &[" B/s", " kB/s", " MB/s", " GB/s"]);
    if text.ends_with("/s") { text } else { format!("{text} B/s") }
}

/// Formats microseconds, such as `4.31`, `87.0` or `1240`.
pub(super) fn microseconds(value: f64) -> String {
    three_digits(value)
}

/// Shortens a round figure of a scale: `20k` for `20.0k`, `0` for zero.
pub(super) fn round(told: &str) -> String {
    let end = told.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(told.len());
    let (digits, unit) = told.split_at(end);
    let digits =
        if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    if digits == "0" { digits.to_owned() } else { format!("{digits}{unit}") }
}

/// Formats a ratio with its interval, such as `1.52 [1.48, 1.55]`.
pub(super) fn ratio(estimate: Option<Estimate>) -> String {
    let told = |Estimate { median, low, high }| format!("{median:.2} [{low:.2}, {high:.2}]");
    estimate.map_or_else(|| NONE.to_owned(), told)
}

fn scaled(value: f64, units: &[&str]) -> String {
    let mut scale = 1.0;
    let mut found = units.iter().peekable();
    while let Some(unit) = found.next() {
        // 999.6 would be rounded to 1000.
        if value / scale < 999.5 || found.peek().is_none() {
            let digits = if scale > 1.0 { three_digits(value / scale) } else { format!("{value:.0}") };
            return format!("{digits}{unit}");
        }
        scale *= 1000.0;
    }
    format!("{value:.0}")
}

fn three_digits(value: f64) -> String {
    match value {
        v if v >= 99.95 => format!("{v:.0}"),
        v if v >= 9.995 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        assert_eq!(
            [7.0, 412.3, 999.6, 15_321.0, 158_600.0].map(rate),
            ["7", "412", "1.00k", "15.3k", "159k"]
        );
        assert_eq!(rate(1_204_000.0), "1.20M");
        assert_eq!([12.0, 1.53e9, 2.4e13].map(bytes), ["12 B/s", "1.53 GB/s", "24000 GB/s"]);
        assert_eq!([4.312, 87.04, 1240.2].map(microseconds), ["4.31", "87.0", "1240"]);
    }

    #[test]
    fn the_figures_of_a_scale_have_no_more_digits_than_they_need() {
        assert_eq!(
            ["20.0k", "2.50 GB/s", "0.00", "100", "7.00"].map(round),
            ["20k", "2.5 GB/s", "0", "100", "7"]
        );
    }

    #[test]
    fn a_ratio_is_told_with_its_interval() {
        assert_eq!(ratio(Some(Estimate { median: 1.523, low: 1.479, high: 1.55 })), "1.52 [1.48, 1.55]");
        assert_eq!(ratio(None), NONE);
    }
}
