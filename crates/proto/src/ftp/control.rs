//! The control connection: command lines in, answers out.
//!
//! It understands no command. What must hold: dropping a wait loses no line; a line that came while a
//! transfer went on is obeyed after it, in order.

use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

use plimsoll_io::{Deadline, Either, Elapsed, Io, Lease, Segment, Stream, Want, evicted, select};
use plimsoll_wire::ftp::line::{Lines, TooLong};

use super::answer::Answer;
use super::limits::{HELD_COMMANDS_MAX, Limits, UNSENT_BYTES_MAX};

/// The control connection.
pub(super) struct Control {
    pub(super) stream: Stream,
    pub(super) deadline: Deadline,
    lines: Lines,
    /// What was received and not looked at.
    held: Option<Lease>,
    /// Commands that came during a transfer, and how often each in a row: some clients say NOOP every few
    /// seconds, for hours.
    later: VecDeque<(Heard, u64)>,
}

/// What came over the control connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// A command line, without its end.
    Line(Vec<u8>),
    /// A line that was longer than may be.
    TooLong,
    /// The peer's end.
    Ended,
}

/// Why there is no command.
pub(super) enum Silence {
    /// None came while we were willing to wait, or the server ends.
    Idle,
    /// The server ends.
    Stopping,
    /// A line took too long.
    Late,
    /// Others need the connection's slot.
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

    /// Whether nothing of a next command has come yet.
    pub(super) fn is_empty(&self) -> bool {
        self.later.is_empty() && self.held.is_none() && self.lines.is_empty()
    }

    /// Gives an answer to be sent.
    pub(super) fn say(&mut self, answer: &Answer) {
        let mut bytes = Vec::with_capacity(64);
        answer.write(&mut bytes);
        self.stream.tx.push(Segment::Owned(bytes));
    }

    /// The next command: waits for its first byte, and not for long after that.
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
            // Also for who always has something more to say.
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
                // Also after what is Telnet's own, which begins no line.
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
            // What broke the connection ends it too; there is nobody to tell.
            if !received.unwrap_or(false) {
                return Ok(Heard::Ended);
            }
        }
    }

    /// The next line, however long it takes. Dropping the future loses nothing.
    pub(super) async fn line(&mut self, bytes_max: usize) -> Heard {
        next_line(&mut self.stream, &mut self.lines, &mut self.held, bytes_max).await
    }

    /// Keeps what came for later.
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

    /// Whether more has come during a transfer, or was answered and not read, than a client has reason for.
    pub(super) fn is_overrun(&self) -> bool {
        self.later.len() > HELD_COMMANDS_MAX || self.stream.tx.unsent() > UNSENT_BYTES_MAX
    }

    /// Whether one of `those` is kept for later.
    pub(super) fn holds(&self, those: impl Fn(&Heard) -> bool) -> bool {
        self.later.iter().any(|(heard, _)| those(heard))
    }

    /// Whether the peer's end has come, and not only commands.
    pub(super) fn has_ended(&self) -> bool {
        self.later.back().is_some_and(|(heard, _)| *heard == Heard::Ended)
    }
}

/// Receives more; false at the peer's end.
async fn receive(stream: &mut Stream, held: &mut Option<Lease>) -> io::Result<bool> {
    *held = stream.rx.recv(Want::Head).await?;
    Ok(held.is_some())
}

/// The next line, if what was received has its end.
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
        // What broke the connection ends it too; there is nobody to tell.
        if !receive(stream, held).await.unwrap_or(false) {
            return Heard::Ended;
        }
    }
}
