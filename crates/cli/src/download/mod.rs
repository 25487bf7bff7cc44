//! Downloads from the server, into a file or to standard output.
//!
//! It walks through no folders. Invariants: an interrupted download resumes only if the file is still the
//! same. A file counts as received only if its digest matches the server's.

mod part;
mod receive;
mod sink;
mod writer;

use plimsoll_client::http::Request;
use plimsoll_wire::http::digest::parse_digests;
use plimsoll_wire::http::status::Status;

use super::api_client::ApiClient;
use super::failure::{Failure, Refusal};
use super::remote_path::RemotePath;
pub(crate) use part::{Part, place_all};
pub(crate) use receive::{Transferred, fetch_part, get_stream};

/// Returns the SHA-256 of the file at a place. `None` if it is missing or no longer has the tag `etag`.
pub(super) async fn digest_of(
    server: &mut ApiClient,
    place: &RemotePath,
    etag: Option<&str>,
) -> Result<Option<[u8; 32]>, Failure> {
    let target = place.target();
    let mut request = Request::new("HEAD", &target).field("Want-Repr-Digest", "sha-256=1");
    if let Some(etag) = etag {
        request = request.field("If-Match", etag);
    }
    let account = server.account();
    let response = server.send(request).await?;
    let digest = response.field("Repr-Digest").map(str::to_owned);
    match response.status() {
        Status::OK => sha256_in(digest.as_deref()).map(Some),
        Status::PRECONDITION_FAILED | Status::NOT_FOUND => Ok(None),
        _ => Err(Failure::Refused(Refusal::of(response, account.as_deref()).await)),
    }
}

fn sha256_in(field: Option<&str>) -> Result<[u8; 32], Failure> {
    let digests = parse_digests(field.map(str::as_bytes));
    let sha256 = digests.ok().and_then(|digests| digests.sha256);
    sha256.ok_or_else(|| Failure::Unexpected("the answer has no digest to check against".to_owned()))
}
