//! A connection to a server: its sending half, and received bytes that have not been parsed.
//!
//! It does not encode requests. Invariants: bytes are taken once and in order. Dropping a wait loses none. A
//! head that never ends stops growing at its limit and costs linear time.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use plimsoll_io::{Lease, Rx, Stream, Tx, Want};
use plimsoll_wire::http::body::BodyDecoder;
use plimsoll_wire::http::head::{Method, find_head_end};
use plimsoll_wire::http::refusal::Refusal;
use plimsoll_wire::http::response::{BadResponse, ResponseHead, parse_response};

use super::limits::{HEAD, TICKET_POLLS_MAX};

/// A connection to a server.
pub struct Connection {
    /// The receiving half.
    pub inbox: ResponseInbox,
    /// The sending half.
    pub tx: Tx,
    /// Whether it has carried a request before the present one.
    pub is_reused: bool,
    /// Whether something was received since it is idle.
    woken: Arc<Woken>,
    is_encrypted: bool,
}

/// A waker that only records that it was woken. A receive may be pending although bytes have arrived: then it
/// wakes its waker.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The receiving half of a connection to a server.
pub struct ResponseInbox {
    /// Receives further bytes.
    pub rx: Rx,
    /// Received bytes that have not been consumed; at least one.
    pub buffered: Option<Lease>,
    /// How many of them were searched for the end of a head, without result.
    searched: usize,
    /// The length from which parsing is tried even without the end of a head.
    parse_from: usize,
    /// Whether a byte of a response to the present request has arrived.
    is_touched: bool,
}

/// The reason why there is no head of a response.
#[derive(Debug)]
pub enum NoResponse {
    /// The connection broke, or the server closed its side.
    Broken(io::Error),
    /// The received bytes are no response.
    Malformed(BadResponse),
}

impl Connection {
    /// Creates the connection of a stream.
    #[must_use]
    pub fn new(stream: Stream) -> Connection {
        let is_encrypted = stream.is_encrypted();
        let (rx, tx) = stream.split();
        let inbox = ResponseInbox { rx, buffered: None, searched: 0, parse_from: 0, is_touched: false };
        Connection { inbox, tx, is_reused: false, woken: Arc::default(), is_encrypted }
    }

    /// Notes that it is idle from now on.
    pub fn rest(&mut self) {
        self.is_reused = true;
        self.inbox.begin();
        self.woken.0.store(false, Ordering::Relaxed);
    }

    /// As [`Connection::rest`]. Returns whether it [is quiet](Connection::is_quiet).
    pub fn watch(&mut self) -> bool {
        self.rest();
        self.is_quiet()
    }

    /// Returns whether an idle connection is still open, as far as this end knows, and nothing arrived on it
    /// since it is idle.
    pub fn is_quiet(&mut self) -> bool {
        let waker = Waker::from(Arc::clone(&self.woken));
        // A ticket of TLS wakes, too. Once it is received, nothing is left.
        for _ in 0..if self.is_encrypted { TICKET_POLLS_MAX } else { 1 } {
            let received = pin!(self.inbox.rx.recv(Want::Head));
            if received.poll(&mut Context::from_waker(&waker)).is_ready() {
                return false;
            }
            if !self.woken.0.swap(false, Ordering::Relaxed) {
                return true;
            }
        }
        self.woken.0.store(true, Ordering::Relaxed);
        false
    }

    /// Ends a connection after a complete exchange: dropping it alone would reset it.
    pub fn close(mut self) {
        self.tx.finish();
    }
}

impl ResponseInbox {
    /// Resets the state for the response to another request.
    fn begin(&mut self) {
        (self.searched, self.parse_from, self.is_touched) = (0, 0, false);
    }

    /// Returns whether no byte of a response to the present request has arrived.
    #[must_use]
    pub fn is_untouched(&self) -> bool {
        !self.is_touched
    }

    /// Waits for the next head, interim or final, which the caller [takes](ResponseInbox::take_head).
    /// Dropping the future loses nothing.
    ///
    /// # Errors
    /// The connection ended, or the received bytes are no response.
    pub async fn head(&mut self, method: Method) -> Result<ResponseHead, NoResponse> {
        loop {
            if let Some(head) = self.parse(method).map_err(NoResponse::Malformed)? {
                return Ok(head);
            }
            // A small response arrives with its head: the memory is that of a body.
            match self.rx.recv(Want::Body).await {
                Ok(Some(lease)) => self.append(lease),
                Ok(None) => return Err(NoResponse::Broken(io::ErrorKind::UnexpectedEof.into())),
                Err(error) => return Err(NoResponse::Broken(error)),
            }
        }
    }

    fn append(&mut self, lease: Lease) {
        self.is_touched = true;
        match &mut self.buffered {
            Some(buffered) => buffered.append(&lease),
            None => self.buffered = Some(lease),
        }
    }

    /// Takes the bytes from the head at the front on. The caller returns those behind the message to
    /// `buffered`.
    pub fn take(&mut self) -> Lease {
        (self.searched, self.parse_from) = (0, 0);
        self.buffered.take().unwrap_or_else(|| Lease::owned(Vec::new()))
    }

    /// Removes a head of `len` bytes from the front, and returns a copy of it.
    pub fn take_head(&mut self, len: usize) -> Vec<u8> {
        let mut block = self.take();
        let head = block.get(..len).unwrap_or_default().to_vec();
        block.consume(len);
        self.buffered = Some(block).filter(|rest| !rest.is_empty());
        head
    }

    /// Takes the received bytes of a body; `None` if there are none.
    ///
    /// # Errors
    /// The chunked coding is malformed.
    pub fn take_body(&mut self, body: &mut BodyDecoder) -> Result<Option<Lease>, Refusal> {
        let Some(mut lease) = self.buffered.take() else { return Ok(None) };
        let decoded = body.decode(&mut lease)?;
        self.buffered = Some(lease.split_off(decoded.consumed)).filter(|rest| !rest.is_empty());
        lease.truncate(decoded.len);
        Ok(Some(lease).filter(|lease| !lease.is_empty()))
    }

    /// Parses when a head may be complete, or when twice as many bytes have arrived as at the last attempt.
    /// So bytes that are no response are found out soon, and parsing a head that arrives byte by byte takes
    /// linear time.
    fn parse(&mut self, method: Method) -> Result<Option<ResponseHead>, BadResponse> {
        let Some(buffered) = &self.buffered else { return Ok(None) };
        let ended = find_head_end(buffered, self.searched).is_some();
        let come = buffered.len();
        self.searched = come;
        if come == 0 || (!ended && come < self.parse_from) {
            return Ok(None);
        }
        self.parse_from = come.saturating_mul(2).min(HEAD.bytes_max);
        parse_response(buffered, method, &HEAD)
    }
}
