//! Whether a response may be stored, and its freshness lifetime (RFC 9111, sections 3 and 4.2).
//!
//! Not here: the use of a stored response. The rules are those of the crate `http-cache-semantics`, which
//! receives the directives and dates in one canonical form. They are corrected as follows:
//!
//! * Cache-Control is parsed here: the crate compares names with case, splits quoted arguments at their
//!   commas, and uses a directive that is sent twice with different values.
//! * A response with Set-Cookie is never stored: the crate stores it with `public`.
//! * `Vary: *` is never stored; the crate sees the first line of Vary only, so selection is in
//!   [`super::vary`].
//! * `no-cache`, with or without field names, permits storing and makes each use validate.
//! * `proxy-revalidate` does not shorten the lifetime: it forbids stale use (section 5.2.2.8).
//! * `must-understand` is honoured (section 5.2.2.3).
//! * 308 is cacheable by heuristics (RFC 9110, section 15.1). Any final status is cacheable with explicit
//!   freshness (RFC 9111, section 3), 206 and 304 excepted.
//! * All three forms of dates are read; the crate reads one.
//! * A Last-Modified that says nothing about the version ([`usable_modification`]) is none.
//! * Age is computed from Date, Age and the delay ([`super::freshness`]); the crate omits Date and delay.
//! * Heuristic lifetimes are bounded, and negative responses have a short one. A response to a request with
//!   Cookie has none: many programs that write pages for one person state no freshness.
//!
//! Invariant: a response that only one person may see is refused here, whatever else it declares.

use std::time::Duration;

use http::header::{AUTHORIZATION, CACHE_CONTROL, DATE, EXPIRES, HeaderName, LAST_MODIFIED, PRAGMA};
use http::{HeaderMap, HeaderValue, StatusCode};
use http_cache_semantics::{CacheOptions, CachePolicy};
#[cfg(doc)]
use plimsoll_wire::http::date::usable_modification;
use plimsoll_wire::http::date::{DATE_BYTES, parse_date, write_date};
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::status::Status;

use super::directives::ResponseDirectives;
use super::fields::FieldLines;
use super::freshness::{ExchangeTimes, Freshness, modified};
use super::request::CacheRequest;
use super::vary::Vary;
use crate::cache::limits::{HEURISTIC_TIME_MAX, NEGATIVE_TIME};

/// The reason why a response is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotStored {
    /// Only responses to GET are stored.
    Method,
    /// The request forbids it by `no-store`.
    RequestNoStore,
    /// `no-store`.
    NoStore,
    /// `private`.
    Private,
    /// The request has Authorization, and the response does not permit sharing (section 3.5).
    Authorization,
    /// The response sets a cookie.
    SetCookie,
    /// The request has a cookie, and the response states no freshness: it may be for one person.
    Cookie,
    /// Vary is `*`, malformed, has too many names, or one of a field that the proxy writes.
    Vary,
    /// A status that is never stored, or not without explicit freshness.
    Status,
    /// A partial response that is no slice of a complete one.
    Partial,
    /// It is stale at once, and cannot be validated.
    NotReusable,
    /// Its content is larger than the cache stores.
    TooLarge,
    /// The disk has failed shortly before, or is full.
    DiskFailed,
    /// Too many bodies are being received.
    NoRoom,
    /// Its content ends with the connection, so that a cut would look like the end.
    CloseDelimited,
}

impl NotStored {
    /// Returns the reason as a token of Cache-Status.
    #[must_use]
    pub fn detail(self) -> &'static str {
        match self {
            NotStored::Method => "method",
            NotStored::RequestNoStore | NotStored::NoStore => "no-store",
            NotStored::Private => "private",
            NotStored::Authorization => "authorization",
            NotStored::SetCookie => "set-cookie",
            NotStored::Cookie => "cookie",
            NotStored::Vary => "vary",
            NotStored::Status => "status",
            NotStored::Partial => "partial",
            NotStored::NotReusable => "not-reusable",
            NotStored::TooLarge => "too-large",
            NotStored::DiskFailed => "disk-failed",
            NotStored::NoRoom => "no-room",
            NotStored::CloseDelimited => "close-delimited",
        }
    }
}

/// The permission to store a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storable {
    /// How long it may be used.
    pub freshness: Freshness,
    /// The request fields that select it.
    pub vary: Vary,
    /// Whether it may answer requests with Authorization.
    pub is_for_authorized: bool,
}

/// The statuses whose requirements this cache implements (`must-understand`).
const UNDERSTOOD: [u16; 14] = [200, 203, 204, 300, 301, 302, 303, 307, 308, 404, 405, 410, 414, 501];
/// Statuses that report an error and are cacheable by heuristics.
const NEGATIVE: [u16; 5] = [404, 405, 410, 414, 501];

/// Decides whether the response to `request` may be stored.
///
/// # Errors
/// The reason why not.
pub fn evaluate(
    request: &CacheRequest<'_>,
    status: Status,
    fields: FieldLines<'_>,
    times: ExchangeTimes,
) -> Result<Storable, NotStored> {
    let code = status.code();
    let mut directives = ResponseDirectives::parse(fields);
    if directives.must_understand {
        if !UNDERSTOOD.contains(&code) {
            return Err(NotStored::Status);
        }
        // no-store is then for caches that do not implement must-understand.
        directives.no_store = false;
    }
    let is_for_authorized = directives.public || directives.must_revalidate || directives.s_maxage.is_some();
    let refusal = match () {
        () if request.method != Method::Get => Some(NotStored::Method),
        () if request.directives.no_store => Some(NotStored::RequestNoStore),
        () if code == 206 => Some(NotStored::Partial),
        () if code < 200 || code == 304 => Some(NotStored::Status),
        () if directives.no_store => Some(NotStored::NoStore),
        () if directives.private => Some(NotStored::Private),
        () if fields.contains("set-cookie") || fields.contains("set-cookie2") => Some(NotStored::SetCookie),
        () if request.has_authorization && !is_for_authorized => Some(NotStored::Authorization),
        () if request.has_cookie && !is_stated(&directives, fields) => Some(NotStored::Cookie),
        () => None,
    };
    if let Some(refusal) = refusal {
        return Err(refusal);
    }
    let vary = Vary::parse(fields).ok_or(NotStored::Vary)?;
    // "caches are encouraged to consider responses that have invalid freshness information [...] to be stale"
    // (section 4.2.1).
    directives.no_cache |= directives.is_malformed;
    let lifetime = lifetime(request, code, &directives, fields, times).ok_or(NotStored::Status)?;
    let freshness = Freshness::new(&directives, fields, times, lifetime);
    let has_validator = fields.contains("etag") || modified(fields, times.received.wall).is_some();
    if !has_validator && !freshness.is_usable_unvalidated() {
        return Err(NotStored::NotReusable);
    }
    Ok(Storable { freshness, vary, is_for_authorized })
}

/// Whether a response states how long it is fresh, or that each use needs a validation.
fn is_stated(directives: &ResponseDirectives, fields: FieldLines<'_>) -> bool {
    has_lifetime(directives, fields) || directives.no_cache
}

fn has_lifetime(directives: &ResponseDirectives, fields: FieldLines<'_>) -> bool {
    directives.s_maxage.is_some() || directives.max_age.is_some() || fields.contains("expires")
}

/// Returns the freshness lifetime, or `None` if the crate's rules refuse to store the response.
fn lifetime(
    request: &CacheRequest<'_>,
    code: u16,
    directives: &ResponseDirectives,
    fields: FieldLines<'_>,
    times: ExchangeTimes,
) -> Option<Duration> {
    let is_explicit = has_lifetime(directives, fields);
    let mut canonical_request = http::Request::new(());
    if request.has_authorization {
        canonical_request.headers_mut().insert(AUTHORIZATION, HeaderValue::from_static("present"));
    }
    let mut response = http::Response::new(());
    let understood = match code {
        // Not in the crate's table of statuses that are cacheable by heuristics.
        308 => 301,
        code if UNDERSTOOD.contains(&code) => code,
        // Any status may be stored if the response says so.
        _ if is_explicit || directives.public => 200,
        code => code,
    };
    *response.status_mut() = StatusCode::from_u16(understood).ok()?;
    *response.headers_mut() = canonical_fields(directives, fields, times);
    let options = CacheOptions::default();
    let received = times.received.wall;
    let policy = CachePolicy::new_options(&canonical_request, &response, received, options);
    if !policy.is_storable() {
        return None;
    }
    // The crate receives no Age, so that this is the whole lifetime.
    let lifetime = policy.time_to_live(received);
    Some(match is_explicit {
        true => lifetime,
        false if NEGATIVE.contains(&code) => NEGATIVE_TIME,
        false => lifetime.min(HEURISTIC_TIME_MAX),
    })
}

/// Writes the fields that decide the lifetime in the form that the crate reads.
fn canonical_fields(
    directives: &ResponseDirectives,
    fields: FieldLines<'_>,
    times: ExchangeTimes,
) -> HeaderMap {
    let mut canonical = HeaderMap::new();
    let mut cache_control = String::new();
    let mut add = |directive: &str| {
        if !cache_control.is_empty() {
            cache_control.push_str(", ");
        }
        cache_control.push_str(directive);
    };
    for (is_set, name) in [
        (directives.public, "public"),
        (directives.must_revalidate, "must-revalidate"),
        (directives.immutable, "immutable"),
    ] {
        if is_set {
            add(name);
        }
    }
    for (seconds, name) in [(directives.max_age, "max-age"), (directives.s_maxage, "s-maxage")] {
        if let Some(seconds) = seconds {
            add(&format!("{name}={}", seconds.as_secs()));
        }
    }
    if let Ok(value) = HeaderValue::from_str(&cache_control)
        && !cache_control.is_empty()
    {
        canonical.insert(CACHE_CONTROL, value);
    }
    copy_date(&mut canonical, DATE, fields.first("date"));
    copy_date(&mut canonical, EXPIRES, fields.first("expires"));
    if modified(fields, times.received.wall).is_some() {
        copy_date(&mut canonical, LAST_MODIFIED, fields.first("last-modified"));
    }
    if let Some(Ok(pragma)) = fields.first("pragma").map(HeaderValue::from_bytes)
        && !fields.contains("cache-control")
    {
        canonical.insert(PRAGMA, pragma);
    }
    canonical
}

/// Copies a date in the preferred form. An invalid Expires stays, as a time in the past (section 5.3).
fn copy_date(into: &mut HeaderMap, name: HeaderName, value: Option<&[u8]>) {
    let Some(value) = value else { return };
    let Some(date) = parse_date(value) else {
        if name == EXPIRES {
            into.insert(name, HeaderValue::from_static("0"));
        }
        return;
    };
    let mut text = [0; DATE_BYTES];
    write_date(date, &mut text);
    if let Ok(text) = HeaderValue::from_bytes(&text) {
        into.insert(name, text);
    }
}

#[cfg(test)]
mod tests;
