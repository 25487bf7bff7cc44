//! Uploads a file in one PUT.
//!
//! It is not resumable: an interrupted upload starts over. Invariant: the digest precedes the bytes, so
//! that the server rejects damaged contents.

use plimsoll_client::http::{Body, Request};
use sha2::{Digest as _, Sha256};

use super::LocalFile;
use super::reading::{read_piece, repr_digest};
use super::source::FileSource;
use crate::api_client::ApiClient;
use crate::failure::Failure;
use crate::progress::FileProgress;
use crate::remote_path::RemotePath;
use crate::retry::RetryPolicy;

/// Uploads a small file from memory.
pub(super) async fn put_from_memory(
    server: &mut ApiClient,
    opened: &LocalFile<'_>,
    to: &RemotePath,
    progress: &FileProgress<'_>,
) -> Result<u64, Failure> {
    let bytes = opened.version.bytes;
    let mut contents = Vec::new();
    while (contents.len() as u64) < bytes {
        let at = contents.len() as u64;
        let piece = read_piece(&opened.file, at, bytes - at);
        contents.append(&mut piece.map_err(|error| Failure::local("cannot be read", &error))?);
    }
    opened.check_unchanged()?;
    let digest = repr_digest(Sha256::new_with_prefix(&contents));
    let (target, mut retries, mut sent) = (to.target(), RetryPolicy::default(), 0);
    loop {
        let request = put(opened, &target, &digest);
        sent += bytes;
        match server.send_and_discard(request.body(Body::Bytes(contents.clone()))).await {
            Ok(()) => break,
            Err(failure) => retries.wait_before_retry(server, failure).await?,
        }
    }
    progress.at(bytes);
    Ok(sent)
}

/// Returns the request without its body.
fn put<'a>(opened: &LocalFile<'_>, target: &'a str, digest: &str) -> Request<'a> {
    Request::new("PUT", target).field("Repr-Digest", digest).field("X-OC-Mtime", opened.version.mtime())
}

/// Uploads a large file as a stream.
pub(super) async fn put_streamed(
    server: &mut ApiClient,
    opened: &LocalFile<'_>,
    to: &RemotePath,
    progress: &FileProgress<'_>,
) -> Result<u64, Failure> {
    let bytes = opened.version.bytes;
    let digest = repr_digest(opened.digest(&server.io, Sha256::new(), 0, bytes).await?);
    opened.check_unchanged()?;
    let (target, mut retries, mut sent) = (to.target(), RetryPolicy::default(), 0);
    loop {
        let mut source = FileSource::new(&server.io, &opened.file, (0, bytes), Sha256::new(), progress);
        let body = Body::Stream { length: Some(bytes), source: &mut source };
        let result = server.send_and_discard(put(opened, &target, &digest).body(body)).await;
        sent += source.at;
        match result {
            Ok(()) => return Ok(sent),
            Err(failure) => retries.wait_before_retry(server, failure).await?,
        }
    }
}
