//! Bytes as lower-case hexadecimal digits, and back.
//!
//! It does not run in constant time: secrets are hashed before they are compared. Invariant: written text
//! is read back, and no other text is accepted.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Encodes each byte as two digits.
pub fn text(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// Decodes `text`; `None` unless it consists of pairs of lower-case digits.
pub fn bytes(text: &[u8]) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_chunks::<2>();
    let bytes = pairs.iter().map(|[high, low]| Some(value(*high)? << 4 | value(*low)?));
    if rest.is_empty() { bytes.collect() } else { None }
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_read_back_as_it_was_written() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(bytes(text(&all).as_bytes()), Some(all));
    }

    #[test]
    fn half_a_byte_and_other_digits_are_refused() {
        for bad in ["0", "0g", "0A", "000", " 0", "0\u{e9}"] {
            assert_eq!(bytes(bad.as_bytes()), None, "{bad}");
        }
    }
}
