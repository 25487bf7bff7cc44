//! The requests of a connection in turn: the loop that a server's conversation and a proxy's have in common.
//!
//! It answers no request. Invariants: a request is answered before the next is awaited. After some requests
//! in a row, other connections have their turn. Malformed input is the last input.

use std::task::{Context, Poll};

use plimsoll_io::{Instant, Lease, Resume};
use plimsoll_wire::http::head::Head;
use plimsoll_wire::http::refusal::Refusal;
use plimsoll_wire::http::status::Status;

use super::connection::ServerConnection;
use super::inbox::NoHead;
use super::limits::REQUESTS_PER_TURN_MAX;

/// The way in which a connection ends.
pub enum Ending {
    /// All responses are sent, and the client sends nothing more.
    Close,
    /// All responses are sent, but the client may still be sending: wait until it has read them.
    Linger,
    /// The client's next request resumes the connection, until this instant.
    Park(Instant),
    /// The connection is broken, or must not end cleanly.
    Abort,
}

/// The reason for which a request is refused before it is answered.
#[derive(Clone, Copy)]
pub struct Refused {
    /// The status of the response.
    pub status: Status,
    /// The text for the client.
    pub detail: &'static str,
    /// Whether the client may try again a moment later.
    pub is_temporary: bool,
}

/// There is no worker for a request.
const BUSY: Refused = Refused::for_now("All workers are taken; try again shortly.");
/// A head was not received in time.
const LATE: Refused = Refused::new(Status::REQUEST_TIMEOUT, "The request's head took too long.");

/// A connection that answers requests.
pub trait Turns<'a> {
    /// Returns the connection.
    fn connection(&mut self) -> &mut ServerConnection<'a>;

    /// Returns the work that the connection's task performs beside the requests, if there can be any.
    fn side_work(&self) -> Option<&'a dyn SideWork> {
        None
    }

    /// Answers a request, whose head is at the start of the buffer. Returns the way in which the connection
    /// ends if it cannot have another request.
    fn answer_request(
        &mut self,
        block: &Lease,
        head: &Head,
    ) -> impl Future<Output = Result<Answered, Ending>>;

    /// Refuses a request, or input that is none, and ends the connection.
    fn refuse(&mut self, refused: Refused, block: &[u8], head: Option<&Head>)
    -> impl Future<Output = Ending>;
}

/// A request that was answered.
pub struct Answered {
    /// Whether the connection may have another request.
    pub keep: bool,
    /// Whether the body was received to its end.
    pub has_ended: bool,
    /// Whether the bytes behind the head were taken from its buffer, as the start of the body.
    pub took_rest: bool,
    /// Bytes that were received behind the body.
    pub rest: Option<Lease>,
}

/// Work that a connection's task performs beside its requests.
pub trait SideWork {
    /// Ready when there is none. The task polls the work itself, and polls this again after its end.
    fn poll_ended(&self, cx: &mut Context<'_>) -> Poll<()>;
}

impl Refused {
    /// Creates a refusal.
    pub const fn new(status: Status, detail: &'static str) -> Refused {
        Refused { status, detail, is_temporary: false }
    }

    /// Creates a refusal of a request that may succeed a moment later: "The server MAY send a Retry-After
    /// header field to suggest an appropriate amount of time for the client to wait before retrying the
    /// request" (RFC 9110, section 15.6.4).
    pub const fn for_now(detail: &'static str) -> Refused {
        Refused { status: Status::SERVICE_UNAVAILABLE, detail, is_temporary: true }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Refused {
        Refused::new(refusal.status(), refusal.detail())
    }
}

/// Answers requests until one of them, or malformed input, is the last.
pub async fn answer_in_turn<'a>(turns: &mut impl Turns<'a>) -> Ending {
    let mut in_a_row = 0;
    loop {
        let side_work = turns.side_work();
        let connection = turns.connection();
        in_a_row = if connection.inbox.is_empty() { 0 } else { in_a_row + 1 };
        if in_a_row >= REQUESTS_PER_TURN_MAX {
            in_a_row = 0;
            connection.common.io.yield_now().await;
        }
        match connection.next_head(side_work).await {
            Ok((block, head)) => {
                // Boxed: the memory is freed with the request. An idle connection is much smaller, and no
                // request measurably slower.
                let answered = match Box::pin(turns.answer_request(&block, &head)).await {
                    Ok(answered) => answered,
                    Err(ending) => return ending,
                };
                if let Some(ending) = turns.connection().end_request(block, &head, answered) {
                    return ending;
                }
            }
            Err(NoHead::Ended) => return Ending::Close,
            Err(NoHead::Idle(until)) => return Ending::Park(until),
            // The client may be sending a request: closing on it would reset the connection.
            Err(NoHead::Unwanted) => return Ending::Linger,
            // Boxed: rarely taken.
            Err(NoHead::Late) => return Box::pin(turns.refuse(LATE, &[], None)).await,
            Err(NoHead::Refused(refusal)) => {
                return Box::pin(turns.refuse(refusal.into(), &[], None)).await;
            }
        }
    }
}

/// As [`answer_in_turn`], for a connection that was parked.
pub async fn resume_turns<'a>(turns: &mut impl Turns<'a>, action: Resume) -> Ending {
    match action {
        Resume::Serve => answer_in_turn(turns).await,
        // Boxed: rarely taken, and inlining it would enlarge every connection's future.
        Resume::Refuse => Box::pin(refuse_busy(turns)).await,
        // The client may be sending a request: closing on it would reset the connection.
        Resume::End => Ending::Linger,
    }
}

/// Refuses a request because no worker is free. Waits for the request first, so that the client takes the
/// refusal for its response.
pub async fn refuse_busy<'a>(turns: &mut impl Turns<'a>) -> Ending {
    match turns.connection().head_before_refusal().await {
        Ok((block, head)) => turns.refuse(BUSY, &block, Some(&head)).await,
        Err(NoHead::Late | NoHead::Unwanted | NoHead::Idle(_)) => turns.refuse(BUSY, &[], None).await,
        Err(NoHead::Refused(refusal)) => turns.refuse(refusal.into(), &[], None).await,
        Err(NoHead::Ended) => Ending::Close,
    }
}
