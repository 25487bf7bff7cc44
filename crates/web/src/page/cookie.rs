//! The cookie of a session, and the wish for the browser's own dialog.
//!
//! Invariant: over HTTPS, only a cookie that a browser accepted from this very host over HTTPS is read.

use std::time::{Duration, SystemTime};

use plimsoll_proto::http::Request;
use plimsoll_wire::http::credentials::cookie;
use plimsoll_wire::http::head::Field;
use plimsoll_wire::http::set_cookie::SetCookie;

/// The name over HTTPS. Another host of the domain, and a page without HTTPS, cannot set such a cookie.
const OVER_HTTPS: &str = "__Host-plimsoll";

/// The name without HTTPS.
const PLAIN: &str = "plimsoll";

/// Returns the token in the cookie of a request.
pub(crate) fn token<'a>(request: &Request<'a>) -> Option<&'a [u8]> {
    let named =
        |name| cookie(request.head.all(request.block, Field::Cookie), name).filter(|token| !token.is_empty());
    let over_https = (request.is_encrypted || request.is_admitted_by_socket).then(|| named(OVER_HTTPS));
    over_https.flatten().or_else(|| if request.is_encrypted { None } else { named(PLAIN) })
}

/// Whether the browser uses HTTPS, as far as is known. A proxy on a Unix socket need not report it, but the
/// browser's Origin of a form does.
pub(crate) fn is_over_https(request: &Request<'_>) -> bool {
    let is_of_https = |origin: &[u8]| origin.starts_with(b"https://");
    request.is_encrypted
        || request.is_admitted_by_socket && request.field(Field::Origin).is_some_and(is_of_https)
}

/// Returns the field that stores a session: until it expires, or until the browser ends.
pub(crate) fn store(request: &Request<'_>, token: &str, stays_until: Option<SystemTime>) -> String {
    let max_age = stays_until.map(|end| end.duration_since(request.io.wall()).unwrap_or_default());
    set(request, token, max_age)
}

/// Returns the field that removes the session.
pub(crate) fn remove(request: &Request<'_>) -> String {
    set(request, "", Some(Duration::ZERO))
}

/// The cookie of a browser that asks for the password by its own dialog, because the server has no sessions.
const DIALOG: &str = "plimsoll-dialog";

/// Whether the browser asks for the password by its own dialog.
pub(crate) fn wants_dialog(request: &Request<'_>) -> bool {
    cookie(request.head.all(request.block, Field::Cookie), DIALOG) == Some(b"yes")
}

/// Returns the field by which the browser gets challenges for its own dialog from now on.
pub(crate) fn ask_by_dialog(request: &Request<'_>) -> String {
    let is_secure = is_over_https(request);
    SetCookie { name: DIALOG, value: "yes", path: "/", max_age: None, is_secure }.to_string()
}

fn set(request: &Request<'_>, value: &str, max_age: Option<Duration>) -> String {
    let is_secure = is_over_https(request);
    let name = if is_secure { OVER_HTTPS } else { PLAIN };
    SetCookie { name, value, path: "/", max_age, is_secure }.to_string()
}
