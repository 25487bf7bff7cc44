//! A download under way: asked for, gone on with, checked.
//!
//! It does not choose where bytes go. What must hold: bytes are appended only if the server says that they
//! follow those that are there, of the same file (RFC 9110, sections 13.1.5 and 14.4).

use std::io::{self, Write as _};
use std::path::Path;

use plimsoll_client::http::Request;
use plimsoll_wire::http::status::Status;
use sha2::{Digest as _, Sha256};

use super::super::failure::{Failure, Refusal};
use super::super::limits::{RESTARTS_MAX, WHOLE_BYTES_MAX};
use super::super::patience::Patience;
use super::super::place::Place;
use super::super::progress::Progress;
use super::super::server::Server;
use super::super::shown::end_if_nobody_reads;
use super::part::Part;
use super::{digest_of, sha256_in};

/// Where the bytes go.
enum Sink {
    Part(Box<Part>),
    StandardOutput,
}

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
    progress: &'a Progress,
    sink: Sink,
    hash: Sha256,
    /// Bytes that are there.
    at: u64,
    /// What they are of, if the server says so.
    etag: Option<String>,
    /// The digest of the whole that came with them.
    digest: Option<[u8; 32]>,
    is_small: bool,
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

/// Gets a file, of about `size` bytes, to `target`, in place of what is there.
pub(crate) async fn get_file(
    server: &mut Server,
    from: &Place,
    size: u64,
    target: &Path,
    progress: &Progress,
) -> Result<Got, Failure> {
    let mut part = Part::open(&[server.identity().as_bytes(), from.target().as_bytes()], target)?;
    let earlier = part.take_up()?;
    let mut arriving = Arriving::new(server, from, progress, Sink::Part(Box::new(part)));
    arriving.is_small = size <= WHOLE_BYTES_MAX;
    if let Some((hash, bytes, etag)) = earlier {
        (arriving.hash, arriving.at, arriving.etag) = (hash, bytes, Some(etag));
    }
    let ended = arriving.get().await;
    let (at, received) = (arriving.at, arriving.received);
    match (ended, arriving.sink) {
        (Ok(()), Sink::Part(part)) => part.finish()?,
        (Err(failure), Sink::Part(part)) => {
            if at == 0 {
                part.discard();
            }
            return Err(failure);
        }
        (ended, Sink::StandardOutput) => ended?,
    }
    Ok(Got { bytes: at, received })
}

/// Gets a file to standard output.
pub(crate) async fn get_stream(
    server: &mut Server,
    from: &Place,
    progress: &Progress,
) -> Result<Got, Failure> {
    let mut arriving = Arriving::new(server, from, progress, Sink::StandardOutput);
    arriving.get().await?;
    Ok(Got { bytes: arriving.at, received: arriving.received })
}

impl<'a> Arriving<'a> {
    fn new(server: &'a mut Server, from: &'a Place, progress: &'a Progress, sink: Sink) -> Arriving<'a> {
        Arriving {
            server,
            from,
            progress,
            sink,
            hash: Sha256::new(),
            at: 0,
            etag: None,
            digest: None,
            is_small: false,
            received: 0,
            restarts: 0,
        }
    }

    async fn get(&mut self) -> Result<(), Failure> {
        let mut patience = Patience::default();
        loop {
            let before = self.at;
            let step = match self.receive().await {
                Ok(Next::Check) => self.check().await,
                Ok(Next::Anew) => self.begin_anew().map(|()| false),
                Err(failure) => Err(failure),
            };
            if self.at > before {
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
        let target = self.from.target();
        let mut request = Request::new("GET", &target);
        match &self.etag {
            Some(etag) if self.at > 0 => {
                request =
                    request.field("Range", format!("bytes={}-", self.at)).field("If-Range", etag.as_str());
            }
            _ => self.begin()?,
        }
        if self.is_small {
            // One request instead of two; of a large file, the first byte would have to wait for the digest.
            request = request.field("Want-Repr-Digest", "sha-256=1");
        }
        let account = self.server.account();
        let Arriving { server, sink, received, progress, .. } = self;
        let mut response = server.send(request).await?;
        self.digest = response.field("Repr-Digest").and_then(|field| sha256_in(Some(field)).ok());
        match response.status() {
            Status::OK if self.at > 0 && matches!(sink, Sink::StandardOutput) => return Err(changed()),
            Status::OK => {
                (self.hash, self.at) = (Sha256::new(), 0);
                self.etag = response.field("ETag").filter(|etag| !etag.starts_with("W/")).map(str::to_owned);
                let is_long = response.length().is_none_or(|bytes| bytes > WHOLE_BYTES_MAX);
                sink.begin(self.etag.as_deref().filter(|_| is_long))?;
            }
            Status::PARTIAL_CONTENT if follows(response.field("Content-Range"), self.at) => {}
            Status::PARTIAL_CONTENT => return Ok(Next::Anew),
            // Everything may be there already: the check tells.
            Status::RANGE_NOT_SATISFIABLE if self.at > 0 => return Ok(Next::Check),
            _ => return Err(Failure::Refused(Refusal::of(response, account.as_deref()).await)),
        }
        while let Some(lease) = response.recv().await? {
            sink.write(&lease)?;
            self.hash.update(&lease[..]);
            self.at += lease.len() as u64;
            *received += lease.len() as u64;
            progress.at(self.at);
        }
        Ok(Next::Check)
    }

    /// Whether what is there is what the server has; if it is not, begins anew.
    async fn check(&mut self) -> Result<bool, Failure> {
        let ours: [u8; 32] = self.hash.clone().finalize().into();
        let theirs = match self.digest {
            Some(told) => Some(told),
            None => digest_of(self.server, self.from, self.etag.as_deref()).await?,
        };
        match theirs {
            Some(theirs) if theirs == ours => Ok(true),
            _ => self.begin_anew().map(|()| false),
        }
    }

    fn begin_anew(&mut self) -> Result<(), Failure> {
        self.restarts += 1;
        if self.restarts > RESTARTS_MAX || matches!(self.sink, Sink::StandardOutput) {
            return Err(changed());
        }
        self.begin()
    }

    fn begin(&mut self) -> Result<(), Failure> {
        (self.hash, self.at, self.etag) = (Sha256::new(), 0, None);
        self.sink.begin(None)
    }
}

impl Sink {
    /// Empties it, for a file that has this tag.
    fn begin(&mut self, etag: Option<&str>) -> Result<(), Failure> {
        match self {
            Sink::Part(part) => part.begin(etag),
            Sink::StandardOutput => Ok(()),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Sink::Part(part) => part.write(bytes),
            Sink::StandardOutput => io::stdout().lock().write_all(bytes).map_err(|error| {
                end_if_nobody_reads(&error);
                Failure::here("cannot write to standard output", &error)
            }),
        }
    }
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
