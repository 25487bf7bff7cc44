//! A request that is being sent: its bytes, and how much has been sent.
//!
//! It does not receive. Invariants: a streamed body has its announced length, or the connection is not
//! reused. No piece is requested from a source while the server may still refuse, or after it has.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use plimsoll_io::{Deadline, Elapsed, Segment, Tx, pacing};
use plimsoll_wire::http::answer::AnswerHead;
use plimsoll_wire::http::chunked::{CHUNK_END, LAST_CHUNK, write_chunk_header};
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::target::parse_target;
use zeroize::{Zeroize as _, Zeroizing};

use super::error::{Error, When};
use super::interim::InterimState;
use super::limits::{CONTINUE_TIME_MAX, COPIED_PART_BYTES_MAX, EXPECT_BYTES_MIN, SEND_AHEAD_BYTES_MAX};
use super::request::{Body, Request};
use super::url::Url;
use crate::source::Source;

const USER_AGENT: &str = concat!("plimsoll/", env!("CARGO_PKG_VERSION"));

/// The fields that only the client itself sets.
const OWN_FIELDS: [&str; 5] = ["Host", "Content-Length", "Transfer-Encoding", "Expect", "Connection"];

/// A request, ready to be sent, once or again.
pub(super) struct Outgoing<'a> {
    pub(super) method: Method,
    head: Vec<u8>,
    payload: Payload<'a>,
    /// Whether the caller declared the request idempotent.
    is_idempotent: bool,
    /// Whether a piece was requested from the source, which cannot provide it again.
    is_started: bool,
    /// Whether everything was handed over to be sent.
    pushed: bool,
}

enum Payload<'a> {
    None,
    Bytes(WipedBytes),
    Stream {
        length: Option<u64>,
        source: &'a mut dyn Source,
        expects_continue: bool,
        continue_time: Option<Duration>,
    },
}

/// A body in memory, which may have a password. Wiped on drop, if the transport has sent it.
struct WipedBytes(Arc<[u8]>);

impl From<Vec<u8>> for WipedBytes {
    fn from(bytes: Vec<u8>) -> WipedBytes {
        let bytes = Zeroizing::new(bytes);
        WipedBytes(Arc::from(bytes.as_slice()))
    }
}

impl Drop for WipedBytes {
    fn drop(&mut self) {
        if let Some(bytes) = Arc::get_mut(&mut self.0) {
            bytes.zeroize();
        }
    }
}

/// The server's signals for the sending side, and its timeouts.
pub(super) struct SendContext<'a> {
    pub(super) deadline: &'a Deadline,
    pub(super) between_bytes: Duration,
    pub(super) interim_state: &'a InterimState,
}

impl<'a> Outgoing<'a> {
    /// Encodes the head of a request to the server at `base`. With a `continue_time`, a streamed body waits
    /// that long for a required 100 (Continue).
    pub(super) fn new(
        base: &Url,
        request: Request<'a>,
        continue_time: Option<Duration>,
    ) -> Result<Outgoing<'a>, Error> {
        check(&request)?;
        let method = Method::from_token(request.method.as_bytes());
        let payload = match request.body {
            Body::Empty => Payload::None,
            Body::Bytes(bytes) => Payload::Bytes(bytes.into()),
            Body::Stream { length, source } => {
                let is_long = length.is_none_or(|bytes| bytes >= EXPECT_BYTES_MIN);
                let expects_continue = is_long || continue_time.is_some();
                Payload::Stream { length, source, expects_continue, continue_time }
            }
        };
        // The request line is followed by the same kind of lines as an answer has.
        let mut head =
            format!("{} {} HTTP/1.1\r\n", request.method, base.path_of(request.target)).into_bytes();
        let mut writer = AnswerHead::resume(&mut head).field("Host", &base.authority);
        if !request.fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("User-Agent")) {
            writer = writer.field("User-Agent", USER_AGENT);
        }
        for (name, value) in &request.fields {
            writer = writer.field(name, value);
        }
        framed(writer, method, &payload).finish();
        let is_idempotent = request.is_idempotent;
        Ok(Outgoing { method, head, payload, is_idempotent, is_started: false, pushed: false })
    }

    /// Returns whether the request may be repeated when its result is unknown.
    ///
    /// "A user agent MUST NOT automatically retry a request with a non-idempotent method unless it has some
    /// means to know that the request semantics are actually idempotent [...] or some means to detect that
    /// the original request was never applied" (RFC 9110, section 9.2.2). A streamed body that was not
    /// started is such a means.
    pub(super) fn may_be_repeated(&self) -> bool {
        let idempotent = self.is_idempotent || self.method.is_idempotent();
        match self.payload {
            Payload::Stream { .. } => !self.is_started,
            Payload::None | Payload::Bytes(_) => idempotent,
        }
    }

    /// Returns whether all of it has been sent, so that the connection can carry another request.
    pub(super) fn is_sent(&self, tx: &Tx) -> bool {
        self.pushed && tx.unsent() == 0
    }

    /// Sends it. Dropping the future leaves an incomplete request: the connection cannot be reused.
    pub(super) async fn send(&mut self, tx: &mut Tx, context: &SendContext<'_>) -> Result<(), Error> {
        self.pushed = false;
        tx.push(Segment::Owned(self.head.clone()));
        match &mut self.payload {
            Payload::None => {}
            Payload::Bytes(bytes) if tx.copies_segments() => {
                for part in bytes.0.chunks(COPIED_PART_BYTES_MAX) {
                    tx.push_slice(part);
                    drain(tx, SEND_AHEAD_BYTES_MAX, context).await?;
                }
            }
            Payload::Bytes(bytes) => tx.push(Segment::Shared(Arc::clone(&bytes.0))),
            Payload::Stream { length, source, expects_continue, continue_time } => {
                if *expects_continue {
                    context.wait(*continue_time).await?;
                }
                self.is_started = true;
                stream(*length, &mut **source, tx, context).await?;
            }
        }
        self.pushed = true;
        drain(tx, 0, context).await
    }
}

/// Rejects input that would not be exactly one request on the wire.
fn check(request: &Request<'_>) -> Result<(), Error> {
    let token = |text: &str| {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    if !token(request.method) {
        return Err(Error::Request("its method is no word"));
    }
    if !request.target.starts_with('/') || parse_target(request.target.as_bytes()).is_err() {
        return Err(Error::Request("its target is no encoded path"));
    }
    let own = |name: &str| OWN_FIELDS.iter().any(|own| own.eq_ignore_ascii_case(name));
    if request.fields.iter().any(|(name, _)| own(name) || !token(name)) {
        return Err(Error::Request("one of its fields is not the caller's to set"));
    }
    Ok(())
}

/// Adds the framing of the body. "A user agent SHOULD send Content-Length in a request when the method
/// defines a meaning for enclosed content and it is not sending Transfer-Encoding" (RFC 9110, section 8.6).
fn framed<'b>(head: AnswerHead<'b>, method: Method, payload: &Payload<'_>) -> AnswerHead<'b> {
    match payload {
        Payload::None if matches!(method, Method::Post | Method::Put | Method::Patch) => {
            head.content_length(0)
        }
        Payload::None => head,
        Payload::Bytes(bytes) => head.content_length(bytes.0.len() as u64),
        Payload::Stream { length, expects_continue, .. } => {
            let head = match length {
                Some(length) => head.content_length(*length),
                None => head.chunked(),
            };
            head.field_if("Expect", expects_continue.then_some("100-continue"))
        }
    }
}

impl SendContext<'_> {
    /// Waits for a 100 (Continue). Where it is not required, the wait ends after a while without error: a
    /// server may not support expectations.
    async fn wait(&self, needed_within: Option<Duration>) -> Result<(), Error> {
        loop {
            let interims_before = self.interim_state.interims.get();
            self.deadline.after(needed_within.unwrap_or(CONTINUE_TIME_MAX));
            // The receiving side is polled in the same turn, before this one: no waker is needed.
            let given =
                poll_fn(|_| if self.interim_state.may_send.get() { Poll::Ready(()) } else { Poll::Pending });
            match self.deadline.within(given).await {
                Err(Elapsed)
                    if needed_within.is_some() && self.interim_state.interims.get() > interims_before => {}
                Err(Elapsed) if needed_within.is_some() => return Err(Error::Late(When::Waiting)),
                Ok(()) | Err(Elapsed) => return Ok(()),
            }
        }
    }
}

/// Sends all pieces of a source.
async fn stream(
    length: Option<u64>,
    source: &mut dyn Source,
    tx: &mut Tx,
    context: &SendContext<'_>,
) -> Result<(), Error> {
    let mut sent = 0u64;
    while let Some(segment) = source.next().await.map_err(Error::Source)? {
        if matches!(segment, Segment::File(_)) && !tx.takes_files() {
            return Err(Error::Source(io::ErrorKind::Unsupported.into()));
        }
        sent = sent.saturating_add(segment.len());
        match length {
            Some(length) if sent > length => return Err(changed("there is more of it than there was")),
            Some(_) => tx.push(segment),
            None => push_chunk(segment, tx),
        }
        drain(tx, SEND_AHEAD_BYTES_MAX, context).await?;
        context.interim_state.interims.set(0);
    }
    match length {
        Some(length) if sent < length => Err(changed("there is less of it than there was")),
        Some(_) => Ok(()),
        None => {
            tx.push(Segment::Static(LAST_CHUNK));
            Ok(())
        }
    }
}

fn changed(change: &'static str) -> Error {
    Error::Source(io::Error::new(io::ErrorKind::InvalidData, change))
}

/// Pushes a piece as a chunk. An empty one is skipped: it would be the last chunk.
fn push_chunk(segment: Segment, tx: &mut Tx) {
    if segment.is_empty() {
        return;
    }
    let mut header = Vec::new();
    write_chunk_header(segment.len(), &mut header);
    tx.push(Segment::Owned(header));
    tx.push(segment);
    tx.push(Segment::Static(CHUNK_END));
}

/// Waits until at most `below` bytes are unsent, for as long as the server takes some, or sends interim
/// answers.
async fn drain(tx: &mut Tx, below: u64, context: &SendContext<'_>) -> Result<(), Error> {
    loop {
        let interims_before = context.interim_state.interims.get();
        match pacing::drain(tx, below, context.deadline, context.between_bytes, |_, _| {}).await {
            Ok(drained) => return drained.map_err(|source| Error::Broken { when: When::Sending, source }),
            Err(Elapsed) if context.interim_state.interims.get() > interims_before => {}
            Err(Elapsed) => return Err(Error::Late(When::Sending)),
        }
    }
}
