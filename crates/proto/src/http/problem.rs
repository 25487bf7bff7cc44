//! Error responses for programs: application/problem+json (RFC 9457).
//!
//! The log has its own messages. Invariant: the detail says what was wrong or what to do, and nothing about
//! the machine.

use plimsoll_wire::http::problem_code::ProblemCode;
use plimsoll_wire::http::status::Status;
use serde::Serialize;

use super::answer::{Answer, Body};

#[derive(Serialize)]
struct Problem<'a> {
    title: &'a str,
    status: u16,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
}

/// Returns an error response.
pub fn problem(status: Status, detail: &str) -> Answer {
    coded_problem(status, detail, None)
}

/// As [`problem`], with a code for programs.
pub(super) fn coded_problem(status: Status, detail: &str, code: Option<ProblemCode>) -> Answer {
    let code = code.map(ProblemCode::as_str);
    let problem = Problem { title: status.reason(), status: status.code(), detail, code };
    // Strings and a number always serialise.
    let body = serde_json::to_vec(&problem).unwrap_or_default();
    Answer::new(status).field("Content-Type", "application/problem+json").body(Body::Bytes(body))
}
