//! A connection to a server: its sending half, and received bytes that have not been parsed.
//!
//! It does not encode requests, or decode the bodies of answers. Invariants: bytes are taken once and in
//! order. Dropping a wait loses none. A head that never ends stops growing at its limit and costs linear
//! time.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use plimsoll_io::{Deadline, Lease, Rx, Stream, Tx, Want};
use plimsoll_wire::http::head::{Method, find_head_end};
use plimsoll_wire::http::response::{ResponseHead, parse_response};
use plimsoll_wire::http::status::Status;

use super::error::{Error, When};
use super::limits::HEAD;

/// A connection to a server.
pub(super) struct Connection {
    pub(super) inbox: Inbox,
    pub(super) tx: Tx,
}

/// The receiving half.
pub(super) struct Inbox {
    pub(super) rx: Rx,
    /// Received bytes that have not been consumed.
    pub(super) buffered: Lease,
    /// How many of them were searched for the end of a head, without result.
    searched: usize,
    /// The length from which parsing is tried even without the end of a head.
    parse_from: usize,
    /// Interim answers to the present request.
    interim: u32,
}

/// The parameters of the wait for an answer.
pub(super) struct HeadWait<'a> {
    pub(super) method: Method,
    pub(super) deadline: &'a Deadline,
    pub(super) first_byte: Duration,
    /// Bound on interim answers, for each piece of a body.
    pub(super) interims_max: u32,
    pub(super) interim_state: &'a InterimState,
}

/// The server's signals before its final answer, for the sending side.
#[derive(Default)]
pub(super) struct InterimState {
    /// Whether a 100 (Continue) came.
    pub(super) may_send: Cell<bool>,
    /// How many interim answers came since the latest piece of a body was sent.
    pub(super) interims: Cell<u32>,
}

impl Connection {
    pub(super) fn new(stream: Stream) -> Connection {
        let (rx, tx) = stream.split();
        let buffered = Lease::owned(Vec::new());
        Connection { inbox: Inbox { rx, buffered, searched: 0, parse_from: 0, interim: 0 }, tx }
    }

    /// Returns whether a keep-alive connection is still open, as far as this end knows, and no bytes arrived
    /// on it.
    pub(super) fn is_quiet(&mut self) -> bool {
        let received = pin!(self.inbox.rx.recv(Want::Head));
        received.poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    /// Ends a connection after a complete exchange: dropping it alone would reset it.
    pub(super) fn close(mut self) {
        self.tx.finish();
    }
}

impl Inbox {
    /// Resets the state for the answer to another request.
    pub(super) fn begin(&mut self) {
        (self.searched, self.parse_from, self.interim) = (0, 0, 0);
    }

    /// Returns whether no byte of an answer to the present request has arrived.
    pub(super) fn is_untouched(&self) -> bool {
        self.buffered.is_empty() && self.interim == 0
    }

    /// Waits for the head of the final answer, and skips interim ones. Dropping the future loses nothing.
    pub(super) async fn final_head(&mut self, wait: &HeadWait<'_>) -> Result<ResponseHead, Error> {
        loop {
            let head = self.head(wait.method).await?;
            if head.status() == Status::SWITCHING_PROTOCOLS {
                return Err(Error::Unexpected);
            }
            if !head.is_interim() {
                return Ok(head);
            }
            self.buffered.consume(head.len());
            (self.searched, self.parse_from) = (0, 0);
            self.interim += 1;
            wait.interim_state.interims.set(wait.interim_state.interims.get() + 1);
            if wait.interim_state.interims.get() > wait.interims_max {
                let is_processing = head.status() == Status::PROCESSING;
                return Err(if is_processing { Error::Late(When::Waiting) } else { Error::Unexpected });
            }
            // "A client MUST be able to parse one or more 1xx responses received prior to a final response,
            // even if the client does not expect one" (RFC 9110, section 15.2).
            wait.interim_state
                .may_send
                .set(wait.interim_state.may_send.get() || head.status() == Status::CONTINUE);
            wait.deadline.after(wait.first_byte);
        }
    }

    async fn head(&mut self, method: Method) -> Result<ResponseHead, Error> {
        loop {
            if let Some(head) = self.parse(method)? {
                return Ok(head);
            }
            match self.rx.recv(Want::Head).await {
                Ok(Some(lease)) if self.buffered.is_empty() => self.buffered = lease,
                Ok(Some(lease)) => self.buffered.append(&lease),
                Ok(None) => return Err(broken(io::ErrorKind::UnexpectedEof.into())),
                Err(error) => return Err(broken(error)),
            }
        }
    }

    /// Parses when a head may be complete, or when twice as many bytes have arrived as at the last attempt.
    /// So bytes that are no answer are found out soon, and parsing a head that arrives byte by byte takes
    /// linear time.
    fn parse(&mut self, method: Method) -> Result<Option<ResponseHead>, Error> {
        let ended = find_head_end(&self.buffered, self.searched).is_some();
        let come = self.buffered.len();
        self.searched = come;
        if come == 0 || (!ended && come < self.parse_from) {
            return Ok(None);
        }
        self.parse_from = come.saturating_mul(2).min(HEAD.bytes_max);
        Ok(parse_response(&self.buffered, method, &HEAD)?)
    }
}

fn broken(source: io::Error) -> Error {
    Error::Broken { when: When::Waiting, source }
}
