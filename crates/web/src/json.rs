//! JSON bodies of requests and responses.
//!
//! Invariants: a body is bounded; an unknown member is an error; its bytes, which may contain a password,
//! are wiped. A page must declare that its body is
//! JSON, which a page of another site cannot do without a CORS preflight.

use std::ops::Deref;

use plimsoll_proto::http::{Answer, Body, BodyError, Request};
use plimsoll_wire::http::head::Field;
use plimsoll_wire::http::media_type::is_media_type;
use plimsoll_wire::http::status::Status;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::limits::{JSON_BYTES_MAX, STRANGERS_JSON_BYTES_MAX};
use crate::refusal::Refusal;

/// Reads the body of a request that has been authenticated.
pub(crate) async fn read<T: DeserializeOwned>(request: &mut Request<'_>) -> Result<T, Refusal> {
    let too_long = "The body is longer than 64 KiB. Send less.";
    read_within(request, JSON_BYTES_MAX, too_long).await
}

/// Reads the body of an unauthenticated request: a log-in or a sign-up.
pub(crate) async fn read_of_stranger<T: DeserializeOwned>(request: &mut Request<'_>) -> Result<T, Refusal> {
    let too_long = "The body is longer than 4 KiB. Send a name and a password, and nothing else.";
    read_within(request, STRANGERS_JSON_BYTES_MAX, too_long).await
}

/// As [`read`], of a body of at most `max` bytes.
pub(crate) async fn read_within<T: DeserializeOwned>(
    request: &mut Request<'_>,
    max: usize,
    too_long: &'static str,
) -> Result<T, Refusal> {
    let is_json = is_media_type(request.field(Field::ContentType).unwrap_or_default(), "application/json");
    if is_of_a_page(request) && !is_json {
        return Err(Refusal::new(
            Status::UNSUPPORTED_MEDIA_TYPE,
            "A page must say that its body is JSON. Send it with Content-Type: application/json.",
        ));
    }
    let bytes = body_within(request, max, too_long).await?;
    // Otherwise serde would accept an array with the members in order.
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(Refusal::bad(
            "The body must be a JSON object. Send it in braces, each member by its name.",
        ));
    }
    serde_json::from_slice(&bytes)
        .map_err(|error| Refusal::bad(format!("The body is not what is expected here: {error}.")))
}

/// Reads a body of at most `max` bytes.
pub(crate) async fn body_within(
    request: &mut Request<'_>,
    max: usize,
    too_long: &'static str,
) -> Result<impl Deref<Target = Vec<u8>>, Refusal> {
    request.body.bytes(max).await.map_err(|error| match error {
        BodyError::TooLong => Refusal::new(Status::CONTENT_TOO_LARGE, too_long),
        error => error.into(),
    })
}

/// Whether a browser sends the request for a page. Browsers add Origin or Sec-Fetch-Site to every
/// request but a plain GET or HEAD, and a page cannot prevent that. Other clients, such as curl with
/// `-d`, may declare any type.
fn is_of_a_page(request: &Request<'_>) -> bool {
    [Field::Origin, Field::SecFetchSite].into_iter().any(|field| request.field(field).is_some())
}

/// Returns a JSON response. It is for one account alone, so it is never cached.
pub(crate) fn answer(status: Status, value: &impl Serialize) -> Answer {
    // Strings and numbers in memory: serialising them cannot fail.
    let body = serde_json::to_vec(value).unwrap_or_default();
    let answer = Answer::new(status).field("Content-Type", "application/json");
    answer
        .field("Cache-Control", "no-store")
        .field("X-Content-Type-Options", "nosniff")
        .body(Body::Bytes(body))
}
