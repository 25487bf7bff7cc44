//! Bodies, as they are received from one side and framed for the other.
//!
//! It does not wait with a limit: callers do. Invariants: no byte behind a body is taken for part of it. A
//! body that was cut short is an error, and never an end. Dropping a wait loses nothing.

use std::io;

use plimsoll_io::{FileRange, Lease, Rx, Segment, Tx, Want};
use plimsoll_wire::http::chunked::{CHUNK_END, ChunkedDecoder, unchunk, write_chunk_header};
use plimsoll_wire::http::head::Framing as RequestFraming;
use plimsoll_wire::http::refusal::Refusal;
use plimsoll_wire::http::response::Framing;

use crate::limits::RELAYED_PART_BYTES_MAX;

/// The part of a body that has not been received.
pub(crate) struct BodyReader {
    progress: Progress,
    /// Received bytes that have not been consumed.
    unread: Option<Lease>,
    /// Bytes of the body that were returned.
    received: u64,
}

enum Progress {
    Length(u64),
    Chunked(Box<ChunkedDecoder>),
    UntilClose,
    /// The chunked coding is malformed, so that the end of the body is unknown.
    Malformed(Refusal),
    Ended(Option<Box<ChunkedDecoder>>),
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
    /// Creates a reader of a request's body; `unread` was received behind the head.
    pub(crate) fn of_request(framing: RequestFraming, unread: Option<Lease>) -> BodyReader {
        let framing = match framing {
            RequestFraming::None => Framing::None,
            RequestFraming::Length(bytes) => Framing::Length(bytes),
            RequestFraming::Chunked => Framing::Chunked,
        };
        BodyReader::of_response(framing, unread)
    }

    /// Creates a reader of a response's body; `unread` was received behind the head.
    pub(crate) fn of_response(framing: Framing, unread: Option<Lease>) -> BodyReader {
        let progress = match framing {
            Framing::None | Framing::Length(0) => Progress::Ended(None),
            Framing::Length(bytes) => Progress::Length(bytes),
            Framing::Chunked => Progress::Chunked(Box::new(ChunkedDecoder::keeping_trailers())),
            Framing::UntilClose => Progress::UntilClose,
        };
        BodyReader { progress, unread: unread.filter(|lease| !lease.is_empty()), received: 0 }
    }

    /// Whether the body has ended.
    pub(crate) fn has_ended(&self) -> bool {
        matches!(self.progress, Progress::Ended(_))
    }

    /// Whether the end of the body cannot be found any more.
    pub(crate) fn is_malformed(&self) -> bool {
        matches!(self.progress, Progress::Malformed(_))
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
        let unread = self.unread.as_ref().map_or(0, |unread| unread.len() as u64);
        matches!(self.progress, Progress::Length(left) if left <= unread) || self.has_ended()
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
        match self.progress {
            Progress::Length(left) => Some(left),
            Progress::Ended(_) => Some(0),
            Progress::Chunked(_) | Progress::UntilClose | Progress::Malformed(_) => None,
        }
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
        let decoder = match &self.progress {
            Progress::Ended(decoder) => decoder.as_deref(),
            _ => None,
        };
        decoder.into_iter().flat_map(ChunkedDecoder::trailers)
    }

    /// Returns the next bytes, or `None` at the end of the body, for forwarding to `to`. Bytes of an
    /// announced length stay in the kernel where that is possible.
    pub(crate) async fn next(&mut self, rx: &mut Rx, to: &Tx) -> Result<Option<Segment>, BodyError> {
        loop {
            if self.has_ended() {
                return Ok(None);
            }
            if let Some(lease) = self.take_unread()? {
                self.received += lease.len() as u64;
                return Ok(Some(Segment::Lease(lease)));
            }
            match self.progress {
                Progress::Ended(_) => {}
                Progress::Malformed(refusal) => return Err(BodyError::Malformed(refusal)),
                Progress::Length(left) => {
                    // A passed file is relayed in parts, each of which is in memory before it is sent.
                    let received =
                        rx.recv_for(to, left.min(RELAYED_PART_BYTES_MAX)).await.map_err(BodyError::Broken)?;
                    let segment = received.ok_or_else(cut_short)?;
                    self.received_piece(segment.len());
                    return Ok(Some(segment));
                }
                Progress::Chunked(_) => {
                    let received = rx.recv(Want::Body).await.map_err(BodyError::Broken)?;
                    self.unread = Some(received.ok_or_else(cut_short)?);
                }
                Progress::UntilClose => match rx.recv_for(to, u64::MAX).await.map_err(BodyError::Broken)? {
                    Some(segment) => {
                        self.received += segment.len();
                        return Ok(Some(segment));
                    }
                    None => self.progress = Progress::Ended(None),
                },
            }
        }
    }

    /// Returns the range of an open file that the peer has passed as the whole body, which stays to be
    /// received.
    pub(crate) async fn passed_file(&self, rx: &mut Rx) -> Option<FileRange> {
        let Progress::Length(length) = self.progress else { return None };
        if !self.is_untouched() {
            return None;
        }
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
            if leases.is_empty() {
                if !matches!(self.progress, Progress::UntilClose) {
                    return Err(cut_short());
                }
                self.progress = Progress::Ended(None);
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

    /// Counts bytes of a body of an announced length.
    fn received_piece(&mut self, bytes: u64) {
        self.received += bytes;
        if let Progress::Length(left) = &mut self.progress {
            *left = left.saturating_sub(bytes);
            if *left == 0 {
                self.progress = Progress::Ended(None);
            }
        }
    }

    /// Takes bytes of the body out of the unread ones; `None` if there are none.
    pub(crate) fn take_unread(&mut self) -> Result<Option<Lease>, BodyError> {
        let Some(mut lease) = self.unread.take() else { return Ok(None) };
        match &mut self.progress {
            Progress::Length(left) => {
                let bytes = usize::try_from(*left).unwrap_or(usize::MAX).min(lease.len());
                *left -= bytes as u64;
                if *left == 0 {
                    self.progress = Progress::Ended(None);
                }
                self.unread = split_off(&mut lease, bytes);
            }
            Progress::Chunked(decoder) => {
                let unchunked = match unchunk(decoder, &mut lease) {
                    Ok(unchunked) => unchunked,
                    Err(refusal) => {
                        self.progress = Progress::Malformed(refusal);
                        return Err(BodyError::Malformed(refusal));
                    }
                };
                self.unread = split_off(&mut lease, unchunked.consumed);
                lease.truncate(unchunked.len);
                if decoder.is_ended()
                    && let Progress::Chunked(decoder) =
                        std::mem::replace(&mut self.progress, Progress::Ended(None))
                {
                    self.progress = Progress::Ended(Some(decoder));
                }
            }
            Progress::UntilClose => {}
            Progress::Malformed(refusal) => return Err(BodyError::Malformed(*refusal)),
            Progress::Ended(_) => {
                self.unread = Some(lease);
                return Ok(None);
            }
        }
        Ok(Some(lease).filter(|lease| !lease.is_empty()))
    }
}

fn cut_short() -> BodyError {
    BodyError::Broken(io::ErrorKind::UnexpectedEof.into())
}

/// Truncates `lease` to `bytes`; returns a copy of the bytes behind.
pub(crate) fn split_off(lease: &mut Lease, bytes: usize) -> Option<Lease> {
    let rest = lease.get(bytes..).unwrap_or_default();
    let rest = (!rest.is_empty()).then(|| Lease::owned(rest.to_vec()));
    lease.truncate(bytes);
    rest
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
