//! Sizes for people: `1.2 MiB`, and the exact form `1,234,567 bytes`.
//!
//! Units are binary, as in the command line and the configuration. Invariant: the rounded form has at
//! most three digits.

const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// Returns at most three digits and a unit, rounded to the nearest.
pub fn rounded(bytes: u64) -> String {
    if bytes < 1000 {
        return format!("{bytes} B");
    }
    let mut scale = 1024;
    for unit in UNITS {
        let in_tenths = round(u128::from(bytes) * 10, scale);
        let whole = round(bytes.into(), scale);
        if in_tenths < 100 {
            return format!("{}.{} {unit}", in_tenths / 10, in_tenths % 10);
        }
        // 1,048,000 bytes are 1.0 MiB, not 1023 KiB.
        if whole < 1000 {
            return format!("{whole} {unit}");
        }
        scale *= 1024;
    }
    exact(bytes)
}

fn round(number: u128, scale: u128) -> u128 {
    (number + scale / 2) / scale
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
            (1000, "1.0 KiB"),
            (1024, "1.0 KiB"),
            (10_188, "9.9 KiB"),
            (10_189, "10 KiB"),
            (348_160, "340 KiB"),
            (1_023_487, "999 KiB"),
            (1_023_488, "1.0 MiB"),
            (1_234_567, "1.2 MiB"),
            (999_999_999_999, "931 GiB"),
            (u64::MAX, "16 EiB"),
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
