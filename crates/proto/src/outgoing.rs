//! Sends bytes, files and contents from remote stores, with backpressure.
//!
//! This module does not choose the data, nor end the connection. Invariants: memory stays bounded however
//! slowly the peer receives. A peer is stuck if it takes no byte for the whole send timeout, not if it is
//! slow.

use std::io;
use std::time::Duration;

use plimsoll_io::{Deadline, FileRange, Io, Phase, Segment, Tx};
use plimsoll_store::apart::Contents;

use crate::file_parts::{AHEAD_BYTES, Parts};

/// Bytes of a response that may be unsent before more are read.
pub(crate) const UNSENT_BYTES_MAX: u64 = 64 * 1024;
/// Bytes per read of a file, where the transport cannot send files.
const CHUNK_BYTES: usize = 64 * 1024;
/// Bytes per second that a client without valid credentials takes of a response. One that takes fewer
/// counts as stalled when slots run short.
const TAKEN_BYTES_PER_SECOND_MIN: u64 = 16 * 1024;
/// Interval at which progress is reported to the connection's slot.
const PROGRESS_TIME: Duration = Duration::from_secs(2);

/// The connection and limits with which a body is sent.
pub(crate) struct Outgoing<'a> {
    pub(crate) io: &'a Io,
    pub(crate) tx: &'a mut Tx,
    pub(crate) deadline: &'a Deadline,
    /// Time in which the peer must take at least one byte.
    pub(crate) send_time: Duration,
    /// Bytes of the body that were pushed.
    pub(crate) pushed: u64,
    /// Whether the source could not be read, as opposed to an error of the peer.
    pub(crate) is_unread: bool,
}

impl Outgoing<'_> {
    /// Pushes bytes.
    pub(crate) fn push(&mut self, bytes: Vec<u8>) {
        self.pushed += bytes.len() as u64;
        self.tx.push(Segment::Owned(bytes));
    }

    /// Pushes a range of a file.
    pub(crate) async fn push_file(&mut self, part: FileRange) -> io::Result<()> {
        if self.tx.takes_files() {
            return self.push_parts(part).await;
        }
        // Boxed: plain connections never take this branch, and inlining it would enlarge their futures.
        Box::pin(self.push_chunks(part)).await
    }

    /// Pushes a range of a file in parts, each once it is in memory.
    async fn push_parts(&mut self, whole: FileRange) -> io::Result<()> {
        let mut parts = Parts::new(whole);
        while let Some(part) = self.read(parts.next(self.io).await)? {
            self.pushed += part.range.end - part.range.start;
            self.tx.push(Segment::File(part));
            if parts.has_more() {
                self.drain(AHEAD_BYTES).await?;
            }
        }
        Ok(())
    }

    /// Reads a range of a file and pushes its bytes.
    async fn push_chunks(&mut self, mut part: FileRange) -> io::Result<()> {
        while part.range.start < part.range.end {
            let (file, offset) = (part.file.clone(), part.range.start);
            let left = usize::try_from(part.range.end - offset).unwrap_or(usize::MAX);
            let chunk = self.io.files(move |fs| {
                let mut chunk = vec![0; left.min(CHUNK_BYTES)];
                let read = fs.read_at(&file, &mut chunk, offset)?;
                chunk.truncate(read);
                Ok(chunk)
            });
            let chunk = self.read(chunk.await)?;
            if chunk.is_empty() {
                // The file has been truncated since its length was announced.
                return self.read(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            part.range.start += chunk.len() as u64;
            self.push(chunk);
            self.drain(UNSENT_BYTES_MAX).await?;
        }
        Ok(())
    }

    /// Pushes bytes as they arrive from a remote store.
    pub(crate) async fn push_contents(&mut self, mut contents: Contents) -> io::Result<()> {
        while let Some(segment) = self.read(contents.next_for(self.tx).await)? {
            self.pushed += segment.len();
            self.tx.push(segment);
            self.drain(UNSENT_BYTES_MAX).await?;
        }
        Ok(())
    }

    fn read<T>(&mut self, read: io::Result<T>) -> io::Result<T> {
        self.is_unread |= read.is_err();
        read
    }

    /// Waits until at most `below` bytes are unsent.
    pub(crate) async fn drain(&mut self, below: u64) -> io::Result<()> {
        drain(self.tx, below, self.deadline, self.send_time).await
    }

    /// Returns the bytes of the body that the network accepted, if the body was pushed last.
    pub(crate) fn taken(&self) -> u64 {
        self.pushed.saturating_sub(self.tx.unsent() + self.tx.lost())
    }
}

/// Waits until at most `below` bytes are unsent, while the peer takes some within every `time`.
pub(crate) async fn drain(tx: &mut Tx, below: u64, deadline: &Deadline, time: Duration) -> io::Result<()> {
    let (mut unsent, mut progressed) = (tx.unsent(), deadline.now());
    // The progress reported to the slot: a peer that takes a few bytes now and then must not count as
    // active.
    let mut reported = (unsent, progressed);
    if unsent > below {
        tx.slot().enter(Phase::Working, progressed);
    }
    loop {
        deadline.after(time.min(PROGRESS_TIME));
        if let Ok(drained) = deadline.within(tx.drain(below)).await {
            return drained;
        }
        let now = deadline.now();
        if tx.unsent() < unsent {
            (unsent, progressed) = (tx.unsent(), now);
            let enough = (now - reported.1).as_secs().saturating_mul(TAKEN_BYTES_PER_SECOND_MIN);
            if reported.0.saturating_sub(unsent) >= enough {
                reported = (unsent, now);
                tx.slot().enter(Phase::Working, now);
            }
        } else if now - progressed >= time {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
}
