//! A download under way: asked for, gone on with, checked.
//!
//! It does not choose where bytes go. What must hold: bytes are appended only if the server says that they
//! follow those that are there, of the same file (RFC 9110, sections 13.1.5 and 14.4).

use std::path::Path;
use std::pin::pin;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plimsoll_client::http::{Request, Response};
use plimsoll_io::{Either, Work, select};
use plimsoll_wire::http::date::parse_date;
use plimsoll_wire::http::status::Status;
use sha2::{Digest as _, Sha256};

use super::super::failure::{Failure, Refusal};
use super::super::limits::{RESTARTS_MAX, WHOLE_BYTES_MAX};
use super::super::patience::Patience;
use super::super::place::Place;
use super::super::progress::FileProgress;
use super::super::server::Server;
use super::landing::Landing;
use super::part::Part;
use super::sink::Sink;
use super::{digest_of, sha256_in};

/// What came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Got {
    /// The length of the file.
    pub(crate) bytes: u64,
    /// How many bytes came this time.
    pub(crate) received: u64,
}

struct Arriving<'a> {
    server: &'a mut Server,
    from: &'a Place,
    progress: &'a FileProgress<'a>,
    landing: Landing,
    /// What the bytes are of, if the server says so.
    etag: Option<String>,
    /// The time of modification, if the server says so.
    modified: Option<SystemTime>,
    /// The digest of the whole, if the server has said it.
    digest: Option<[u8; 32]>,
    received: u64,
    restarts: u32,
}

/// What an answer leads to.
enum Next {
    /// Its body has come, and there is nothing more.
    Check,
    /// What is there is of no use.
    Anew,
}

/// Gets a file into its part, which is to be put in place of what is at `target`. It gets the time of
/// modification `modified`; else the one that the answer says.
pub(crate) async fn fetch_part(
    server: &mut Server,
    from: &Place,
    target: &Path,
    modified: Option<Duration>,
    progress: &FileProgress<'_>,
) -> Result<(Got, Part), Failure> {
    // Elsewhere: with many small files, the disk is waited for while others are received.
    let (identity, path, target) = (server.identity(), from.target(), target.to_owned());
    let opening = server.io.offload(Work::Files, move |_| {
        let mut part = Part::open(&[identity.as_bytes(), path.as_bytes()], &target)?;
        Ok((part.take_up()?, part))
    });
    let opened: Result<_, Failure> =
        opening.await.map_err(|error| Failure::here("cannot be written", &error.into()))?;
    let (earlier, part) = opened?;
    let (before, etag) = match earlier {
        Some((hash, bytes, etag)) => ((hash, bytes), Some(etag)),
        None => ((Sha256::new(), 0), None),
    };
    let landing = Landing::new(&server.io, Sink::Part(Box::new(part)), before);
    let mut arriving = Arriving::new(server, from, progress, landing);
    arriving.etag = etag;
    let ended = arriving.get().await;
    let got = Got { bytes: arriving.landing.bytes(), received: arriving.received };
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

/// Gets a file to standard output.
pub(crate) async fn get_stream(
    server: &mut Server,
    from: &Place,
    progress: &FileProgress<'_>,
) -> Result<Got, Failure> {
    let landing = Landing::new(&server.io, Sink::StandardOutput, (Sha256::new(), 0));
    let mut arriving = Arriving::new(server, from, progress, landing);
    arriving.get().await?;
    Ok(Got { bytes: arriving.landing.bytes(), received: arriving.received })
}

impl<'a> Arriving<'a> {
    fn new(
        server: &'a mut Server,
        from: &'a Place,
        progress: &'a FileProgress<'a>,
        landing: Landing,
    ) -> Arriving<'a> {
        let (etag, modified, digest) = (None, None, None);
        Arriving { server, from, progress, landing, etag, modified, digest, received: 0, restarts: 0 }
    }

    async fn get(&mut self) -> Result<(), Failure> {
        let mut patience = Patience::default();
        loop {
            let before = self.landing.bytes();
            let received = self.receive().await;
            // Also after a failure: what came is not fetched again.
            let settled = self.landing.settle().await;
            let step = match settled.and(received) {
                Ok(Next::Check) => self.check().await,
                Ok(Next::Anew) => self.begin_anew().map(|()| false),
                Err(failure) => Err(failure),
            };
            if self.landing.bytes() > before {
                patience.renew();
            }
            match step {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(failure) => patience.bear(self.server, failure).await?,
            }
        }
    }

    /// Asks for what is not there yet, and takes it.
    async fn receive(&mut self) -> Result<Next, Failure> {
        let (target, at) = (self.from.target(), self.landing.bytes());
        // Of a large file, the server says the digest here only if it knows it.
        let mut request = Request::new("GET", &target).field("Want-Repr-Digest", "sha-256=1");
        match &self.etag {
            Some(etag) if at > 0 => {
                request = request.field("Range", format!("bytes={at}-")).field("If-Range", etag.as_str());
            }
            _ => self.begin()?,
        }
        let account = self.server.account();
        let mut second = self.server.another();
        let Arriving { server, landing, received, progress, .. } = self;
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
            Status::PARTIAL_CONTENT => return Ok(Next::Anew),
            // Everything may be there already: the check tells.
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
        // Meanwhile, the server computes the digest.
        let asking = pin!(digest_of(&mut second, self.from, self.etag.as_deref()));
        self.digest = receive_while_asking(receiving, asking).await?;
        Ok(Next::Check)
    }

    /// Whether what is there is what the server has; if it is not, begins anew.
    async fn check(&mut self) -> Result<bool, Failure> {
        let theirs = match self.digest {
            Some(told) => Some(told),
            None => digest_of(self.server, self.from, self.etag.as_deref()).await?,
        };
        match (theirs, self.landing.sha256()) {
            (Some(theirs), Some(ours)) if theirs == ours => Ok(true),
            _ => self.begin_anew().map(|()| false),
        }
    }

    fn begin_anew(&mut self) -> Result<(), Failure> {
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

/// Takes the body of an answer, of which the first byte is at the offset `at` of the file.
async fn take_all(
    response: &mut Response<'_>,
    landing: &mut Landing,
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

/// Receives a body while the digest is asked for. Returns the digest; none if there was no answer to that.
async fn receive_while_asking(
    mut receiving: impl Future<Output = Result<(), Failure>> + Unpin,
    mut asking: impl Future<Output = Result<Option<[u8; 32]>, Failure>> + Unpin,
) -> Result<Option<[u8; 32]>, Failure> {
    let asked = match select(&mut receiving, &mut asking).await {
        Either::Left(received) => {
            received?;
            asking.await
        }
        Either::Right(asked) => {
            receiving.await?;
            asked
        }
    };
    // It is asked for again, with patience.
    Ok(asked.ok().flatten())
}

fn changed() -> Failure {
    Failure::Here("The file was changed on the server while it came. Get it again.".to_owned())
}

/// Whether a Content-Range begins at `at`: `bytes 5-9/10`.
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
