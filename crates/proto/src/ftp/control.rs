//! The control connection: receives command lines and sends replies.
//!
//! This module interprets no command. Invariants: dropping a wait loses no line. A line received during a
//! transfer is executed after it, in order.

use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

use plimsoll_io::{Deadline, Either, Elapsed, Io, Lease, Segment, Stream, Want, evicted, select};
use plimsoll_wire::ftp::line::{Lines, TooLong};

use super::answer::Answer;
use super::limits::{HELD_COMMANDS_MAX, Limits};
use crate::limits::UNSENT_BYTES_MAX;

/// The control connection.
pub(super) struct Control {
    pub(super) stream: Stream,
    pub(super) deadline: Deadline,
    lines: Lines,
    /// Received bytes that have not been parsed.
    held: Option<Lease>,
    /// Commands received during a transfer, each with the number of times in a row: some clients send NOOP
    /// every few seconds, for hours.
    later: VecDeque<(Heard, u64)>,
}

/// The input of a control connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// A command line, without its end.
    Line(Vec<u8>),
    /// A line above the length limit.
    TooLong,
    /// The client closed its side, or the connection broke.
    Ended,
}

/// The reason why there is no command.
pub(super) enum Silence {
    /// The idle timeout elapsed.
    Idle,
    /// The server is shutting down.
    Stopping,
    /// A line was not completed in time.
    Late,
    /// The engine needs the connection's slot.
    Evicted,
}

impl Control {
    pub(super) fn new(io: &Io, stream: Stream) -> Control {
        Control {
            stream,
            deadline: io.deadline(),
            lines: Lines::default(),
            held: None,
            later: VecDeque::new(),
        }
    }

    /// Whether no byte of a next command has arrived.
    pub(super) fn is_empty(&self) -> bool {
        self.later.is_empty() && self.held.is_none() && self.lines.is_empty()
    }

    /// Queues a reply to be sent.
    pub(super) fn say(&mut self, answer: &Answer) {
        let mut bytes = Vec::with_capacity(64);
        answer.write(&mut bytes);
        self.stream.tx.push(Segment::Owned(bytes));
    }

    /// Returns the next command. Waits for its first byte up to `idle_time`, and then for the rest of the
    /// line.
    pub(super) async fn command(
        &mut self,
        io: &Io,
        limits: &Limits,
        idle_time: std::time::Duration,
    ) -> Result<Heard, Silence> {
        if let Some(heard) = self.take_kept() {
            return Ok(heard);
        }
        if idle_time.is_zero() {
            // Also for a client that never stops sending.
            return Err(Silence::Idle);
        }
        let (idle_until, mut line_until) = (io.now() + idle_time, None);
        let slot = Rc::clone(self.stream.slot());
        loop {
            if let Some(heard) = look(&mut self.lines, &mut self.held, limits.line_bytes_max) {
                return Ok(heard);
            }
            let received = receive(&mut self.stream, &mut self.held);
            let received = if self.lines.is_empty() {
                // Also after a Telnet command, which starts no line.
                line_until = None;
                self.deadline.set(idle_until);
                let ends = select(io.stopping(), evicted(&*slot));
                match self.deadline.within(select(received, ends)).await {
                    Ok(Either::Left(received)) => received,
                    Ok(Either::Right(Either::Left(()))) => return Err(Silence::Stopping),
                    Ok(Either::Right(Either::Right(()))) => return Err(Silence::Evicted),
                    Err(Elapsed) => return Err(Silence::Idle),
                }
            } else {
                self.deadline.set(*line_until.get_or_insert(io.now() + limits.line_time));
                self.deadline.within(received).await.map_err(|Elapsed| Silence::Late)?
            };
            // A broken connection counts as closed: no reply could be sent.
            if !received.unwrap_or(false) {
                return Ok(Heard::Ended);
            }
        }
    }

    /// Returns the next line, without a time limit. Dropping the future loses nothing.
    pub(super) async fn line(&mut self, bytes_max: usize) -> Heard {
        next_line(&mut self.stream, &mut self.lines, &mut self.held, bytes_max).await
    }

    /// Queues input until the transfer has ended.
    pub(super) fn keep(&mut self, heard: Heard) {
        match self.later.back_mut() {
            Some((last, times)) if *last == heard => *times += 1,
            _ => self.later.push_back((heard, 1)),
        }
    }

    fn take_kept(&mut self) -> Option<Heard> {
        let (heard, times) = self.later.front_mut()?;
        *times -= 1;
        if *times > 0 {
            return Some(heard.clone());
        }
        self.later.pop_front().map(|(heard, _)| heard)
    }

    /// Whether the client has sent more commands during a transfer, or left more replies unread, than the
    /// limits allow.
    pub(super) fn is_overrun(&self) -> bool {
        self.later.len() > HELD_COMMANDS_MAX || self.stream.tx.unsent() > UNSENT_BYTES_MAX
    }

    /// Whether input that matches `those` is queued.
    pub(super) fn holds(&self, those: impl Fn(&Heard) -> bool) -> bool {
        self.later.iter().any(|(heard, _)| those(heard))
    }

    /// Whether the client has closed its side.
    pub(super) fn has_ended(&self) -> bool {
        self.later.back().is_some_and(|(heard, _)| *heard == Heard::Ended)
    }
}

/// Receives more bytes; false at the client's end.
async fn receive(stream: &mut Stream, held: &mut Option<Lease>) -> io::Result<bool> {
    *held = stream.rx.recv(Want::Head).await?;
    Ok(held.is_some())
}

/// Takes the next line, if it was received completely.
fn look(lines: &mut Lines, held: &mut Option<Lease>, bytes_max: usize) -> Option<Heard> {
    let lease = held.as_mut()?;
    let (taken, line) = lines.take(lease, bytes_max);
    lease.consume(taken);
    if lease.is_empty() {
        *held = None;
    }
    Some(match line? {
        Ok(line) => Heard::Line(line),
        Err(TooLong) => Heard::TooLong,
    })
}

async fn next_line(
    stream: &mut Stream,
    lines: &mut Lines,
    held: &mut Option<Lease>,
    bytes_max: usize,
) -> Heard {
    loop {
        if let Some(heard) = look(lines, held, bytes_max) {
            return heard;
        }
        // A broken connection counts as closed: no reply could be sent.
        if !receive(stream, held).await.unwrap_or(false) {
            return Heard::Ended;
        }
    }
}
