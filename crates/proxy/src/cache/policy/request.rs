//! The parts of a request that decide what the cache does with it.
//!
//! Not here: the response. Invariant: one pass over the fields; nothing is copied but the key.

use plimsoll_wire::http::head::Method;

use super::directives::RequestDirectives;
use super::fields::FieldLines;
use super::key::ResourceKey;
use crate::fields::is_usual_name;

/// A request, as the cache sees it.
#[derive(Clone, Debug)]
pub struct CacheRequest<'a> {
    /// The method.
    pub method: Method,
    /// The target.
    pub key: ResourceKey,
    /// The fields that the origin gets.
    pub fields: FieldLines<'a>,
    /// Cache-Control and Pragma.
    pub directives: RequestDirectives,
    /// Whether it has credentials in Authorization.
    pub has_authorization: bool,
    /// Whether it has a Cookie, so that the response may be for one person.
    pub has_cookie: bool,
    /// Whether the client has a copy, and asks for a newer one: If-None-Match or If-Modified-Since.
    pub has_conditions: bool,
    /// The Range field of a GET.
    pub range: Option<&'a [u8]>,
    /// The reason why it goes past the cache, if it does.
    pub bypass: Option<Bypass>,
}

/// The reason why a request is neither answered from the cache nor stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bypass {
    /// The method is neither GET nor HEAD.
    Method,
    /// The request has content, which may change the response.
    Content,
    /// `no-store` in the request.
    NoStore,
    /// If-Match or If-Unmodified-Since: the origin must evaluate them.
    Precondition,
    /// The connection may change its protocol.
    Upgrade,
    /// A field has a name that the origin may read as another.
    FieldName,
    /// The path of a public link: a GET may count a download.
    Link,
}

impl Bypass {
    /// Returns the reason as a token of Cache-Status.
    #[must_use]
    pub fn detail(self) -> &'static str {
        match self {
            Bypass::Method => "method",
            Bypass::Content => "content",
            Bypass::NoStore => "no-store",
            Bypass::Precondition => "precondition",
            Bypass::Upgrade => "upgrade",
            Bypass::FieldName => "field-name",
            Bypass::Link => "link",
        }
    }
}

impl<'a> CacheRequest<'a> {
    /// Reads a request. `has_content` is whether a body follows.
    #[must_use]
    pub fn new(
        method: Method,
        key: ResourceKey,
        fields: FieldLines<'a>,
        has_content: bool,
    ) -> CacheRequest<'a> {
        let directives = RequestDirectives::parse(fields);
        let mut request = CacheRequest {
            method,
            key,
            fields,
            directives,
            has_authorization: false,
            has_cookie: false,
            has_conditions: false,
            range: None,
            bypass: None,
        };
        let mut has_precondition = false;
        let mut is_unusual = false;
        for (name, value) in fields.iter() {
            is_unusual |= !is_usual_name(name);
            match name.len() {
                5 if name.eq_ignore_ascii_case(b"range") => request.range = Some(value),
                6 => request.has_cookie |= name.eq_ignore_ascii_case(b"cookie"),
                8 => has_precondition |= name.eq_ignore_ascii_case(b"if-match"),
                13 => {
                    request.has_authorization |= name.eq_ignore_ascii_case(b"authorization");
                    request.has_conditions |= name.eq_ignore_ascii_case(b"if-none-match");
                }
                17 => request.has_conditions |= name.eq_ignore_ascii_case(b"if-modified-since"),
                19 => has_precondition |= name.eq_ignore_ascii_case(b"if-unmodified-since"),
                _ => {}
            }
        }
        request.range = request.range.filter(|_| method == Method::Get);
        request.bypass = match () {
            () if !method.reads() => Some(Bypass::Method),
            () if has_content => Some(Bypass::Content),
            () if is_unusual => Some(Bypass::FieldName),
            () if has_precondition => Some(Bypass::Precondition),
            () if directives.no_store => Some(Bypass::NoStore),
            () => None,
        };
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bypass(method: Method, lines: &str) -> Option<Bypass> {
        let key = ResourceKey::new("http", b"a", b"/");
        CacheRequest::new(method, key, FieldLines::new(lines.as_bytes()), false).bypass
    }

    #[test]
    fn requests_that_only_the_origin_can_answer_bypass_the_cache() {
        assert_eq!(bypass(Method::Get, "Accept: x\r\n"), None);
        assert_eq!(bypass(Method::Head, ""), None);
        assert_eq!(bypass(Method::Post, ""), Some(Bypass::Method));
        assert_eq!(bypass(Method::Get, "Accept_Language: de\r\n"), Some(Bypass::FieldName));
        assert_eq!(bypass(Method::Get, "IF-MATCH: *\r\n"), Some(Bypass::Precondition));
        let since = "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
        assert_eq!(bypass(Method::Get, since), Some(Bypass::Precondition));
        assert_eq!(bypass(Method::Get, "Cache-Control: no-store\r\n"), Some(Bypass::NoStore));
    }

    #[test]
    fn a_range_counts_for_get_only() {
        let key = || ResourceKey::new("http", b"a", b"/");
        let lines = FieldLines::new(b"Range: bytes=0-1\r\nAuthorization: x\r\nIf-None-Match: *\r\n");
        let get = CacheRequest::new(Method::Get, key(), lines, false);
        assert_eq!(get.range, Some(&b"bytes=0-1"[..]));
        assert!(get.has_authorization && get.has_conditions);
        assert_eq!(CacheRequest::new(Method::Head, key(), lines, false).range, None);
    }
}
