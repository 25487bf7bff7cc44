//! CORS: pages of other origins that may read responses, as the operator names them (Fetch, section 3.2).
//!
//! It grants no rights: a page presents credentials as any client does. The browser adds stored ones to forms
//! only, because no response permits it for other requests.
//! Invariant: every response that depends on the origin says so by Vary, refusals too.

use plimsoll_wire::http::head::{Field, Head, Method};
use plimsoll_wire::http::origin::is_name_list;
use plimsoll_wire::http::status::Status;

use super::answer::Answer;
use super::limits::PREFLIGHT_SECONDS;
use super::request::Request;

/// The methods of all resources.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, MKCOL, MOVE, COPY, PROPFIND, PROPPATCH, OPTIONS";

/// The fields of responses that a page may read, besides those that it always may.
const EXPOSED: &str = "Accept-Ranges, Allow, Content-Length, Content-Range, ETag, Location, \
     Repr-Digest, Retry-After, Tus-Checksum-Algorithm, Tus-Extension, Tus-Max-Size, Tus-Resumable, \
     Tus-Version, Upload-Concat, Upload-Defer-Length, Upload-Expires, Upload-Length, \
     Upload-Metadata, Upload-Offset, X-OC-Mtime";

/// The origins whose pages may read responses.
#[derive(Clone, Debug, Default)]
pub struct Cors {
    origins: Vec<String>,
}

impl Cors {
    /// Creates the rule for origins in the form that browsers send.
    pub fn new(origins: Vec<String>) -> Cors {
        Cors { origins }
    }

    /// Returns the origin of the page that sends a request, if it is one of these.
    pub(super) fn allowed<'a>(&self, head: &Head, block: &'a [u8]) -> Option<&'a [u8]> {
        let origin = head.field(block, Field::Origin)?;
        let is_named = self.origins.iter().any(|named| named.as_bytes() == origin);
        (is_named && !head.repeated(Field::Origin)).then_some(origin)
    }

    /// Adds the fields by which a browser lets the page read the response.
    pub(super) fn mark(&self, head: &Head, block: &[u8], answer: Answer) -> Answer {
        if self.origins.is_empty() {
            return answer;
        }
        let answer = answer.field("Vary", "Origin");
        match self.allowed(head, block) {
            Some(origin) => answer
                .field("Access-Control-Allow-Origin", origin)
                .field("Access-Control-Expose-Headers", EXPOSED),
            None => answer,
        }
    }

    /// Answers a preflight request of a page of these origins; `None` for any other request. It has no
    /// credentials, and asks about a request to come, which is then checked as any other.
    pub(super) fn preflight(&self, request: &Request<'_>) -> Option<Answer> {
        let named = |name| request.head.named(request.block, name);
        let is_preflight =
            request.method() == Method::Options && named("Access-Control-Request-Method").is_some();
        if !is_preflight || self.allowed(request.head, request.block).is_none() {
            return None;
        }
        let answer = Answer::new(Status::NO_CONTENT)
            .field("Access-Control-Allow-Methods", METHODS)
            .field_display("Access-Control-Max-Age", PREFLIGHT_SECONDS);
        Some(match named("Access-Control-Request-Headers").filter(|names| is_name_list(names)) {
            Some(names) => answer.field("Access-Control-Allow-Headers", names),
            None => answer,
        })
    }
}
