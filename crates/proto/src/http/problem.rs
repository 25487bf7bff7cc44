//! Errors as programs read them: application/problem+json (RFC 9457).
//!
//! It is not what the log says of them. What must hold: the detail says what was wrong or what to do, and
//! nothing about the machine.

use plimsoll_wire::http::status::Status;
use serde::Serialize;

use super::answer::{Answer, Body};

#[derive(Serialize)]
struct Problem<'a> {
    title: &'a str,
    status: u16,
    detail: &'a str,
}

/// An answer that tells an error.
pub fn problem(status: Status, detail: &str) -> Answer {
    let problem = Problem { title: status.reason(), status: status.code(), detail };
    // Three plain values: there is nothing in them that could not be written.
    let body = serde_json::to_vec(&problem).unwrap_or_default();
    Answer::new(status).field("Content-Type", "application/problem+json").body(Body::Bytes(body))
}
