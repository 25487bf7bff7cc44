//! A download in progress: requested, resumed and checked.
//!
//! It does not choose the destination. Invariant: bytes are appended only if the server says that they
//! follow those already received. They must be of the same file (RFC 9110, sections 13.1.5 and 14.4).

use std::path::Path;
use std::pin::pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_client::http::{Request, Response};
use plimsoll_io::{Either, Work, select};
use plimsoll_wire::http::date::parse_date;
use plimsoll_wire::http::status::Status;
use sha2::{Digest as _, Sha256};

use super::part::Part;
use super::sink::Sink;
use super::writer::DownloadWriter;
use super::{digest_of, sha256_in};
use crate::api_client::ApiClient;
use crate::failure::{Failure, Refusal};
use crate::limits::{RESTARTS_MAX, WHOLE_BYTES_MAX};
use crate::progress::FileProgress;
use crate::remote_path::RemotePath;
use crate::retry::RetryPolicy;

/// The result of a download.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transferred {
    /// The length of the file.
    pub(crate) bytes: u64,
    /// The bytes received by this command, without those of an earlier one.
    pub(crate) received: u64,
}

struct Download<'a> {
    server: &'a mut ApiClient,
    from: &'a RemotePath,
    progress: &'a FileProgress<'a>,
    landing: DownloadWriter,
    /// The entity tag of the received bytes, if the server sent one.
    etag: Option<String>,
    /// The time of modification, if the server sent one.
    modified: Option<SystemTime>,
    /// The SHA-256 digest of the whole file, if the server sent it.
    digest: Option<[u8; 32]>,
    received: u64,
    restarts: u32,
}

/// The next step after a response.
enum Next {
    /// The body is complete; check its digest.
    Check,
    /// The bytes received so far are useless; start over.
    Restart,
}

/// Downloads a file into a part file, which will replace the file at `target`. Its time of modification is
/// `modified`, else the one of the response.
pub(crate) async fn fetch_part(
    server: &mut ApiClient,
    from: &RemotePath,
    target: &Path,
    modified: Option<Duration>,
    progress: &FileProgress<'_>,
) -> Result<(Transferred, Part), Failure> {
    // Offloaded, because opening may wait for the disk: other connections receive small files meanwhile.
    let (identity, path, target) = (server.identity(), from.target(), target.to_owned());
    let opening = server.io.offload(Work::Files, move |_| {
        let mut part = Part::open(&[identity.as_bytes(), path.as_bytes()], &target)?;
        Ok((part.take_up()?, part))
    });
    let opened: Result<_, Failure> =
        opening.await.map_err(|error| Failure::local("cannot be written", &error.into()))?;
    let (earlier, part) = opened?;
    let (before, etag) = match earlier {
        Some((hash, bytes, etag)) => ((hash, bytes), Some(etag)),
        None => ((Sha256::new(), 0), None),
    };
    let landing = DownloadWriter::new(&server.io, Sink::Part(Box::new(part)), before);
    let mut arriving = Download::new(server, from, progress, landing);
    arriving.etag = etag;
    let ended = arriving.get().await;
    let got = Transferred { bytes: arriving.landing.bytes(), received: arriving.received };
    let modified = modified.map(|modified| UNIX_EPOCH + modified).or(arriving.modified);
    let part = arriving.landing.into_part(modified);
    match (ended, part) {
        (Ok(()), Some(part)) => Ok((got, part)),
        (Err(failure), part) => {
            if got.bytes == 0 {
                part.into_iter().for_each(Part::discard);
            }
            Err(failure)
        }
        (Ok(()), None) => Err(changed()),
    }
}

/// Downloads a file to standard output.
pub(crate) async fn get_stream(
    server: &mut ApiClient,
    from: &RemotePath,
    progress: &FileProgress<'_>,
) -> Result<Transferred, Failure> {
    let landing = DownloadWriter::new(&server.io, Sink::StandardOutput, (Sha256::new(), 0));
    let mut arriving = Download::new(server, from, progress, landing);
    arriving.get().await?;
    Ok(Transferred { bytes: arriving.landing.bytes(), received: arriving.received })
}

impl<'a> Download<'a> {
    fn new(
        server: &'a mut ApiClient,
        from: &'a RemotePath,
        progress: &'a FileProgress<'a>,
        landing: DownloadWriter,
    ) -> Download<'a> {
        let (etag, modified, digest) = (None, None, None);
        Download { server, from, progress, landing, etag, modified, digest, received: 0, restarts: 0 }
    }

    async fn get(&mut self) -> Result<(), Failure> {
        let mut retries = RetryPolicy::default();
        loop {
            let before = self.landing.bytes();
            let received = self.receive().await;
            // Also after a failure, so that received bytes need not be downloaded again.
            let settled = self.landing.flush().await;
            let step = match settled.and(received) {
                Ok(Next::Check) => self.check().await,
                Ok(Next::Restart) => self.restart().map(|()| false),
                Err(failure) => Err(failure),
            };
            if self.landing.bytes() > before {
                retries.reset();
            }
            match step {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(failure) => retries.wait_before_retry(self.server, failure).await?,
            }
        }
    }

    /// Requests the missing bytes and receives them.
    async fn receive(&mut self) -> Result<Next, Failure> {
        let (target, at) = (self.from.target(), self.landing.bytes());
        // The server includes the digest of a large file only if it has computed it before.
        let mut request = Request::new("GET", &target).field("Want-Repr-Digest", "sha-256=1");
        match &self.etag {
            Some(etag) if at > 0 => {
                request = request.field("Range", format!("bytes={at}-")).field("If-Range", etag.as_str());
            }
            _ => self.begin()?,
        }
        let account = self.server.account();
        let mut second = self.server.new_connection();
        let Download { server, landing, received, progress, .. } = self;
        let mut response = server.send(request).await?;
        let mut at = at;
        match response.status() {
            Status::OK if at > 0 && landing.is_stream() => return Err(changed()),
            Status::OK => {
                self.etag = response.field("ETag").filter(|etag| !etag.starts_with("W/")).map(str::to_owned);
                let is_long = response.length().is_none_or(|bytes| bytes > WHOLE_BYTES_MAX);
                landing.begin(self.etag.as_deref().filter(|_| is_long))?;
                at = 0;
            }
            Status::PARTIAL_CONTENT if follows(response.field("Content-Range"), at) => {}
            Status::PARTIAL_CONTENT => return Ok(Next::Restart),
            // The file may be complete already; the check finds out.
            Status::RANGE_NOT_SATISFIABLE if at > 0 => return Ok(Next::Check),
            _ => return Err(Failure::Refused(Refusal::of(response, account.as_deref()).await)),
        }
        self.digest = response.field("Repr-Digest").and_then(|field| sha256_in(Some(field)).ok());
        self.modified = response.field("Last-Modified").and_then(|date| parse_date(date.as_bytes()));
        let receiving = pin!(take_all(&mut response, landing, at, received, progress));
        if self.digest.is_some() {
            receiving.await?;
            return Ok(Next::Check);
        }
        // The server computes the digest while the body is received.
        let digest_request = pin!(digest_of(&mut second, self.from, self.etag.as_deref()));
        self.digest = receive_while_asking(receiving, digest_request).await?;
        Ok(Next::Check)
    }

    /// Returns whether the received file matches the server's digest; starts over if it does not.
    async fn check(&mut self) -> Result<bool, Failure> {
        let theirs = match self.digest {
            Some(digest) => Some(digest),
            None => digest_of(self.server, self.from, self.etag.as_deref()).await?,
        };
        match (theirs, self.landing.sha256()) {
            (Some(theirs), Some(ours)) if theirs == ours => Ok(true),
            _ => self.restart().map(|()| false),
        }
    }

    fn restart(&mut self) -> Result<(), Failure> {
        self.restarts += 1;
        if self.restarts > RESTARTS_MAX || self.landing.is_stream() {
            return Err(changed());
        }
        self.begin()
    }

    fn begin(&mut self) -> Result<(), Failure> {
        (self.etag, self.digest) = (None, None);
        self.landing.begin(None)
    }
}

/// Receives the body of a response. Its first byte has the offset `at` in the file.
async fn take_all(
    response: &mut Response<'_>,
    landing: &mut DownloadWriter,
    mut at: u64,
    received: &mut u64,
    progress: &FileProgress<'_>,
) -> Result<(), Failure> {
    loop {
        let come = select(pin!(landing.keep_writing()), pin!(response.recv())).await;
        let lease = match come {
            Either::Left(failure) => return Err(failure),
            Either::Right(received) => received?,
        };
        let Some(lease) = lease else { return Ok(()) };
        at += lease.len() as u64;
        *received += lease.len() as u64;
        landing.push(lease.detach()).await?;
        progress.at(at);
    }
}

/// Receives a body while the digest is requested. Returns the digest, or `None` if that request failed.
async fn receive_while_asking(
    mut receiving: impl Future<Output = Result<(), Failure>> + Unpin,
    mut digest_request: impl Future<Output = Result<Option<[u8; 32]>, Failure>> + Unpin,
) -> Result<Option<[u8; 32]>, Failure> {
    let asked = match select(&mut receiving, &mut digest_request).await {
        Either::Left(received) => {
            received?;
            digest_request.await
        }
        Either::Right(asked) => {
            receiving.await?;
            asked
        }
    };
    // [`Download::check`] repeats a failed request, with backoff.
    Ok(asked.ok().flatten())
}

fn changed() -> Failure {
    Failure::Local("The file was changed on the server while it came. Get it again.".to_owned())
}

/// Returns whether a Content-Range field, such as `bytes 5-9/10`, begins at `at`.
fn follows(content_range: Option<&str>, at: u64) -> bool {
    let range = content_range.and_then(|range| range.strip_prefix("bytes "));
    let first = range.and_then(|range| range.split_once('-')).map(|(first, _)| first.trim().parse::<u64>());
    first == Some(Ok(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_follow_only_where_the_server_says_so() {
        assert!(follows(Some("bytes 5-9/10"), 5));
        for other in
            [None, Some("bytes 0-9/10"), Some("bytes */10"), Some("5-9/10"), Some("bytes 5"), Some("")]
        {
            assert!(!follows(other, 5), "{other:?}");
        }
    }
}
