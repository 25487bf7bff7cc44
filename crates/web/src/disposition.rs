//! The value of Content-Disposition (RFC 6266), with the name that a client saves a body under.
//!
//! Invariant: for a name of any bytes, the value is valid, names no other folder and adds no other field.

use plimsoll_wire::http::target::encoded_path;

/// Returns the value of type `kind`, which is `attachment` or `inline`, with this name.
///
/// A name that `filename` cannot have is repeated in the extended form (RFC 8187), which clients prefer (RFC
/// 6266, section 4.3). In `filename`, some clients decode `%` and `\`, and some end the name at `;`.
pub(crate) fn content_disposition(kind: &str, name: &[u8]) -> String {
    let name = String::from_utf8_lossy(name).replace(|char: char| char.is_control() || char == '/', "_");
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b" .-_()+,=@".contains(&byte);
    let plain: String = name.bytes().map(|byte| if is_plain(byte) { byte.into() } else { '_' }).collect();
    let mut value = format!("{kind}; filename=\"{plain}\"");
    if plain != name {
        value = format!("{value}; filename*=UTF-8''{}", encoded_path(name.as_bytes()));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_any_characters_is_one_valid_value() {
        for (name, value) in [
            (&b"my photos (2).zip"[..], "filename=\"my photos (2).zip\""),
            (b"a\"b;\\%", "filename=\"a_b___\"; filename*=UTF-8''a%22b%3B%5C%25"),
            ("\u{fc}".as_bytes(), "filename=\"__\"; filename*=UTF-8''%C3%BC"),
            (b"\xfc", "filename=\"___\"; filename*=UTF-8''%EF%BF%BD"),
            (b"a\r\nb: c", "filename=\"a__b_ c\"; filename*=UTF-8''a__b%3A%20c"),
            (b"../a\0\x7f", "filename=\".._a__\""),
        ] {
            assert_eq!(content_disposition("inline", name), format!("inline; {value}"));
        }
    }
}
