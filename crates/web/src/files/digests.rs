//! Digests that a client sends with its bytes, and the digest that it requests with a file.
//!
//! Invariants: a digest that cannot be parsed is rejected, because the client wants it checked. The
//! digest of a file is computed from the same open file that is sent, and no other.

use std::time::Duration;

use plimsoll_content::{Found, Lookup, Visibility};
use plimsoll_io::{Io, Stat};
use plimsoll_proto::http::{Answer, Request, site};
use plimsoll_store::{Algorithm, Error as StoreError, Location};
use plimsoll_wire::http::digest::{Digests, parse_content_md5, parse_digests, sha256_digest, wants_sha256};
use plimsoll_wire::http::head::{Field, Method};
use plimsoll_wire::http::status::Status;

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

/// Returns the response for a file and the file's metadata; `None` for a folder. The response has the
/// digest if that is known, or if computing it does not delay the bytes. A download of a large file does
/// not wait for its digest: a client can request that by a concurrent HEAD. If the client closes its side
/// meanwhile, the response has no digest: it is only a preference (RFC 9530, section 4). After each
/// `interim`, the client receives an interim response.
///
/// # Errors
/// As [`Lookup::run`], and [`Location::digest`].
pub(crate) async fn send_with_digest(
    request: &mut Request<'_>,
    io: &Io,
    location: Location,
    interim: Option<Duration>,
) -> Result<Option<(Answer, Stat)>, StoreError> {
    // To compute a digest, the file must be open.
    let location = location.uncached();
    let lookup = site::lookup(request, io, &location, Visibility::Private);
    let with_digest = Lookup { wants_digest: true, ..lookup };
    let found = match request.body.while_connected(interim, with_digest.run()).await {
        Some(found) => found?,
        None => site::lookup(request, io, &location, Visibility::Private).run().await?,
    };
    let Found::File(found) = found else { return Ok(None) };
    let (file, stat) = (found.file().cloned(), found.stat);
    let known = found.sha256().or_else(|| location.known_sha256(&stat));
    let answer = site::send(request, found);
    if !matches!(answer.status(), Status::OK | Status::PARTIAL_CONTENT) {
        return Ok(Some((answer, stat)));
    }
    let sha256 = match file.filter(|_| known.is_none() && !delays_bytes(request, stat.size)) {
        Some(file) => {
            let computing = Box::pin(location.sha256_of(io, file, &stat));
            request.body.while_connected(interim, computing).await.transpose()?
        }
        None => known,
    };
    let answer = match sha256 {
        Some(sha256) => answer.field("Repr-Digest", sha256_digest(&sha256)),
        None => answer,
    };
    Ok(Some((answer, stat)))
}

/// Whether computing the digest of a file of `size` bytes would delay the requested bytes: it takes a
/// second per gigabyte or two.
fn delays_bytes(request: &Request<'_>, size: u64) -> bool {
    request.method() == Method::Get && size > DIGEST_BEFORE_BODY_BYTES_MAX
}
