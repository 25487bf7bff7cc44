//! Digests: those that a client sent with its bytes, and the one that it wants with a file.
//!
//! What must hold: a digest that cannot be read is refused, since who sent it wants it checked; the digest of
//! a file is of the very file that is sent.

use std::time::Duration;

use plimsoll_operations::Error;
use plimsoll_proto::http::{Answer, Request};
use plimsoll_store::Algorithm;
use plimsoll_wire::http::digest::{Digests, parse_content_md5, parse_digests, sha256_digest, wants_sha256};
use plimsoll_wire::http::head::{Field, Method};

use crate::limits::DIGEST_BEFORE_BODY_BYTES_MAX;
use crate::refusal::Refusal;

/// Digests of the whole file: Repr-Digest.
pub(crate) fn of_representation(request: &Request<'_>) -> Result<Vec<(Algorithm, Vec<u8>)>, Refusal> {
    listed(request, Field::ReprDigest)
}

/// Digests of this request's bytes: Content-Digest, and Content-MD5 (RFC 1864), which is still sent.
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

/// Whether the request wants a file's digest (RFC 9530, section 4).
pub(crate) fn are_wanted(request: &Request<'_>) -> bool {
    wants_sha256(request.head.all(request.block, Field::WantReprDigest))
}

/// Whether computing the digest of a file of `size` bytes would delay the bytes that the request wants: it
/// takes a second for each gigabyte or two. RFC 9530, section 4: what is wanted is a preference.
pub(crate) fn delay_bytes(request: &Request<'_>, size: u64) -> bool {
    request.method() == Method::Get && size > DIGEST_BEFORE_BODY_BYTES_MAX
}

/// The answer with the digest of its file, which takes as long as reading all of it. Without, if the client
/// ends its side meanwhile: it is gone, or has said all that it will, and then goes without what it only
/// prefers (RFC 9530, section 4). The client is told after each `telling` that it is being made.
///
/// # Errors
/// As `making`.
pub(crate) async fn with(
    request: &mut Request<'_>,
    answer: Answer,
    telling: Option<Duration>,
    making: impl Future<Output = Result<Vec<u8>, Error>>,
) -> Result<Answer, Error> {
    let Some(digest) = request.body.unless_gone(telling, making).await else { return Ok(answer) };
    let digest = digest?;
    Ok(match digest.as_slice().try_into() {
        Ok(digest) => answer.field("Repr-Digest", sha256_digest(digest)),
        Err(_) => answer,
    })
}
