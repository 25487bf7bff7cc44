//! The origin of a page: scheme, host and port (RFC 6454), in the form that browsers send (section 6.2).
//!
//! Not here: the permissions of pages of other origins. Invariant: equal origins have one form.

use super::grammar::{is_host, is_tchar};

/// Returns the form in which browsers send an origin: in lower case, without the default port. None for any
/// other text, also for `null` and `*`, which name no origin.
#[must_use]
pub fn parse_origin(text: &str) -> Option<String> {
    let origin = text.to_ascii_lowercase();
    let (scheme, authority) = origin.split_once("://")?;
    let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
    let begins_well = scheme.as_bytes().first().is_some_and(u8::is_ascii_alphabetic);
    if !is_scheme || !begins_well || !is_host(authority.as_bytes()) {
        return None;
    }
    let default_port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => "",
    };
    Some(format!("{scheme}://{}", authority.strip_suffix(default_port).unwrap_or(authority)))
}

/// Returns whether a value is a list of field names, as Access-Control-Request-Headers is.
#[must_use]
pub fn is_name_list(value: &[u8]) -> bool {
    value.iter().all(|&byte| is_tchar(byte) || matches!(byte, b',' | b' '))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_parsed_to_the_form_of_browsers() {
        for (text, origin) in [
            ("https://app.example", "https://app.example"),
            ("HTTPS://App.Example:443", "https://app.example"),
            ("http://localhost:3000", "http://localhost:3000"),
            ("http://[::1]:80", "http://[::1]"),
            ("https://app.example:80", "https://app.example:80"),
            ("capacitor://localhost", "capacitor://localhost"),
        ] {
            assert_eq!(parse_origin(text).as_deref(), Some(origin), "{text}");
        }
        for text in
            ["", "*", "null", "app.example", "https://", "https://a/", "https://a/b", "https://a b", "://a"]
        {
            assert_eq!(parse_origin(text), None, "{text}");
        }
    }

    #[test]
    fn a_list_of_names_has_no_other_characters() {
        assert!(is_name_list(b"authorization, tus-resumable,x-y") && is_name_list(b""));
        assert!(!is_name_list(b"a\tb") && !is_name_list(b"a: b") && !is_name_list(b"a;b"));
    }
}
