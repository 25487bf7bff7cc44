//! Formats figures for people: three significant digits, and a unit.
//!
//! It computes nothing. Invariant: all figures of a column have the same number of significant digits.

/// Placeholder for a missing figure.
pub(crate) const NONE: &str = "–";

/// Formats a rate per second, such as `412`, `15.3k` or `1.20M`.
pub(crate) fn rate(per_second: f64) -> String {
    scaled(per_second, &["", "k", "M", "G"])
}

/// Formats a rate per second with three digits also where it is small, such as `2.31` or `15.3k`.
pub(crate) fn small_rate(per_second: f64) -> String {
    if per_second.abs() < 99.95 { three_digits(per_second) } else { rate(per_second) }
}

/// Formats bytes per second, such as `1.53 GB/s`.
pub(crate) fn bytes(per_second: f64) -> String {
    let text = scaled(per_second, &[" B/s", " kB/s", " MB/s", " GB/s"]);
    if text.ends_with("/s") { text } else { format!("{text} B/s") }
}

/// Formats a time, such as `87.0 µs`, `4.31 ms` or `12.4 s`.
pub(crate) fn time(seconds: f64) -> String {
    match seconds {
        0.0 => "0 s".to_owned(),
        short if short < 999.5e-6 => three_digits(short * 1e6) + " µs",
        middle if middle < 0.9995 => three_digits(middle * 1e3) + " ms",
        long => three_digits(long) + " s",
    }
}

/// Formats a fraction, such as `3.1 %` or `98 %`.
pub(crate) fn percent(fraction: f64) -> String {
    let percent = fraction * 100.0;
    if percent.abs() < 9.95 { format!("{percent:.1} %") } else { format!("{percent:.0} %") }
}

/// Shortens a round figure of a scale: `20k` for `20.0k`, `0` for zero.
pub(crate) fn round(text: &str) -> String {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let digits =
        if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
    if digits == "0" { digits.to_owned() } else { format!("{digits}{unit}") }
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

/// Formats a number with three significant digits, such as `4.31`, `87.0` or `1240`.
pub(crate) fn three_digits(value: f64) -> String {
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
        assert_eq!([2.314, 87.06, 412.3].map(small_rate), ["2.31", "87.1", "412"]);
        assert_eq!([12.0, 1.53e9, 2.4e13].map(bytes), ["12 B/s", "1.53 GB/s", "24000 GB/s"]);
        assert_eq!([4.312, 87.04, 1240.2].map(three_digits), ["4.31", "87.0", "1240"]);
        assert_eq!([0.0, 87e-6, 4.312e-3, 12.4].map(time), ["0 s", "87.0 µs", "4.31 ms", "12.4 s"]);
        assert_eq!([0.031, 0.98, -0.5].map(percent), ["3.1 %", "98 %", "-50 %"]);
    }

    #[test]
    fn the_figures_of_a_scale_have_no_more_digits_than_they_need() {
        assert_eq!(
            ["20.0k", "2.50 GB/s", "0.00", "100", "7.00"].map(round),
            ["20k", "2.5 GB/s", "0", "100", "7"]
        );
    }
}
