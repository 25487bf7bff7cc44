//! JSON bodies, of requests and of answers.
//!
//! What must hold: a body is bounded, and has no member that nobody looks at; one that a page sends says that
//! it is JSON, which no page of another site can without being asked for leave; its bytes, which may have a
//! password among them, are wiped.

use plimsoll_proto::http::{Answer, Body, Request};
use plimsoll_wire::http::head::Field;
use plimsoll_wire::http::status::Status;
use serde::Serialize;
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use crate::limits::JSON_BYTES_MAX;
use crate::refusal::Refusal;

/// Reads a request's body.
pub(crate) async fn read<T: DeserializeOwned>(request: &mut Request<'_>) -> Result<T, Refusal> {
    if is_of_a_page(request) && !is_json(request.field(Field::ContentType).unwrap_or_default()) {
        return Err(Refusal::new(
            Status::UNSUPPORTED_MEDIA_TYPE,
            "A page must say that its body is JSON. Send it with Content-Type: application/json.",
        ));
    }
    // Once as large as it may be, so that no copy of a password stays where it grew from.
    let mut bytes = Zeroizing::new(Vec::with_capacity(JSON_BYTES_MAX));
    while let Some(lease) = request.body.recv().await? {
        if bytes.len() + lease.len() > JSON_BYTES_MAX {
            return Err(Refusal::new(
                Status::CONTENT_TOO_LARGE,
                "The body is longer than 64 KiB. Send less.",
            ));
        }
        bytes.extend_from_slice(&lease);
    }
    // Else a list would do, with the members in their order.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(Refusal::bad(
            "The body must be a JSON object. Send it in braces, each member by its name.",
        ));
    }
    serde_json::from_slice(&bytes)
        .map_err(|error| Refusal::bad(format!("The body is not what is expected here: {error}.")))
}

/// Whether a browser sends it for a page: such a one tells where the page is from with whatever is not a
/// plain GET or HEAD, and no page can keep it from that. What else there is, as curl with `-d`, names its
/// bodies as it likes.
fn is_of_a_page(request: &Request<'_>) -> bool {
    [Field::Origin, Field::SecFetchSite].into_iter().any(|field| request.field(field).is_some())
}

/// `application/json`, whatever parameters it has.
fn is_json(value: &[u8]) -> bool {
    let media = value.split(|byte| *byte == b';').next().unwrap_or_default();
    media.trim_ascii().eq_ignore_ascii_case(b"application/json")
}

/// An answer in JSON. It is for one account alone: nobody keeps it.
pub(crate) fn answer(status: Status, value: &impl Serialize) -> Answer {
    // Strings and numbers into memory: there is nothing here that could fail.
    let body = serde_json::to_vec(value).unwrap_or_default();
    let answer = Answer::new(status).field("Content-Type", "application/json");
    answer
        .field("Cache-Control", "no-store")
        .field("X-Content-Type-Options", "nosniff")
        .body(Body::Bytes(body))
}
