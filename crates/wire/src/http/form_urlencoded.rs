//! The encoding of HTML forms and of queries: application/x-www-form-urlencoded (URL Standard, section 5).
//!
//! Not here: the meaning of a form's fields. Invariant: a value of any bytes is the same after encoding and
//! decoding.

/// Decodes a name or a value: a plus sign is a space. Returns None if an escape is not one.
#[must_use]
pub fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (mut decoded, mut rest) = (Vec::with_capacity(text.len()), text);
    loop {
        rest = match rest {
            [] => return Some(decoded),
            [b'%', high, low, after @ ..] => {
                decoded.push(digit(high)? * 16 + digit(low)?);
                after
            }
            [b'%', ..] => return None,
            [b'+', after @ ..] => {
                decoded.push(b' ');
                after
            }
            [byte, after @ ..] => {
                decoded.push(*byte);
                after
            }
        };
    }
}

/// Appends a name or a value, encoded.
pub fn encode(value: &[u8], into: &mut String) {
    for byte in value {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                into.push(char::from(*byte));
            }
            byte => into.push_str(&format!("%{byte:02X}")),
        }
    }
}

/// Returns the decoded value of the first field with this name. The name is one of plain letters.
#[must_use]
pub fn value_of(form: &[u8], name: &str) -> Option<Vec<u8>> {
    let mut pairs = form.split(|&byte| byte == b'&');
    pairs.find_map(|pair| decode(pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_any_bytes_survives_its_encoding() {
        let every: Vec<u8> = (0..=255).collect();
        for value in [&b""[..], b"a b+c&d=e%/?#", b"\xff\xfe", "grüße".as_bytes(), &every] {
            let mut encoded = "x=1&field=".to_owned();
            encode(value, &mut encoded);
            assert_eq!(value_of(format!("{encoded}&y").as_bytes(), "field").as_deref(), Some(value));
        }
    }

    #[test]
    fn a_field_is_found_by_its_whole_name() {
        assert_eq!(value_of(b"names=1&name=a+b%2B&name=c", "name"), Some(b"a b+".to_vec()));
        for form in [&b""[..], b"&&", b"name", b"xname=1", b"name=%", b"name=%4", b"name=%zz"] {
            assert_eq!(value_of(form, "name"), None, "{form:?}");
        }
    }
}
