//! Refuses changes that a page of another site makes a browser send (cross-site request forgery).
//!
//! A browser adds stored credentials to some requests of any page, and reports the page's site in fields
//! that no page can set. A token in Authorization is presented by the client itself, so it suffices for
//! every request but a form. Invariants: a stored cookie or password changes something only for pages of
//! this server; the page's forms are received from pages of this server alone.

use plimsoll_proto::http::Request;
use plimsoll_wire::http::head::{Field, Method};
use plimsoll_wire::http::origin::parse_origin;
use plimsoll_wire::http::status::Status;

use crate::page::cookie;
use crate::refusal::Refusal;
use crate::resource::Resource;

/// The kind of credentials that a request presents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presented {
    /// A token, which no browser stores.
    Token,
    /// A name and a password, which a browser may have stored.
    Password,
    /// The cookie of a session.
    Cookie,
    /// None.
    Nothing,
}

/// The sender of a request, as the browser reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    /// A page of this server, or the person itself.
    Own,
    /// A page of another origin.
    Other,
    /// Unknown: the client is no browser.
    Unreported,
}

/// Checks a request that may change something.
///
/// # Errors
/// It is from a page of another origin, and presents credentials that the browser may have added, or none.
pub(crate) fn check(request: &Request<'_>, resource: &Resource, method: Method) -> Result<(), Refusal> {
    if matches!(resource, Resource::Link(_)) {
        return check_of_link(request);
    }
    // Browsers send forms for a page of any origin without a preflight request.
    let is_form = resource.is_form(method);
    let is_permitted = match (sender(request), presented(request)) {
        (Sender::Own, _) => true,
        (_, Presented::Cookie) => false,
        (Sender::Unreported, _) => !matches!(resource, Resource::Page(_)),
        // Pages of named origins send forms with a token. Other requests of theirs have a preflight, and no
        // response to it permits stored credentials.
        (Sender::Other, Presented::Token) => {
            !is_form || request.is_of_named_origin && !matches!(resource, Resource::Page(_))
        }
        (Sender::Other, Presented::Password) => !is_form && request.is_of_named_origin,
        (Sender::Other, Presented::Nothing) => !is_form,
    };
    if is_permitted { Ok(()) } else { Err(refusal()) }
}

/// Checks a request to a public link. Its pages send no referrer, so a browser reports no origin of their
/// forms. A page of another site that knows the token gains nothing: no cookie of the link goes with its
/// form.
fn check_of_link(request: &Request<'_>) -> Result<(), Refusal> {
    let is_own = match (request.field(Field::SecFetchSite), request.field(Field::Origin)) {
        (Some(site), _) => matches!(site, b"same-origin" | b"none"),
        (None, Some(b"null") | None) => true,
        (None, Some(origin)) => is_own(request, origin),
    };
    if is_own { Ok(()) } else { Err(refusal()) }
}

fn refusal() -> Refusal {
    Refusal::new(
        Status::FORBIDDEN,
        "A page of another site cannot send this. Send it from this server's own page. A proxy in front of \
         the server must pass on Host as the browser sends it.",
    )
}

fn presented(request: &Request<'_>) -> Presented {
    match request.field(Field::Authorization) {
        Some(value) if is_basic(value) => Presented::Password,
        Some(_) => Presented::Token,
        None if cookie::token(request).is_some() => Presented::Cookie,
        None => Presented::Nothing,
    }
}

fn is_basic(value: &[u8]) -> bool {
    const BASIC: &[u8] = b"Basic";
    value.get(..BASIC.len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(BASIC))
}

/// Returns the sender. Browsers add Sec-Fetch-Site over connections that are encrypted or local, and Origin
/// over every connection.
fn sender(request: &Request<'_>) -> Sender {
    match (request.field(Field::SecFetchSite), request.field(Field::Origin)) {
        (Some(b"same-origin" | b"none"), _) => Sender::Own,
        (Some(_), _) => Sender::Other,
        (None, Some(origin)) if is_own(request, origin) => Sender::Own,
        (None, Some(_)) => Sender::Other,
        (None, None) => Sender::Unreported,
    }
}

/// Whether an origin is this server's, under a name that the client used: the scheme counts, too.
fn is_own(request: &Request<'_>, origin: &[u8]) -> bool {
    let scheme = if cookie::is_over_https(request) { "https" } else { "http" };
    let mut hosts = request.forwarded_hosts();
    hosts.extend(request.head.authority(request.block));
    hosts.into_iter().any(|host| {
        let own = parse_origin(&format!("{scheme}://{}", String::from_utf8_lossy(host)));
        own.is_some_and(|own| own.as_bytes() == origin)
    })
}
