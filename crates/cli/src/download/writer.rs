//! The writer of a download: one thread writes and another hashes while more bytes arrive.
//!
//! It sends no request. Invariants: bytes are written in the order of their arrival, and none after a
//! failed write. The digest is that of the written bytes. The batch in memory is bounded.

use std::sync::Arc;
use std::time::SystemTime;

use plimsoll_io::oneshot::{Receiver, oneshot};
use plimsoll_io::{Detached, Io, Work};
use sha2::{Digest as _, Sha256};

use super::part::Part;
use super::sink::Sink;
use crate::failure::Failure;
use crate::limits::{BATCH_BYTES_MAX, BATCH_BYTES_MIN};

/// The destination, and the number of bytes in it.
struct Written {
    sink: Sink,
    bytes: u64,
}

/// Writes and hashes the bytes of a download.
pub(super) struct DownloadWriter {
    io: Io,
    /// `None` while another thread owns it.
    written: Option<Written>,
    /// The digest of the written bytes; `None` while another thread owns it.
    hash: Option<Sha256>,
    writing: Option<Receiver<(Written, Result<(), Failure>)>>,
    hashing: Option<Receiver<Sha256>>,
    batch: Vec<Detached>,
    batch_bytes: usize,
    is_stream: bool,
    /// Whether a write has failed. Later bytes must not be written then.
    has_failed: bool,
}

impl DownloadWriter {
    /// Continues after `bytes` that `sink` has already, with their digest.
    pub(super) fn new(io: &Io, sink: Sink, (hash, bytes): (Sha256, u64)) -> DownloadWriter {
        let is_stream = matches!(sink, Sink::StandardOutput);
        DownloadWriter {
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

    /// Takes the next bytes. Waits if the batch is full.
    pub(super) async fn push(&mut self, bytes: Detached) -> Result<(), Failure> {
        self.batch_bytes += bytes.len();
        self.batch.push(bytes);
        if self.batch_bytes >= BATCH_BYTES_MAX {
            self.wait().await?;
        }
        if self.is_busy() { Ok(()) } else { self.write_batch() }
    }

    /// Writes the batch whenever the other threads are free. Completes only with an error. Cancel safe.
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

    /// Waits until everything is written. After a failed write, the rest is dropped. The failure was
    /// already returned when it happened.
    pub(super) async fn flush(&mut self) -> Result<(), Failure> {
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
        // Too few bytes to be worth a thread.
        let (Some(written), Some(hash)) = (&mut self.written, &mut self.hash) else { return Err(lost()) };
        self.batch_bytes = 0;
        for bytes in self.batch.drain(..) {
            written.write(&bytes)?;
            hash.update(&bytes[..]);
        }
        Ok(())
    }

    /// Empties the destination, for a file with this entity tag.
    pub(super) fn begin(&mut self, etag: Option<&str>) -> Result<(), Failure> {
        let written = self.written.as_mut().ok_or_else(lost)?;
        (written.bytes, self.hash, self.has_failed) = (0, Some(Sha256::new()), false);
        written.sink.begin(etag)
    }

    /// Returns the number of bytes written.
    pub(super) fn bytes(&self) -> u64 {
        self.written.as_ref().map_or(0, |written| written.bytes)
    }

    /// Returns the digest of the written bytes.
    pub(super) fn sha256(&self) -> Option<[u8; 32]> {
        Some(self.hash.as_ref()?.clone().finalize().into())
    }

    pub(super) fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// Returns the part file with its time of modification, or `None` if the destination is a stream.
    pub(super) fn into_part(self, modified: Option<SystemTime>) -> Option<Part> {
        match self.written?.sink {
            Sink::Part(mut part) => {
                part.modified = modified;
                Some(*part)
            }
            Sink::StandardOutput => None,
        }
    }

    /// Returns whether other threads are writing or hashing.
    fn is_busy(&self) -> bool {
        self.writing.is_some() || self.hashing.is_some()
    }

    /// Hands the batch to other threads if it is large enough.
    fn write_batch(&mut self) -> Result<(), Failure> {
        let enough = if self.is_stream { 1 } else { BATCH_BYTES_MIN };
        if self.batch_bytes >= enough { self.write() } else { Ok(()) }
    }

    /// Hands the batch to two other threads: one writes it, one hashes it.
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

    /// Waits until the other threads have written and hashed their batch.
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
    Failure::Local("The thread that writes the file has ended. Get it again.".to_owned())
}
