//! Bodies, as they are received from one side and framed for the other.
//!
//! It does not wait with a limit: callers do. Invariants: no byte behind a body is taken for part of it. A
//! body that was cut short is an error, and never an end. Dropping a wait loses nothing.

use std::io;

use plimsoll_io::{FileRange, Lease, Rx, Segment, Tx, Want};
use plimsoll_wire::http::body::BodyDecoder;
use plimsoll_wire::http::chunked::{CHUNK_END, write_chunk_header};
use plimsoll_wire::http::refusal::Refusal;
use plimsoll_wire::http::response::Framing;

use crate::limits::RELAYED_PART_BYTES_MAX;

/// The part of a body that has not been received.
pub(crate) struct BodyReader {
    decoder: BodyDecoder,
    /// Received bytes that have not been consumed.
    unread: Option<Lease>,
    /// Bytes of the body that were returned.
    received: u64,
}

/// The reason why a body cannot be received to its end.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// The connection broke, or ended before the body.
    Broken(io::Error),
    /// The chunked coding is malformed.
    Malformed(Refusal),
}

impl BodyReader {
    /// Creates a reader of a message's body; `unread` was received behind the head.
    pub(crate) fn new(framing: impl Into<Framing>, unread: Option<Lease>) -> BodyReader {
        let decoder = BodyDecoder::keeping_trailers(framing.into());
        BodyReader { decoder, unread: unread.filter(|lease| !lease.is_empty()), received: 0 }
    }

    /// Whether the body has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.decoder.has_ended()
    }

    /// Whether the end of the body cannot be found any more.
    pub(crate) fn is_malformed(&self) -> bool {
        self.decoder.refusal().is_some()
    }

    /// Whether no byte of the body has been received.
    pub(crate) fn is_untouched(&self) -> bool {
        self.received == 0 && self.unread.is_none()
    }

    /// Returns the number of bytes of the body that were returned so far.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Returns the number of bytes of the body that have arrived, returned or not.
    pub(crate) fn arrived(&self) -> u64 {
        self.received + self.unread.as_ref().map_or(0, |unread| unread.len() as u64)
    }

    /// Whether all of a body of an announced length has arrived.
    pub(crate) fn has_all(&self) -> bool {
        self.announced().is_some_and(|left| left <= self.arrived() - self.received)
    }

    /// Receives more bytes, which stay to be returned.
    pub(crate) async fn receive_more(&mut self, rx: &mut Rx) -> Result<(), BodyError> {
        let lease = rx.recv(Want::Body).await.map_err(BodyError::Broken)?.ok_or_else(cut_short)?;
        match &mut self.unread {
            Some(unread) => unread.append(&lease),
            None => self.unread = Some(lease),
        }
        Ok(())
    }

    /// Returns the number of bytes that are announced and not received.
    pub(crate) fn announced(&self) -> Option<u64> {
        self.decoder.left()
    }

    /// Returns the bytes received behind the body.
    pub(crate) fn into_rest(self) -> Option<Lease> {
        self.unread.filter(|lease| !lease.is_empty())
    }

    /// Keeps bytes that were received behind the body.
    pub(crate) fn keep_rest(&mut self, lease: Lease) {
        debug_assert!(self.has_ended() && self.unread.is_none(), "there are bytes before these");
        self.unread = Some(lease);
    }

    /// Whether bytes behind the body were received.
    pub(crate) fn has_rest(&self) -> bool {
        self.has_ended() && self.unread.is_some()
    }

    /// Returns the trailer fields, name and value, once the body has ended.
    pub(crate) fn trailers(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.decoder.trailers()
    }

    /// Returns the next bytes, or `None` at the end of the body, for forwarding to `to`. Bytes of an
    /// announced length stay in the kernel where that is possible.
    pub(crate) async fn next(&mut self, rx: &mut Rx, to: &Tx) -> Result<Option<Segment>, BodyError> {
        loop {
            if let Some(lease) = self.take_unread()? {
                self.received += lease.len() as u64;
                return Ok(Some(Segment::Lease(lease)));
            }
            if self.has_ended() {
                return Ok(None);
            }
            let plain = self.decoder.plain();
            if plain == 0 {
                let received = rx.recv(Want::Body).await.map_err(BodyError::Broken)?;
                self.unread = Some(received.ok_or_else(cut_short)?);
                continue;
            }
            // A passed file is relayed in parts, each of which is in memory before it is sent.
            let received = rx.recv_for(to, plain.min(RELAYED_PART_BYTES_MAX)).await;
            match received.map_err(BodyError::Broken)? {
                Some(segment) => {
                    self.received_piece(segment.len());
                    return Ok(Some(segment));
                }
                None if self.decoder.close() => {}
                None => return Err(cut_short()),
            }
        }
    }

    /// Returns the range of an open file that the peer has passed as the whole body, which stays to be
    /// received.
    pub(crate) async fn passed_file(&self, rx: &mut Rx) -> Option<FileRange> {
        let length = self.announced().filter(|_| self.is_untouched() && !self.has_ended())?;
        let file = rx.passed_file().await?;
        (file.range.end.checked_sub(file.range.start) == Some(length)).then_some(file)
    }

    /// Receives that range. Returns false if there is none.
    #[must_use]
    pub(crate) async fn take_passed_file(&mut self, rx: &mut Rx) -> bool {
        let received = rx.recv_file().await.map_or(0, |file| file.range.end - file.range.start);
        self.received_piece(received);
        self.has_ended()
    }

    /// Returns the next bytes as a copy, or `None` at the end of the body. Waits for the first byte only,
    /// then takes the received bytes, up to about `bytes_wanted`.
    pub(crate) async fn next_bytes(
        &mut self,
        rx: &mut Rx,
        bytes_wanted: usize,
    ) -> Result<Option<Vec<u8>>, BodyError> {
        let mut bytes = Vec::new();
        loop {
            while let Some(lease) = self.take_unread()? {
                bytes.extend_from_slice(&lease);
            }
            if !bytes.is_empty() {
                self.received += bytes.len() as u64;
                return Ok(Some(bytes));
            }
            if self.has_ended() {
                return Ok(None);
            }
            let leases = rx.recv_available(Want::Body, bytes_wanted).await.map_err(BodyError::Broken)?;
            if leases.is_empty() && !self.decoder.close() {
                return Err(cut_short());
            }
            for lease in leases {
                match &mut self.unread {
                    Some(unread) => unread.append(&lease),
                    None => self.unread = Some(lease),
                }
                while let Some(lease) = self.take_unread()? {
                    bytes.extend_from_slice(&lease);
                }
            }
        }
    }

    /// Counts bytes of the body that were received without being decoded.
    fn received_piece(&mut self, bytes: u64) {
        self.received += bytes;
        self.decoder.skip(bytes);
    }

    /// Takes bytes of the body out of the unread ones; `None` if there are none.
    pub(crate) fn take_unread(&mut self) -> Result<Option<Lease>, BodyError> {
        if let Some(refusal) = self.decoder.refusal() {
            return Err(BodyError::Malformed(refusal));
        }
        if self.has_ended() {
            return Ok(None);
        }
        let Some(mut lease) = self.unread.take() else { return Ok(None) };
        let decoded = self.decoder.decode(&mut lease).map_err(BodyError::Malformed)?;
        self.unread = Some(lease.split_off(decoded.consumed)).filter(|rest| !rest.is_empty());
        lease.truncate(decoded.len);
        Ok(Some(lease).filter(|lease| !lease.is_empty()))
    }
}

fn cut_short() -> BodyError {
    BodyError::Broken(io::ErrorKind::UnexpectedEof.into())
}

/// How a forwarded body is delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutFraming {
    /// There is no body.
    None,
    /// By its announced length.
    Length(u64),
    /// By the chunked coding.
    Chunked,
    /// By the end of the connection.
    UntilClose,
}

impl OutFraming {
    /// Pushes bytes of a body.
    pub(crate) fn push(self, segment: Segment, tx: &mut Tx) {
        // An empty chunk would end the body.
        if segment.is_empty() {
            return;
        }
        if self != OutFraming::Chunked {
            return tx.push(segment);
        }
        let mut header = Vec::with_capacity(CHUNK_HEADER_BYTES);
        write_chunk_header(segment.len(), &mut header);
        tx.push(Segment::Owned(header));
        tx.push(segment);
        tx.push(Segment::Static(CHUNK_END));
    }

    /// Pushes the end of a body, with these trailer lines.
    pub(crate) fn push_end(self, trailers: &[u8], tx: &mut Tx) {
        if self == OutFraming::Chunked {
            let mut end = b"0\r\n".to_vec();
            end.extend_from_slice(trailers);
            end.extend_from_slice(b"\r\n");
            tx.push(Segment::Owned(end));
        }
    }
}

/// The usual length of a chunk's header.
const CHUNK_HEADER_BYTES: usize = 10;
