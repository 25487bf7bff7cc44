//! Sends bodies with backpressure: bytes, files and the contents of remote stores.
//!
//! This module does not choose the data, nor end the connection. Invariants: memory stays bounded however
//! slowly the peer receives. A peer is stalled if it receives no byte for the whole send timeout, not if it
//! is slow.

use std::cell::Cell;
use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_content::{LocalSource, Source, part_of};
use plimsoll_io::{Deadline, Elapsed, FileRange, Instant, Io, Phase, Segment, Slot, Stream, Tx, pacing};
use plimsoll_operations::{Error, Permit};
use plimsoll_store::Error as StoreError;
use plimsoll_store::backend::RemoteFile;

use crate::body_stream::StreamedBody;
use crate::file_parts::Parts;
use crate::generated::Reservation;
use crate::limits::{
    COPIED_PART_BYTES_MAX, FILE_AHEAD_BYTES, FILE_CHUNK_BYTES, RECEIVED_BYTES_PER_SECOND_MIN,
    UNSENT_BYTES_MAX,
};

/// The reason why a body was not sent to its end.
#[derive(Debug)]
pub(crate) enum SendError {
    /// The source cannot be read, or the right to read it has ended.
    Source(Error),
    /// The connection broke, the peer stalled, or a file is shorter than its announced length.
    Connection(io::Error),
}

/// The connection and the limits with which a body is sent.
pub(crate) struct BodySender<'a> {
    io: &'a Io,
    tx: &'a mut Tx,
    deadline: &'a Deadline,
    /// Time in which the peer must receive at least one byte.
    send_time: Duration,
    /// Bytes of the body, as stored, that were pushed.
    pushed: u64,
    observer: Option<Observer<'a>>,
}

/// The connection that requested the transfer, where that is another than the transfer's own.
struct Observer<'a> {
    slot: Rc<dyn Slot>,
    sent: &'a Cell<u64>,
    pushed: u64,
}

impl<'a> BodySender<'a> {
    pub(crate) fn new(io: &'a Io, tx: &'a mut Tx, deadline: &'a Deadline, send_time: Duration) -> Self {
        BodySender { io, tx, deadline, send_time, pushed: 0, observer: None }
    }

    /// Reports progress to `slot` instead of the slot of the connection itself, and stores the sent bytes of
    /// the body in `sent`.
    pub(crate) fn observed_by(mut self, slot: Rc<dyn Slot>, sent: &'a Cell<u64>) -> Self {
        self.observer = Some(Observer { slot, sent, pushed: 0 });
        self
    }

    /// Pushes a head, which does not count as part of the body.
    pub(crate) fn push_head(&mut self, head: Vec<u8>) {
        self.tx.push(Segment::Owned(head));
    }

    /// Pushes bytes.
    pub(crate) fn push(&mut self, bytes: Vec<u8>) {
        self.pushed += bytes.len() as u64;
        self.tx.push(Segment::Owned(bytes));
    }

    /// Pushes bytes that may be many: in parts, where the transport copies what is pushed.
    pub(crate) async fn push_whole(&mut self, segment: Segment) -> Result<(), SendError> {
        if !self.tx.copies_segments() {
            self.pushed += segment.len();
            self.tx.push(segment);
            return Ok(());
        }
        for part in segment.bytes().chunks(COPIED_PART_BYTES_MAX) {
            self.pushed += part.len() as u64;
            self.tx.push_slice(part);
            self.drain(UNSENT_BYTES_MAX).await?;
        }
        Ok(())
    }

    /// Pushes a head with a copy of a small body behind it, so that both leave in one send.
    pub(crate) fn push_with_head(&mut self, mut head: Vec<u8>, body: &[u8]) {
        self.pushed += body.len() as u64;
        head.extend_from_slice(body);
        self.tx.push(Segment::Owned(head));
    }

    /// Pushes a range of a file.
    pub(crate) async fn push_file(&mut self, range: FileRange) -> Result<(), SendError> {
        let length = range.range.end.saturating_sub(range.range.start);
        if self.tx.passes_files(length) {
            // The peer reads it, if anything does.
            self.pushed += length;
            self.tx.push(Segment::File(range));
            return Ok(());
        }
        if self.tx.takes_files() {
            return self.push_parts(range).await;
        }
        // Boxed: plain connections never take this branch, and inlining it would enlarge their futures.
        Box::pin(self.push_file_as(range, |chunk| chunk)).await
    }

    /// Pushes a range of a file in parts, each once it is in memory.
    async fn push_parts(&mut self, range: FileRange) -> Result<(), SendError> {
        let mut parts = Parts::new(range);
        while let Some(part) = parts.next(self.io).await.map_err(unreadable)? {
            self.pushed += part.range.end - part.range.start;
            self.tx.push(Segment::File(part));
            if parts.has_more() {
                self.drain(FILE_AHEAD_BYTES).await?;
            }
        }
        Ok(())
    }

    /// Reads a range of a file and pushes its bytes as `convert` returns them.
    async fn push_file_as(
        &mut self,
        mut part: FileRange,
        mut convert: impl FnMut(Vec<u8>) -> Vec<u8>,
    ) -> Result<(), SendError> {
        while part.range.start < part.range.end {
            let (file, offset) = (part.file.clone(), part.range.start);
            let left = usize::try_from(part.range.end - offset).unwrap_or(usize::MAX);
            let chunk = self.io.files(move |fs| {
                let mut chunk = vec![0; left.min(FILE_CHUNK_BYTES)];
                let read = fs.read_at(&file, &mut chunk, offset)?;
                chunk.truncate(read);
                Ok(chunk)
            });
            let chunk = chunk.await.map_err(unreadable)?;
            if chunk.is_empty() {
                // The file has been truncated since its length was announced.
                return Err(SendError::Connection(io::ErrorKind::UnexpectedEof.into()));
            }
            part.range.start += chunk.len() as u64;
            self.pushed += chunk.len() as u64;
            self.tx.push(Segment::Owned(convert(chunk)));
            self.drain(UNSENT_BYTES_MAX).await?;
        }
        Ok(())
    }

    /// Pushes bytes as they arrive from a remote store.
    pub(crate) async fn push_remote(&mut self, mut file: RemoteFile) -> Result<(), SendError> {
        while let Some(segment) = file.next_for(self.tx).await.map_err(unreachable)? {
            self.pushed += segment.len();
            self.tx.push(segment);
            self.drain(UNSENT_BYTES_MAX).await?;
        }
        Ok(())
    }

    /// Pushes a range of a file that [`plimsoll_content::open`] has opened at the start of the range.
    pub(crate) async fn push_source(&mut self, source: Source, range: Range<u64>) -> Result<(), SendError> {
        match source {
            Source::Local(LocalSource::File(file)) => self.push_file(FileRange { file, range }).await,
            // A remote store's response to an empty range has other bytes.
            Source::Remote(_) if range.is_empty() => Ok(()),
            Source::Remote(file) => self.push_remote(*file).await,
            Source::Local(LocalSource::Bytes { contents, .. }) => {
                self.push_whole(Segment::Owned(part_of(&contents, &range).to_vec())).await
            }
        }
    }

    /// As [`BodySender::push_source`], but pushes the bytes as `convert` returns them.
    pub(crate) async fn push_source_as(
        &mut self,
        source: Source,
        range: Range<u64>,
        mut convert: impl FnMut(&[u8]) -> Vec<u8>,
    ) -> Result<(), SendError> {
        match source {
            Source::Local(LocalSource::File(file)) => {
                return self.push_file_as(FileRange { file, range }, |chunk| convert(&chunk)).await;
            }
            Source::Remote(_) if range.is_empty() => {}
            Source::Remote(mut file) => {
                while let Some(lease) = file.next().await.map_err(unreachable)? {
                    self.pushed += lease.len() as u64;
                    self.tx.push(Segment::Owned(convert(&lease)));
                    self.drain(UNSENT_BYTES_MAX).await?;
                }
            }
            Source::Local(LocalSource::Bytes { contents, .. }) => {
                self.push_whole(Segment::Owned(convert(part_of(&contents, &range)))).await?;
            }
        }
        Ok(())
    }

    /// Pushes a body as it is generated; in chunks (RFC 9112, section 7.1), or up to the connection's end.
    pub(crate) async fn push_stream(
        &mut self,
        mut stream: StreamedBody,
        is_chunked: bool,
        mut memory: Reservation<'_>,
    ) -> Result<(), SendError> {
        let mut end_of_chunk = "";
        while let Some(bytes) = stream.0.next().await.map_err(|error| SendError::Source(error.into()))? {
            if !memory.grow_to(stream.0.memory_bytes()) {
                return Err(SendError::Source(StoreError::Busy.into()));
            }
            if is_chunked {
                let head = format!("{end_of_chunk}{:x}\r\n", bytes.len());
                self.tx.push(Segment::Owned(head.into_bytes()));
                end_of_chunk = "\r\n";
            }
            self.push(bytes);
            self.drain(UNSENT_BYTES_MAX).await?;
        }
        if is_chunked {
            self.tx.push(Segment::Static(b"\r\n0\r\n\r\n"));
        }
        Ok(())
    }

    /// Waits until at most `below` bytes are unsent.
    pub(crate) async fn drain(&mut self, below: u64) -> Result<(), SendError> {
        if let Some(observer) = &mut self.observer {
            observer.pushed = self.pushed;
        }
        let observer = self.observer.as_ref();
        let drained = drain_observed(self.tx, below, self.deadline, self.send_time, observer).await;
        drained.map_err(SendError::Connection)
    }

    /// Waits until all is sent, and ends the stream.
    pub(crate) async fn finish(&mut self) -> Result<(), SendError> {
        self.drain(0).await?;
        self.tx.finish();
        // TLS sends an end of its own, and dropping a stream with unsent bytes aborts it.
        self.drain(0).await
    }

    /// Returns the bytes of the body that the kernel accepted, if the body was pushed last.
    pub(crate) fn sent(&self) -> u64 {
        sent(self.tx, self.pushed)
    }
}

impl Observer<'_> {
    fn note_sent(&self, tx: &Tx) {
        self.sent.set(sent(tx, self.pushed));
    }
}

/// Runs `work` while the right of `permit` holds.
pub(crate) async fn while_permitted<T, E: From<SendError>>(
    permit: Option<&mut Permit>,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    match permit {
        Some(permit) => permit.during(work).await.map_err(SendError::Source)?,
        None => work.await,
    }
}

/// Waits until at most `below` bytes are unsent, while the peer receives some within every `send_time`.
///
/// # Errors
/// The error that broke the connection; [`io::ErrorKind::TimedOut`] if the peer is stalled.
pub async fn drain(tx: &mut Tx, below: u64, deadline: &Deadline, send_time: Duration) -> io::Result<()> {
    drain_observed(tx, below, deadline, send_time, None).await
}

/// Ends a connection whose peer may still be sending. Reads until the peer ends its side: closing earlier
/// would reset the connection, and the peer could lose the response. A peer that takes too long is cut off.
pub async fn linger(io: &Io, stream: &mut Stream, deadline: &Deadline, linger_time: Duration) {
    io.leave();
    stream.slot().enter(Phase::Ending, io.now());
    let _: Result<io::Result<()>, Elapsed> = pacing::finish(stream, deadline, linger_time).await;
}

async fn drain_observed(
    tx: &mut Tx,
    below: u64,
    deadline: &Deadline,
    send_time: Duration,
    observer: Option<&Observer<'_>>,
) -> io::Result<()> {
    // The progress reported to the slot: a peer that receives a few bytes now and then must not count as
    // active.
    let mut reported = (tx.unsent(), deadline.now());
    if reported.0 > below {
        slot_of(tx, observer).enter(Phase::Working, reported.1);
    }
    let report = |tx: &Tx, now: Instant| {
        observer.inspect(|observer| observer.note_sent(tx));
        let enough = (now - reported.1).as_secs().saturating_mul(RECEIVED_BYTES_PER_SECOND_MIN);
        if reported.0.saturating_sub(tx.unsent()) >= enough {
            reported = (tx.unsent(), now);
            slot_of(tx, observer).enter(Phase::Working, now);
        }
    };
    let drained = pacing::drain(tx, below, deadline, send_time, report).await;
    observer.inspect(|observer| observer.note_sent(tx));
    drained.unwrap_or_else(|Elapsed| Err(io::ErrorKind::TimedOut.into()))
}

fn slot_of<'s>(tx: &'s Tx, observer: Option<&'s Observer<'_>>) -> &'s dyn Slot {
    &**observer.map_or(tx.slot(), |observer| &observer.slot)
}

fn sent(tx: &Tx, pushed: u64) -> u64 {
    pushed.saturating_sub(tx.unsent() + tx.lost())
}

fn unreadable(error: io::Error) -> SendError {
    SendError::Source(StoreError::from(error).into())
}

fn unreachable(_: io::Error) -> SendError {
    SendError::Source(StoreError::Away.into())
}
