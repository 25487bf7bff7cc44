//! The orders of a server to its clients about HTTPS: to use it (a redirect), and to go on using it (HSTS,
//! RFC 6797). The answers to the challenges of an ACME server, which wants them without encryption.
//!
//! It encrypts nothing. Invariants: no client is redirected to a name that is not the server's own. A request
//! that came encrypted is never redirected, and only its response has the order to go on.

use core::net::IpAddr;
use std::time::Duration;

use plimsoll_io::Peer;
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::status::Status;
use plimsoll_wire::http::target::{Target, parse_target};

use super::answer::Answer;
use super::challenges::{Challenges, token_of};
use super::local_request::host_of;
use super::problem::problem;
use super::request::Request;

/// The usual port, which URLs omit.
const HTTPS_PORT: u16 = 443;
/// Paths that are served without encryption. An authority for certificates requests the last.
const EXEMPT: [&[u8]; 3] = [b"/healthz", b"/readyz", b"/.well-known/acme-challenge"];

/// The orders of a server.
#[derive(Default)]
pub struct HttpsRules {
    /// Where clients without encryption are redirected.
    pub redirect: Option<HttpsRedirect>,
    /// How long clients shall use nothing but HTTPS.
    pub hsts: Option<Duration>,
    /// The answers to challenges of an ACME server.
    pub challenges: Option<Challenges>,
}

/// The redirect of requests that came without encryption.
pub struct HttpsRedirect {
    /// The port of HTTPS.
    pub port: u16,
    /// Whether the server has a certificate for a name or address.
    pub has_certificate: Box<dyn Fn(&str) -> bool + Send + Sync>,
}

impl HttpsRules {
    /// Returns the redirect of a request that came without encryption.
    pub(super) fn redirect(&self, request: &Request<'_>) -> Option<Answer> {
        let rule = self.redirect.as_ref()?;
        // A proxy at a Unix socket may have the certificate: its clients would be redirected for ever.
        let is_unix = *request.peer == Peer::Unix;
        if request.is_protected() || is_unix || is_exempt(request.target()) {
            return None;
        }
        let host = request.head.authority(request.block).and_then(host_of);
        let Some(host) = host.filter(|host| (rule.has_certificate)(bare(host))) else {
            const DETAIL: &str =
                "This server serves HTTPS under other names. Use one that its certificate has.";
            return Some(problem(Status::MISDIRECTED_REQUEST, DETAIL));
        };
        let port = if rule.port == HTTPS_PORT { String::new() } else { format!(":{}", rule.port) };
        let location = [b"https://", host.as_bytes(), port.as_bytes(), &path_of(request.target())].concat();
        Some(Answer::new(Status::PERMANENT_REDIRECT).field("Location", location))
    }

    /// Returns the answer to a challenge of an ACME server; `None` for any other request.
    pub(super) async fn challenge_answer(&self, request: &Request<'_>, path: &[u8]) -> Option<Answer> {
        let (challenges, token) = (self.challenges.as_ref()?, token_of(path)?);
        match request.method() {
            // Boxed: rarely taken, and inlining it would enlarge every connection's future.
            Method::Get | Method::Head => Box::pin(challenges.answer(request.io, token)).await,
            _ => None,
        }
    }

    /// Adds the order to use nothing but HTTPS. Clients ignore it for an address.
    pub(super) fn mark(&self, request: &Request<'_>, answer: Answer) -> Answer {
        match self.hsts {
            Some(time) if is_encrypted_by_name(request) => {
                answer.field_display("Strict-Transport-Security", format_args!("max-age={}", time.as_secs()))
            }
            _ => answer,
        }
    }
}

fn is_exempt(target: &[u8]) -> bool {
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    EXEMPT.iter().any(|exempt| path.strip_prefix(*exempt).is_some_and(|rest| matches!(rest, [] | [b'/', ..])))
}

fn is_encrypted_by_name(request: &Request<'_>) -> bool {
    let host = request.head.authority(request.block).and_then(host_of);
    request.is_encrypted && host.is_some_and(|host| bare(host).parse::<IpAddr>().is_err())
}

/// Returns an IPv6 address without its brackets.
fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host)
}

/// Returns the path and the query of a target; `/` if it has none.
fn path_of(target: &[u8]) -> Vec<u8> {
    match parse_target(target) {
        Ok(Target { path: path @ [b'/', ..], query: Some(query), .. }) => [path, b"?", query].concat(),
        Ok(Target { path: path @ [b'/', ..], query: None, .. }) => path.to_vec(),
        _ => b"/".to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_keeps_path_and_query_of_every_form_of_target() {
        for (target, path) in [
            ("/a/b?c=d", "/a/b?c=d"),
            ("http://h/a?b", "/a?b"),
            ("HTTP://h/a", "/a"),
            ("https://h?b", "/?b"),
            ("*", "/"),
            ("h:443", "/"),
        ] {
            assert_eq!(path_of(target.as_bytes()), path.as_bytes(), "{target}");
        }
    }
}
