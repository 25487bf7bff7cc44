//! Invalidation of stored responses by unsafe methods (RFC 9111, section 4.4).
//!
//! Not here: the removal. Invariant: a response invalidates only resources of its own origin, so that one
//! origin cannot empty the cache of another.

use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::status::Status;

use super::fields::FieldLines;
use super::key::ResourceKey;
use crate::cache::limits::INVALIDATED_URIS_MAX;

/// Returns the resources that the response to a request with this method invalidates: at most
/// [`INVALIDATED_URIS_MAX`].
#[must_use]
pub fn invalidated_uris(
    method: Method,
    key: &ResourceKey,
    status: Status,
    fields: FieldLines<'_>,
) -> Vec<ResourceKey> {
    let is_error = status.code() >= 400;
    if is_safe(method) || status.is_informational() || is_error {
        return Vec::new();
    }
    let mut invalidated = vec![key.clone()];
    for name in ["location", "content-location"] {
        let Some(other) = fields.first(name).and_then(|reference| key.resolve(reference)) else { continue };
        if other.origin() == key.origin() && !invalidated.contains(&other) {
            invalidated.push(other);
        }
    }
    debug_assert!(invalidated.len() <= INVALIDATED_URIS_MAX);
    invalidated
}

/// Whether a method is safe (RFC 9110, section 9.2.1). An unknown one may change the resource.
fn is_safe(method: Method) -> bool {
    matches!(method, Method::Get | Method::Head | Method::Options | Method::Trace | Method::Propfind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uris(method: Method, code: u16, lines: &str) -> Vec<String> {
        let key = ResourceKey::new("http", b"a", b"/x");
        let status = Status::from_code(code).unwrap();
        let keys = invalidated_uris(method, &key, status, FieldLines::new(lines.as_bytes()));
        keys.iter().map(|key| String::from_utf8(key.uri().to_vec()).unwrap()).collect()
    }

    #[test]
    fn an_unsafe_method_with_success_invalidates_its_target_and_the_resources_it_names() {
        let lines = "Location: /y\r\nContent-Location: http://A/z\r\n";
        for method in [Method::Post, Method::Put, Method::Delete, Method::Patch, Method::Move, Method::Other]
        {
            let all = ["http://a/x", "http://a/y", "http://a/z"];
            assert_eq!(uris(method, 201, lines), all);
        }
        assert_eq!(uris(Method::Post, 303, ""), ["http://a/x"]);
        assert_eq!(uris(Method::Post, 201, "Location: y/1\r\n"), ["http://a/x", "http://a/y/1"]);
    }

    #[test]
    fn errors_safe_methods_and_other_origins_invalidate_nothing() {
        assert!(uris(Method::Post, 404, "").is_empty());
        assert!(uris(Method::Post, 500, "").is_empty());
        assert!(uris(Method::Get, 200, "Location: /y\r\n").is_empty());
        assert_eq!(uris(Method::Put, 204, "Location: http://b/y\r\n"), ["http://a/x"]);
        assert_eq!(uris(Method::Put, 204, "Location: http://a:81/y\r\n"), ["http://a/x"]);
    }
}
