//! JSON in a header field, which is one line of ASCII.
//!
//! Invariants: the output of [`to_ascii`] must be one line that any field may have, and [`from_ascii`]
//! reads it.

use std::fmt::Write as _;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Serialises a value as JSON in ASCII, without a line break.
pub fn to_ascii(value: &impl Serialize) -> String {
    // Serialising strings and numbers into memory cannot fail.
    let json = serde_json::to_string(value).unwrap_or_default();
    if json.is_ascii() {
        return json;
    }
    let mut line = String::with_capacity(json.len() * 2);
    for character in json.chars() {
        if character.is_ascii() {
            line.push(character);
            continue;
        }
        let mut units = [0; 2];
        for unit in character.encode_utf16(&mut units) {
            let _ = write!(line, "\\u{unit:04x}");
        }
    }
    line
}

/// Parses the value of such a line; none if it is not valid.
pub fn from_ascii<T: DeserializeOwned>(line: &[u8]) -> Option<T> {
    serde_json::from_slice(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_text_is_one_line_of_ascii_and_comes_back() {
        for text in ["plain", "Übung/日本 🙂", "a\r\nb\0\u{7f}", "\"quoted\\\""] {
            let line = to_ascii(&text);
            assert!(line.bytes().all(|byte| (b' '..=b'~').contains(&byte) || byte == 0x7f), "{line:?}");
            assert_eq!(from_ascii::<String>(line.as_bytes()).as_deref(), Some(text));
        }
    }
}
