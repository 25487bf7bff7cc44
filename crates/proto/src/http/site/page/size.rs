//! Sizes for people: `1.2 MB`, and `1,234,567 bytes` where it must be exact.
//!
//! Units are decimal, as disks and networks count. What must hold: the rounded form has at most three digits.

const UNITS: [&str; 6] = ["kB", "MB", "GB", "TB", "PB", "EB"];

/// At most three digits and a unit, rounded to the nearest.
pub(super) fn rounded(bytes: u64) -> String {
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut scale = 1000;
    for unit in UNITS {
        let in_tenths = round(bytes, scale / 10);
        let whole = round(bytes, scale);
        if in_tenths < 100 {
            return format!("{}.{} {unit}", in_tenths / 10, in_tenths % 10);
        }
        // 999,999 bytes are 1.0 MB, not 1000 kB.
        if whole < 1000 {
            return format!("{whole} {unit}");
        }
        scale *= 1000;
    }
    exact(bytes)
}

fn round(bytes: u64, scale: u64) -> u64 {
    bytes / scale + u64::from(bytes % scale >= scale / 2)
}

/// All digits.
pub(super) fn exact(bytes: u64) -> String {
    let unit = if bytes == 1 { "byte" } else { "bytes" };
    format!("{} {unit}", grouped(&bytes.to_string()))
}

/// Digits in groups of three: `1,234,567`.
pub(super) fn grouped(digits: &str) -> String {
    let mut grouped = String::with_capacity(digits.len() * 4 / 3 + 1);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_rounded_to_what_people_read() {
        for (bytes, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (1049, "1.0 kB"),
            (1050, "1.1 kB"),
            (9949, "9.9 kB"),
            (9950, "10 kB"),
            (340_400, "340 kB"),
            (999_499, "999 kB"),
            (999_500, "1.0 MB"),
            (1_234_567, "1.2 MB"),
            (999_999_999_999, "1.0 TB"),
            (u64::MAX, "18 EB"),
        ] {
            assert_eq!(rounded(bytes), text, "{bytes}");
        }
    }

    #[test]
    fn an_exact_size_has_all_its_digits() {
        for (bytes, text) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (999, "999 bytes"),
            (1000, "1,000 bytes"),
            (1_234_567, "1,234,567 bytes"),
            (u64::MAX, "18,446,744,073,709,551,615 bytes"),
        ] {
            assert_eq!(exact(bytes), text);
        }
    }
}
