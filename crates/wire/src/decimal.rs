//! Decimal numbers, in the form common to all protocols of this crate.
//!
//! Not here: signs, fractions, and the limits of each field. Invariants: a number that is read has digits
//! only and fits a u64; each function is total, and linear in its input.

/// The digits of `u64::MAX`.
const DECIMAL_DIGITS: usize = 20;

/// Reads `1*DIGIT` and nothing else. Returns None for any other text, and for a number above `u64::MAX`.
pub(crate) fn decimal(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() {
        return None;
    }
    bytes.iter().try_fold(0u64, |sum, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        sum.checked_mul(10)?.checked_add(digit)
    })
}

/// Appends a number in decimal, without the machinery of `core::fmt`.
pub(crate) fn write_decimal(number: u64, out: &mut Vec<u8>) {
    let mut digits = [0; DECIMAL_DIGITS];
    let mut rest = number;
    let mut start = DECIMAL_DIGITS;
    for (at, digit) in digits.iter_mut().enumerate().rev() {
        // The remainder of a division by ten fits a byte.
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or_default();
        rest /= 10;
        start = at;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.get(start..).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_accept_only_digits_within_the_range() {
        for (text, number) in [("0", Some(0)), ("007", Some(7)), ("18446744073709551615", Some(u64::MAX))] {
            assert_eq!(decimal(text.as_bytes()), number, "{text}");
        }
        for text in ["", "+5", "-1", "0x5", " 5", "5 ", "5,5", "18446744073709551616", "1_0", "١"] {
            assert_eq!(decimal(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn a_written_decimal_parses_to_the_same() {
        for number in [0, 1, 9, 10, 99, 100, 12345, u64::MAX] {
            let mut out = Vec::new();
            write_decimal(number, &mut out);
            assert_eq!(out, number.to_string().as_bytes());
        }
    }
}
