//! Media types of Content-Type (RFC 9110, section 8.3).
//!
//! Not here: media ranges of Accept, and the types of files. Invariant: a type is compared by
//! [`is_media_type`] alone, so that all of them may have parameters and any case.

use super::grammar::trim_ows;

/// Returns whether the value of a Content-Type is of this type, with any parameters: "The type and subtype
/// tokens are case-insensitive" (section 8.3.1).
#[must_use]
pub fn is_media_type(content_type: &[u8], media: &str) -> bool {
    let essence = content_type.split(|&byte| byte == b';').next().unwrap_or_default();
    trim_ows(essence).eq_ignore_ascii_case(media.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_is_the_same_in_any_case_and_with_any_parameters() {
        for value in ["a/b", "A/B", " a/b ", "a/b;c=d", "a/b ; c=\"x;y\"", "a/b;", "a/B;charset=UTF-8"] {
            assert!(is_media_type(value.as_bytes(), "a/b"), "{value}");
        }
        for value in ["", "a", "a/", "a/bc", "xa/b", "a/b, a/b", "a / b", ";a/b"] {
            assert!(!is_media_type(value.as_bytes(), "a/b"), "{value}");
        }
    }
}
