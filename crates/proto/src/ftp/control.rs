//! The control connection: receives command lines and sends replies.
//!
//! This module interprets no command. Invariants: dropping a wait loses no line. A line received during a
//! transfer is executed after it, in order.

use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

use plimsoll_io::{Deadline, Either, Elapsed, Io, Lease, Segment, Stream, Want, evicted, select};
use plimsoll_wire::ftp::line::{Lines, TooLong};

use super::limits::{Limits, QUEUED_COMMANDS_MAX};
use super::reply::Reply;
use crate::limits::UNSENT_BYTES_MAX;

/// The control connection.
pub(super) struct Control {
    pub(super) stream: Stream,
    pub(super) deadline: Deadline,
    lines: Lines,
    /// Received bytes that have not been parsed.
    buffered: Option<Lease>,
    /// Commands received during a transfer, each with the number of times in a row: some clients send NOOP
    /// every few seconds, for hours.
    queued: VecDeque<(ControlInput, u64)>,
    /// Whether the end of the control connection aborts the transfer in progress.
    pub(super) end_aborts: bool,
}

/// The input of a control connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ControlInput {
    /// A command line, without its end.
    Line(Vec<u8>),
    /// A line above the length limit.
    TooLong,
    /// The client closed its side, or the connection broke.
    Closed,
}

/// The reason why there is no command.
pub(super) enum NoCommand {
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
            buffered: None,
            queued: VecDeque::new(),
            end_aborts: true,
        }
    }

    /// Whether no byte of a next command has arrived.
    pub(super) fn is_empty(&self) -> bool {
        self.queued.is_empty() && self.buffered.is_none() && self.lines.is_empty()
    }

    /// Queues a reply to be sent.
    pub(super) fn send_reply(&mut self, reply: &Reply) {
        let mut bytes = Vec::with_capacity(64);
        reply.write(&mut bytes);
        self.stream.tx.push(Segment::Owned(bytes));
    }

    /// Returns the next command. Waits for its first byte up to `idle_time`, and then for the rest of the
    /// line.
    pub(super) async fn command(
        &mut self,
        io: &Io,
        limits: &Limits,
        idle_time: std::time::Duration,
    ) -> Result<ControlInput, NoCommand> {
        if let Some(input) = self.take_queued() {
            return Ok(input);
        }
        if idle_time.is_zero() {
            // Also for a client that never stops sending.
            return Err(NoCommand::Idle);
        }
        let (idle_until, mut line_until) = (io.now() + idle_time, None);
        let slot = Rc::clone(self.stream.slot());
        loop {
            if let Some(input) = take_line(&mut self.lines, &mut self.buffered, limits.line_bytes_max) {
                return Ok(input);
            }
            let received = receive(&mut self.stream, &mut self.buffered);
            let received = if self.lines.is_empty() {
                // Also after a Telnet command, which starts no line.
                line_until = None;
                self.deadline.set(idle_until);
                let ends = select(io.stopping(), evicted(&*slot));
                match self.deadline.within(select(received, ends)).await {
                    Ok(Either::Left(received)) => received,
                    Ok(Either::Right(Either::Left(()))) => return Err(NoCommand::Stopping),
                    Ok(Either::Right(Either::Right(()))) => return Err(NoCommand::Evicted),
                    Err(Elapsed) => return Err(NoCommand::Idle),
                }
            } else {
                self.deadline.set(*line_until.get_or_insert(io.now() + limits.line_time));
                self.deadline.within(received).await.map_err(|Elapsed| NoCommand::Late)?
            };
            // A broken connection counts as closed: no reply could be sent.
            if !received.unwrap_or(false) {
                return Ok(ControlInput::Closed);
            }
        }
    }

    /// Returns the next line, without a time limit. Dropping the future loses nothing.
    pub(super) async fn line(&mut self, bytes_max: usize) -> ControlInput {
        next_line(&mut self.stream, &mut self.lines, &mut self.buffered, bytes_max).await
    }

    /// Queues input until the transfer has ended.
    pub(super) fn queue(&mut self, input: ControlInput) {
        match self.queued.back_mut() {
            Some((last, times)) if *last == input => *times += 1,
            _ => self.queued.push_back((input, 1)),
        }
    }

    fn take_queued(&mut self) -> Option<ControlInput> {
        let (input, times) = self.queued.front_mut()?;
        *times -= 1;
        if *times > 0 {
            return Some(input.clone());
        }
        self.queued.pop_front().map(|(input, _)| input)
    }

    /// Whether the client has sent more commands during a transfer, or left more replies unread, than the
    /// limits allow.
    pub(super) fn is_overrun(&self) -> bool {
        self.queued.len() > QUEUED_COMMANDS_MAX || self.stream.tx.unsent() > UNSENT_BYTES_MAX
    }

    /// Whether input that matches `predicate` is queued.
    pub(super) fn has_queued(&self, predicate: impl Fn(&ControlInput) -> bool) -> bool {
        self.queued.iter().any(|(input, _)| predicate(input))
    }

    /// Whether the client has closed its side.
    pub(super) fn has_ended(&self) -> bool {
        self.queued.back().is_some_and(|(input, _)| *input == ControlInput::Closed)
    }
}

/// Receives more bytes; false at the client's end.
async fn receive(stream: &mut Stream, buffered: &mut Option<Lease>) -> io::Result<bool> {
    *buffered = stream.rx.recv(Want::Head).await?;
    Ok(buffered.is_some())
}

/// Takes the next line, if it was received completely.
fn take_line(lines: &mut Lines, buffered: &mut Option<Lease>, bytes_max: usize) -> Option<ControlInput> {
    let lease = buffered.as_mut()?;
    let (taken, line) = lines.take(lease, bytes_max);
    lease.consume(taken);
    if lease.is_empty() {
        *buffered = None;
    }
    Some(match line? {
        Ok(line) => ControlInput::Line(line),
        Err(TooLong) => ControlInput::TooLong,
    })
}

async fn next_line(
    stream: &mut Stream,
    lines: &mut Lines,
    buffered: &mut Option<Lease>,
    bytes_max: usize,
) -> ControlInput {
    loop {
        if let Some(input) = take_line(lines, buffered, bytes_max) {
            return input;
        }
        // A broken connection counts as closed: no reply could be sent.
        if !receive(stream, buffered).await.unwrap_or(false) {
            return ControlInput::Closed;
        }
    }
}
