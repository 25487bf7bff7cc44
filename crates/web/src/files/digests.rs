//! Digests that a client sends with its bytes, and the digest that it requests with a file.
//!
//! Invariants: a digest that cannot be parsed is rejected, because the client wants it checked. The
//! digest of a file is computed from the same open file that is sent, and no other.

use std::time::Duration;

use plimsoll_operations::Error;
use plimsoll_proto::http::{Answer, Request};
use plimsoll_store::Algorithm;
use plimsoll_wire::http::digest::{Digests, parse_content_md5, parse_digests, sha256_digest, wants_sha256};
use plimsoll_wire::http::head::{Field, Method};

use crate::limits::DIGEST_BEFORE_BODY_BYTES_MAX;
use crate::refusal::Refusal;

/// Returns the digests of the whole file: Repr-Digest.
pub(crate) fn of_representation(request: &Request<'_>) -> Result<Vec<(Algorithm, Vec<u8>)>, Refusal> {
    listed(request, Field::ReprDigest)
}

/// Returns the digests of this request's bytes: Content-Digest, and Content-MD5 (RFC 1864), which some
/// clients still send.
pub(crate) fn of_content(request: &Request<'_>) -> Result<Vec<(Algorithm, Vec<u8>)>, Refusal> {
    let mut digests = listed(request, Field::ContentDigest)?;
    for value in request.head.all(request.block, Field::ContentMd5) {
        let md5 = parse_content_md5(value).map_err(|bad| Refusal::bad(bad.detail()))?;
        digests.push((Algorithm::Md5, md5.to_vec()));
    }
    Ok(digests)
}

fn listed(request: &Request<'_>, field: Field) -> Result<Vec<(Algorithm, Vec<u8>)>, Refusal> {
    let digests = parse_digests(request.head.all(request.block, field));
    let Digests { sha256, sha512, md5 } = digests.map_err(|bad| Refusal::bad(bad.detail()))?;
    let known = [
        sha256.map(|digest| (Algorithm::Sha256, digest.to_vec())),
        sha512.map(|digest| (Algorithm::Sha512, digest.to_vec())),
        md5.map(|digest| (Algorithm::Md5, digest.to_vec())),
    ];
    Ok(known.into_iter().flatten().collect())
}

/// Whether the request wants the digest of a file (RFC 9530, section 4).
pub(crate) fn are_wanted(request: &Request<'_>) -> bool {
    wants_sha256(request.head.all(request.block, Field::WantReprDigest))
}

/// Whether computing the digest of a file of `size` bytes would delay the requested bytes: it takes a
/// second per gigabyte or two. A wanted digest is only a preference (RFC 9530, section 4).
pub(crate) fn delay_bytes(request: &Request<'_>, size: u64) -> bool {
    request.method() == Method::Get && size > DIGEST_BEFORE_BODY_BYTES_MAX
}

/// Returns the response with the digest of its file, which requires reading all of it. If the client
/// closes its side meanwhile, the response has no digest: it is only a preference (RFC 9530, section 4).
/// After each `telling`, the client receives an interim response.
///
/// # Errors
/// As `making`.
pub(crate) async fn with(
    request: &mut Request<'_>,
    answer: Answer,
    telling: Option<Duration>,
    making: impl Future<Output = Result<Vec<u8>, Error>>,
) -> Result<Answer, Error> {
    let Some(digest) = request.body.while_connected(telling, making).await else { return Ok(answer) };
    let digest = digest?;
    Ok(match digest.as_slice().try_into() {
        Ok(digest) => answer.field("Repr-Digest", sha256_digest(digest)),
        Err(_) => answer,
    })
}
