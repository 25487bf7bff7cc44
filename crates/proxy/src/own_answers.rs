//! The proxy's own responses: refusals of requests, and failures of origins, as problem+json (RFC 9457).
//!
//! It does not decide when to send them. Invariant: the detail says what was wrong or what to do, and nothing
//! about the origin's address.

use plimsoll_io::{Segment, Tx};
use plimsoll_proto::http::limits::RETRY_AFTER_SECONDS;
use plimsoll_proto::http::{Dates, Refused};
use plimsoll_wire::http::answer::AnswerHead;
use plimsoll_wire::http::head::{Method, Version};
use plimsoll_wire::http::status::Status;

/// A response of the proxy itself.
#[derive(Debug)]
pub(crate) struct OwnAnswer {
    status: Status,
    /// Empty for a response without a body.
    detail: &'static str,
    field: Option<(&'static str, &'static str)>,
    /// Whether the start of the client's next request is unknown.
    ends_connection: bool,
}

/// The properties of the request and its connection that determine a response's form.
pub(crate) struct AnswerForm {
    pub(crate) method: Method,
    pub(crate) version: Version,
    /// Whether the client may send another request.
    pub(crate) keep: bool,
}

/// Returns a refusal of a request that may succeed a moment later.
pub(crate) fn try_again(detail: &'static str) -> OwnAnswer {
    const { assert!(RETRY_AFTER_SECONDS == 2, "the text below") };
    OwnAnswer::new(Status::SERVICE_UNAVAILABLE, detail).field("Retry-After", "2")
}

impl From<Refused> for OwnAnswer {
    fn from(refused: Refused) -> OwnAnswer {
        match refused.is_temporary {
            true => try_again(refused.detail),
            false => OwnAnswer::new(refused.status, refused.detail),
        }
    }
}

impl OwnAnswer {
    pub(crate) fn new(status: Status, detail: &'static str) -> OwnAnswer {
        OwnAnswer { status, detail, field: None, ends_connection: false }
    }

    /// Creates a response without a body.
    pub(crate) fn empty(status: Status) -> OwnAnswer {
        OwnAnswer::new(status, "")
    }

    /// Adds a field.
    pub(crate) fn field(mut self, name: &'static str, value: &'static str) -> OwnAnswer {
        self.field = Some((name, value));
        self
    }

    /// Makes the response the last of its connection, because the start of the client's next request is
    /// unknown.
    pub(crate) fn ending_connection(mut self) -> OwnAnswer {
        self.ends_connection = true;
        self
    }

    pub(crate) fn ends_connection(&self) -> bool {
        self.ends_connection
    }

    pub(crate) fn status(&self) -> Status {
        self.status
    }

    /// Pushes the response, and returns the number of bytes of its body.
    pub(crate) fn push(&self, form: &AnswerForm, dates: &Dates, tx: &mut Tx) -> u64 {
        let body = self.body();
        let mut bytes = Vec::with_capacity(512);
        let mut head = AnswerHead::begin(&mut bytes, self.status).date(&dates.http);
        if let Some((name, value)) = self.field {
            head = head.field(name, value);
        }
        if !body.is_empty() {
            head = head.field("Content-Type", "application/problem+json").content_length(body.len() as u64);
        } else if !self.status.is_bodiless() {
            head = head.content_length(0);
        }
        head.keep_alive(form.keep, form.version).finish();
        let sends_body = form.method != Method::Head;
        if sends_body {
            bytes.extend_from_slice(&body);
        }
        tx.push(Segment::Owned(bytes));
        if sends_body { body.len() as u64 } else { 0 }
    }

    fn body(&self) -> Vec<u8> {
        if self.detail.is_empty() {
            return Vec::new();
        }
        let problem = serde_json::json!({
            "title": self.status.reason(),
            "status": self.status.code(),
            "detail": self.detail,
        });
        problem.to_string().into_bytes()
    }
}
