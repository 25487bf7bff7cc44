//! Bytes of a download on their way into a file: written by one thread and hashed by another while more come.
//!
//! It sends no request. Invariants: bytes are written in the order of their arrival, and none after a
//! failed write; the digest is that of the written bytes; the batch in memory is bounded.

use std::sync::Arc;
use std::time::SystemTime;

use plimsoll_io::oneshot::{Receiver, oneshot};
use plimsoll_io::{Detached, Io, Work};
use sha2::{Digest as _, Sha256};

use super::super::failure::Failure;
use super::super::limits::{BATCH_BYTES_MAX, BATCH_BYTES_MIN};
use super::part::Part;
use super::sink::Sink;

/// The bytes that were written, and where.
struct Written {
    sink: Sink,
    bytes: u64,
}

/// What a download is written to.
pub(super) struct Landing {
    io: Io,
    /// None while another thread has it.
    written: Option<Written>,
    /// The digest of what is written; none while another thread has it.
    hash: Option<Sha256>,
    writing: Option<Receiver<(Written, Result<(), Failure>)>>,
    hashing: Option<Receiver<Sha256>>,
    batch: Vec<Detached>,
    batch_bytes: usize,
    is_stream: bool,
    /// Whether a write has failed: what came behind it must not be written in its place.
    has_failed: bool,
}

impl Landing {
    /// Begins after `bytes` that are in `sink` already, with their digest.
    pub(super) fn new(io: &Io, sink: Sink, (hash, bytes): (Sha256, u64)) -> Landing {
        let is_stream = matches!(sink, Sink::StandardOutput);
        Landing {
            io: io.clone(),
            written: Some(Written { sink, bytes }),
            hash: Some(hash),
            writing: None,
            hashing: None,
            batch: Vec::new(),
            batch_bytes: 0,
            is_stream,
            has_failed: false,
        }
    }

    /// Takes the next bytes. Waits if too many wait to be written.
    pub(super) async fn push(&mut self, bytes: Detached) -> Result<(), Failure> {
        self.batch_bytes += bytes.len();
        self.batch.push(bytes);
        if self.batch_bytes >= BATCH_BYTES_MAX {
            self.wait().await?;
        }
        if self.is_busy() { Ok(()) } else { self.write_batch() }
    }

    /// Has what waits written as soon as the other threads are free. Ends with an error alone; dropping it
    /// loses nothing.
    pub(super) async fn keep_writing(&mut self) -> Failure {
        loop {
            if !self.is_busy() {
                return std::future::pending().await;
            }
            if let Err(failure) = self.wait().await.and_then(|()| self.write_batch()) {
                return failure;
            }
        }
    }

    /// Waits until everything is written. After a failed write, the rest is dropped; the failure was returned
    /// when it happened.
    pub(super) async fn settle(&mut self) -> Result<(), Failure> {
        self.wait().await?;
        if self.has_failed {
            self.batch.clear();
            self.batch_bytes = 0;
            return Ok(());
        }
        if self.batch_bytes >= BATCH_BYTES_MIN {
            self.write()?;
            return self.wait().await;
        }
        // So little that another thread is not worth it.
        let (Some(written), Some(hash)) = (&mut self.written, &mut self.hash) else { return Err(lost()) };
        self.batch_bytes = 0;
        for bytes in self.batch.drain(..) {
            written.write(&bytes)?;
            hash.update(&bytes[..]);
        }
        Ok(())
    }

    /// Empties what it is written to, for a file that has this tag.
    pub(super) fn begin(&mut self, etag: Option<&str>) -> Result<(), Failure> {
        let written = self.written.as_mut().ok_or_else(lost)?;
        (written.bytes, self.hash, self.has_failed) = (0, Some(Sha256::new()), false);
        written.sink.begin(etag)
    }

    /// How many bytes are written.
    pub(super) fn bytes(&self) -> u64 {
        self.written.as_ref().map_or(0, |written| written.bytes)
    }

    /// The digest of the bytes that are written.
    pub(super) fn sha256(&self) -> Option<[u8; 32]> {
        Some(self.hash.as_ref()?.clone().finalize().into())
    }

    pub(super) fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// Returns the part to be put in place, with the file's time of modification; none of a stream.
    pub(super) fn into_part(self, modified: Option<SystemTime>) -> Option<Part> {
        match self.written?.sink {
            Sink::Part(mut part) => {
                part.modified = modified;
                Some(*part)
            }
            Sink::StandardOutput => None,
        }
    }

    /// Whether other threads write and hash.
    fn is_busy(&self) -> bool {
        self.writing.is_some() || self.hashing.is_some()
    }

    /// Hands the batch to other threads if it is worth that.
    fn write_batch(&mut self) -> Result<(), Failure> {
        let enough = if self.is_stream { 1 } else { BATCH_BYTES_MIN };
        if self.batch_bytes >= enough { self.write() } else { Ok(()) }
    }

    /// Hands the batch to other threads: one writes it, one hashes it.
    fn write(&mut self) -> Result<(), Failure> {
        let (mut written, mut hash) =
            (self.written.take().ok_or_else(lost)?, self.hash.take().ok_or_else(lost)?);
        let batch = Arc::new(std::mem::take(&mut self.batch));
        self.batch_bytes = 0;
        let ((written_to, writing), (hashed_to, hashing)) = (oneshot(), oneshot());
        (self.writing, self.hashing) = (Some(writing), Some(hashing));
        let same = Arc::clone(&batch);
        let hashed = self.io.hand_off(Work::Files, move |_| {
            same.iter().for_each(|bytes| hash.update(&bytes[..]));
            hashed_to.send(hash);
        });
        let handed = self.io.hand_off(Work::Files, move |_| {
            let done = batch.iter().try_for_each(|bytes| written.write(bytes));
            written_to.send((written, done));
        });
        handed.and(hashed).map_err(|_| lost())
    }

    /// Waits until the other threads have written and hashed what they were given.
    async fn wait(&mut self) -> Result<(), Failure> {
        if let Some(writing) = &mut self.writing {
            let ended = writing.await;
            self.writing = None;
            let (written, done) = ended.ok_or_else(lost)?;
            self.written = Some(written);
            self.has_failed |= done.is_err();
            done?;
        }
        if let Some(hashing) = &mut self.hashing {
            let ended = hashing.await;
            self.hashing = None;
            self.hash = Some(ended.ok_or_else(lost)?);
        }
        Ok(())
    }
}

impl Written {
    fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.sink.write(bytes)?;
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

fn lost() -> Failure {
    Failure::Here("The thread that writes the file has ended. Get it again.".to_owned())
}
