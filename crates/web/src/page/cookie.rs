//! The cookie of a session, and the wish for the browser's own dialog.
//!
//! Invariant: over HTTPS, only a cookie that a browser accepted from this very host over HTTPS is read.

use std::time::{Duration, SystemTime};

use plimsoll_proto::http::Request;
use plimsoll_wire::http::credentials::cookie;
use plimsoll_wire::http::head::Field;
use plimsoll_wire::http::set_cookie::SetCookie;

/// Returns the name of the cookie. Another host of the domain, and a page without HTTPS, cannot set the
/// first.
fn name(request: &Request<'_>) -> &'static str {
    if request.is_encrypted { "__Host-plimsoll" } else { "plimsoll" }
}

/// Returns the token in the cookie of a request.
pub(crate) fn token<'a>(request: &Request<'a>) -> Option<&'a [u8]> {
    cookie(request.head.all(request.block, Field::Cookie), name(request)).filter(|token| !token.is_empty())
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
    let is_secure = request.is_encrypted;
    SetCookie { name: DIALOG, value: "yes", max_age: None, is_secure }.to_string()
}

fn set(request: &Request<'_>, value: &str, max_age: Option<Duration>) -> String {
    SetCookie { name: name(request), value, max_age, is_secure: request.is_encrypted }.to_string()
}
