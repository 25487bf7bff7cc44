//! Decides where a request goes: to the origins, to a forwarded host, or nowhere.
//!
//! It does not connect. Invariants: the proxy connects to no host that its settings do not name. A request
//! that has passed this proxy before is refused, and so does not loop.

use std::sync::Arc;

use core::net::IpAddr;
use plimsoll_wire::http::head::{Field, Framing, Head, Method, Version};
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::parse_target;

use crate::cache::policy::normalised_authority;
use crate::fields::{is_name, list};
use crate::limits::VIA_HOPS_MAX;
use crate::origin::Origin;
use crate::own_answers::OwnAnswer;
use crate::scheme::Scheme;
use crate::settings::Settings;

/// The methods that a refusal of another one lists.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// Where a request goes, and in which form.
#[derive(Clone)]
pub(crate) struct Route {
    pub(crate) to: Destination,
    /// The target for the origin: in origin-form, or `*`.
    pub(crate) target: Vec<u8>,
    /// The scheme of its URL, as it is reported to the origin.
    pub(crate) scheme: Scheme,
    /// The value of Host, in the form that the cache's keys have; `None` for that of the origin.
    pub(crate) host: Option<Vec<u8>>,
    /// The new value of Max-Forwards.
    pub(crate) max_forwards: Option<u64>,
}

/// The servers that can answer a request.
#[derive(Clone)]
pub(crate) enum Destination {
    /// The proxy's origins, which are interchangeable.
    Origins,
    /// A host of `--forward`.
    Forward(Arc<Origin>),
}

/// Finds the route of a request.
pub(crate) fn route(
    head: &Head,
    block: &[u8],
    settings: &Settings,
    local: Option<IpAddr>,
    scheme: Scheme,
) -> Result<Route, OwnAnswer> {
    if matches!(head.method(), Method::Connect | Method::Trace) {
        const DETAIL: &str = "This proxy opens no tunnels and echoes no requests. Send the request itself.";
        let refusal = OwnAnswer::new(Status::METHOD_NOT_ALLOWED, DETAIL).field("Allow", METHODS);
        // A client may send bytes for the tunnel at once.
        return Err(if head.method() == Method::Connect { refusal.ending_connection() } else { refusal });
    }
    check_via(head, block, settings)?;
    check_expectation(head, block)?;
    let sent = head.target(block);
    let target = parse_target(sent).map_err(|bad| OwnAnswer::new(bad.status(), bad.detail()))?;
    let max_forwards = max_forwards(head, block)?;
    let host = head.authority(block).map(|authority| normalised_authority(scheme.name(), authority));
    let Some(authority) = target.authority else {
        let target = sent.to_vec();
        return Ok(Route { to: Destination::Origins, target, scheme, host, max_forwards });
    };
    let to = destination((sent, scheme), authority, settings, local)?;
    // "If a proxy receives an OPTIONS request with an absolute-form of request-target in which the URI has an
    // empty path and no query component, then the last proxy on the request chain MUST send a request-target
    // of "*"" (RFC 9112, section 3.2.4).
    let scheme_end = sent.windows(3).position(|part| part == b"://").unwrap_or_default();
    let is_bare = sent.len() == scheme_end + 3 + authority.len();
    let is_star = head.method() == Method::Options && is_bare;
    let mut origin_form = if is_star { b"*".to_vec() } else { target.path.to_vec() };
    if let Some(query) = target.query {
        origin_form.push(b'?');
        origin_form.extend_from_slice(query);
    }
    Ok(Route { to, target: origin_form, scheme, host, max_forwards })
}

/// Finds the destination of a target with an authority. Names of this proxy and of its origins lead to the
/// origins, whatever the port.
fn destination(
    (sent, scheme): (&[u8], Scheme),
    authority: &[u8],
    settings: &Settings,
    local: Option<IpAddr>,
) -> Result<Destination, OwnAnswer> {
    const HTTPS: &str = "This proxy forwards https URLs over TLS only, and to its origins.";
    const UNKNOWN: &str = "This proxy does not serve this host. Send the request to its own server.";
    let is_https = sent.get(..6).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"https:"));
    if is_https && scheme == Scheme::Http {
        return Err(OwnAnswer::new(Status::MISDIRECTED_REQUEST, HTTPS));
    }
    let misdirected = || OwnAnswer::new(Status::MISDIRECTED_REQUEST, UNKNOWN);
    let authority = core::str::from_utf8(authority).map_err(|_| misdirected())?;
    if let Some(origin) = settings.forward.find(authority) {
        if is_https {
            return Err(OwnAnswer::new(Status::MISDIRECTED_REQUEST, HTTPS));
        }
        return Ok(Destination::Forward(Arc::clone(origin)));
    }
    if settings.names.contain(authority, local) { Ok(Destination::Origins) } else { Err(misdirected()) }
}

/// Refuses a request that has passed this proxy, or too many others.
fn check_via(head: &Head, block: &[u8], settings: &Settings) -> Result<(), OwnAnswer> {
    const LOOP: &str = "The request has passed this proxy before. One of its origins leads back to it.";
    const LONG: &str = "The request has passed too many proxies.";
    let lines = head.fields(block).filter(|(name, _)| is_name(name, b"via")).map(|(_, value)| value);
    let mut hops = 0;
    for hop in lines.flat_map(list) {
        hops += 1;
        // received-protocol RWS received-by [ RWS comment ]
        let mut words = hop.split(|byte| matches!(byte, b' ' | b'\t')).filter(|word| !word.is_empty());
        let received_by = words.nth(1).unwrap_or_default();
        if received_by.eq_ignore_ascii_case(settings.pseudonym.as_bytes()) {
            return Err(OwnAnswer::new(Status::LOOP_DETECTED, LOOP));
        }
        if hops > VIA_HOPS_MAX {
            return Err(OwnAnswer::new(Status::LOOP_DETECTED, LONG));
        }
    }
    Ok(())
}

/// Refuses an expectation other than 100-continue. HTTP/1.0 has no expectations.
fn check_expectation(head: &Head, block: &[u8]) -> Result<(), OwnAnswer> {
    const DETAIL: &str = "This proxy knows no expectation but 100-continue.";
    let is_known = |value: &[u8]| value.eq_ignore_ascii_case(b"100-continue");
    if head.version() != Version::Http11 || head.all(block, Field::Expect).all(is_known) {
        return Ok(());
    }
    let refusal = OwnAnswer::new(Status::EXPECTATION_FAILED, DETAIL);
    // The client may send the body that it announces, or not.
    Err(if head.framing() == Framing::None { refusal } else { refusal.ending_connection() })
}

/// Returns the decremented Max-Forwards of an OPTIONS request: "Each intermediary that receives a TRACE or
/// OPTIONS request containing a Max-Forwards header field MUST check and update its value prior to forwarding
/// the request. If the received value is zero (0), the intermediary MUST NOT forward the request; instead,
/// the intermediary MUST respond as the final recipient" (RFC 9110, section 7.6.2).
fn max_forwards(head: &Head, block: &[u8]) -> Result<Option<u64>, OwnAnswer> {
    const DETAIL: &str = "Max-Forwards is not a number.";
    let Some(value) = head.named(block, "Max-Forwards").filter(|_| head.method() == Method::Options) else {
        return Ok(None);
    };
    let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    let number = core::str::from_utf8(value).ok().filter(|_| is_number);
    match number.map(|digits| digits.parse().unwrap_or(u64::MAX)) {
        None => Err(OwnAnswer::new(Status::BAD_REQUEST, DETAIL)),
        Some(0) => Err(OwnAnswer::empty(Status::NO_CONTENT).field("Allow", METHODS)),
        Some(number) => Ok(Some(number - 1)),
    }
}
