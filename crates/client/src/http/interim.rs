//! Interim responses to a request: the client skips them, and its sending side waits for some.
//!
//! It does not receive bytes: the inbox does. Invariant: a server cannot delay the final response for ever
//! with interim ones.

use std::cell::Cell;
use std::time::Duration;

use plimsoll_io::Deadline;
use plimsoll_wire::http::head::Method;
use plimsoll_wire::http::response::ResponseHead;
use plimsoll_wire::http::status::Status;

use super::connection::{NoResponse, ResponseInbox};
use super::error::{Error, When};

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

impl HeadWait<'_> {
    /// Waits for the head of the final answer, and skips interim ones. Dropping the future loses nothing.
    pub(super) async fn final_head(&self, inbox: &mut ResponseInbox) -> Result<ResponseHead, Error> {
        let InterimState { may_send, interims } = self.interim_state;
        loop {
            let head = inbox.head(self.method).await.map_err(error_of)?;
            if head.status() == Status::SWITCHING_PROTOCOLS {
                return Err(Error::Unexpected);
            }
            if !head.is_interim() {
                return Ok(head);
            }
            inbox.take_head(head.len());
            interims.set(interims.get() + 1);
            if interims.get() > self.interims_max {
                let is_processing = head.status() == Status::PROCESSING;
                return Err(if is_processing { Error::Late(When::Waiting) } else { Error::Unexpected });
            }
            // "A client MUST be able to parse one or more 1xx responses received prior to a final response,
            // even if the client does not expect one" (RFC 9110, section 15.2).
            may_send.set(may_send.get() || head.status() == Status::CONTINUE);
            self.deadline.after(self.first_byte);
        }
    }
}

fn error_of(reason: NoResponse) -> Error {
    match reason {
        NoResponse::Broken(source) => Error::Broken { when: When::Waiting, source },
        NoResponse::Malformed(bad) => Error::Malformed(bad),
    }
}
