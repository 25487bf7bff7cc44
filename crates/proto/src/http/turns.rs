//! The requests of a connection in turn: the loop that a server's conversation and a proxy's have in common.
//!
//! It answers no request. Invariants: a request is answered before the next is awaited. Every wait has a
//! limit. After some requests in a row, other connections have their turn. Malformed input is the last input.

use std::future::poll_fn;
use std::task::{Context, Poll};

use plimsoll_io::{Deadline, Either, Elapsed, Instant, Io, Lease, Phase, Slot, evicted, select};
use plimsoll_wire::http::head::Head;
use plimsoll_wire::http::status::Status;

use super::inbox::{Inbox, NoHead};
use super::limits::{Limits, REQUESTS_PER_TURN_MAX};

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

/// A connection that answers requests.
pub trait Turns {
    /// Returns the parts of the connection that wait for a request.
    fn waiting(&mut self) -> Waiting<'_>;

    /// Answers a request, whose head is at the start of the buffer. Returns the way in which the connection
    /// ends if it cannot have another request.
    fn answer_request(
        &mut self,
        block: &Lease,
        head: &Head,
    ) -> impl Future<Output = Result<Answered, Ending>>;

    /// Answers malformed input, and ends the connection.
    fn refuse_input(&mut self, status: Status, detail: &'static str) -> impl Future<Output = Ending>;
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

/// The parts of a connection that wait for a request.
pub struct Waiting<'a> {
    /// The engine.
    pub io: &'a Io,
    /// The limits of the waits.
    pub limits: &'a Limits,
    /// The received bytes.
    pub inbox: &'a mut Inbox,
    /// The connection's slot.
    pub slot: &'a dyn Slot,
    /// The deadline of the waits.
    pub deadline: &'a Deadline,
    /// Whether a response has been sent, and the connection is kept alive.
    pub is_kept_alive: &'a mut bool,
    /// Work beside the requests. The connection is not parked during it: its next request would wait for the
    /// end of that work.
    pub side_work: Option<&'a dyn SideWork>,
}

/// Answers requests until one of them, or malformed input, is the last.
pub async fn answer_in_turn(connection: &mut impl Turns) -> Ending {
    let mut in_a_row = 0;
    loop {
        let mut waiting = connection.waiting();
        in_a_row = if waiting.inbox.is_empty() { 0 } else { in_a_row + 1 };
        if in_a_row >= REQUESTS_PER_TURN_MAX {
            in_a_row = 0;
            waiting.io.yield_now().await;
        }
        match waiting.next_head().await {
            Ok((block, head)) => {
                // Boxed: the memory is freed with the request. An idle connection is much smaller, and no
                // request measurably slower.
                let answered = match Box::pin(connection.answer_request(&block, &head)).await {
                    Ok(answered) => answered,
                    Err(ending) => return ending,
                };
                if let Some(ending) = connection.waiting().end_request(block, &head, answered) {
                    return ending;
                }
            }
            Err(NoHead::Ended) => return Ending::Close,
            Err(NoHead::Idle(until)) => return Ending::Park(until),
            // The client may be sending a request: closing on it would reset the connection.
            Err(NoHead::Unwanted) => return Ending::Linger,
            // Boxed: rarely taken.
            Err(NoHead::Late) => {
                let detail = "The request's head took too long.";
                return Box::pin(connection.refuse_input(Status::REQUEST_TIMEOUT, detail)).await;
            }
            Err(NoHead::Refused(refusal)) => {
                return Box::pin(connection.refuse_input(refusal.status(), refusal.detail())).await;
            }
        }
    }
}

impl Waiting<'_> {
    /// Returns the head of the next request, and the buffer that it is in.
    async fn next_head(&mut self) -> Result<(Lease, Head), NoHead> {
        if *self.is_kept_alive {
            self.slot.enter(Phase::Idle, self.io.now());
        }
        if self.inbox.is_empty() {
            self.idle().await?;
        }
        self.deadline.after(self.limits.head_time);
        let head = self.inbox.head(&self.limits.head, self.deadline).await?;
        self.slot.enter(Phase::Working, self.io.now());
        Ok(head)
    }

    /// Waits for the first byte of a request. Gives up after the idle time, at shutdown, when the engine
    /// needs the slot, or when others need the worker.
    async fn idle(&mut self) -> Result<(), NoHead> {
        let until = self.io.now() + self.limits.idle_time;
        self.deadline.set(until);
        let unwanted = select(self.io.stopping(), evicted(self.slot));
        let room_wanted = async {
            if let Some(side_work) = self.side_work {
                poll_fn(|cx| side_work.poll_ended(cx)).await;
            }
            self.io.room_wanted().await;
        };
        let given_up = select(unwanted, room_wanted);
        match self.deadline.within(select(self.inbox.first_bytes(), given_up)).await {
            Ok(Either::Left(received)) => received,
            Ok(Either::Right(Either::Right(()))) => Err(NoHead::Idle(until)),
            Ok(Either::Right(Either::Left(_))) | Err(Elapsed) => Err(NoHead::Unwanted),
        }
    }

    /// Keeps the bytes behind a request. Returns the way in which the connection ends if that was the last.
    fn end_request(&mut self, mut block: Lease, head: &Head, answered: Answered) -> Option<Ending> {
        let Answered { keep, has_ended, took_rest, rest } = answered;
        block.consume(head.len());
        self.inbox.buffered = if took_rest { rest } else { join(block, rest) };
        if keep && has_ended {
            *self.is_kept_alive = true;
            return None;
        }
        // A client that did not request the end may be sending its next request. Closing then would reset the
        // connection, and the client could lose the response.
        let is_last = has_ended && self.inbox.is_empty() && !head.keeps_alive();
        Some(if is_last { Ending::Close } else { Ending::Linger })
    }

    /// Returns the head of a request that will be refused. Waits no longer for it than for a client's end.
    ///
    /// # Errors
    /// [`NoHead`], if the head is late or refused, the client leaves, or the server stops.
    pub async fn head_before_refusal(&mut self) -> Result<(Lease, Head), NoHead> {
        self.deadline.after(self.limits.linger_time);
        let first = select(self.inbox.first_bytes(), self.io.stopping());
        match self.deadline.within(first).await {
            Ok(Either::Left(received)) => received?,
            Ok(Either::Right(())) | Err(Elapsed) => return Err(NoHead::Unwanted),
        }
        self.inbox.head(&self.limits.head, self.deadline).await
    }
}

/// Joins the bytes that were received behind a head with those received later.
fn join(mut block: Lease, rest: Option<Lease>) -> Option<Lease> {
    if let Some(rest) = rest {
        block.append(&rest);
    }
    Some(block).filter(|block| !block.is_empty())
}
