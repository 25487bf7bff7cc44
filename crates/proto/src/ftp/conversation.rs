//! One session: commands and answers in turn, until one side has enough.
//!
//! What commands do is in `verbs`. What must hold: answers come in the order of their commands; every wait
//! has its limit; at the order to stop, what was begun is finished.

use std::rc::Rc;
use std::time::Duration;

use plimsoll_io::{Elapsed, Instant, Peer, Phase};
use plimsoll_operations::{Caller, Operations, Protocol, Visitor};
use plimsoll_wire::ftp::command::parse;

use super::answer::Answer;
use super::control::{Control, Heard, Silence};
use super::limits::{COMMANDS_PER_TURN_MAX, UNSENT_BYTES_MAX};
use super::serve::Shared;
use super::state::{State, Way, Who};
use super::verbs;

/// A session, as the verbs see it.
pub(super) struct Conversation<'a> {
    pub(super) shared: &'a Shared,
    pub(super) control: Control,
    pub(super) peer: Peer,
    pub(super) state: State,
    /// Since when nobody is logged in, if nobody is.
    nobody_since: Option<Instant>,
}

/// How a session ends.
enum Ending {
    /// All is said, and nothing more is to come.
    Close,
    /// All is said, but the peer may still be sending: wait until it has read the answer.
    Linger,
    /// The connection is broken.
    Abort,
}

/// Serves a session from its first byte to its last.
pub(super) async fn hold(stream: plimsoll_io::Stream, shared: Rc<Shared>) {
    let mut conversation = Conversation::new(stream, &shared);
    match conversation.run().await {
        Ending::Close => conversation.control.stream.tx.finish(),
        // Apart, because it is rare: room for it in every session's memory would be a waste.
        Ending::Linger => Box::pin(conversation.linger()).await,
        Ending::Abort => {}
    }
}

/// Tells who cannot be served now so, and ends: "421 Service not available, closing control connection" is
/// an answer to coming (RFC 959, section 5.4).
pub(super) async fn refuse(stream: plimsoll_io::Stream, shared: Rc<Shared>) {
    let mut conversation = Conversation::new(stream, &shared);
    conversation.control.say(&Answer::new(421, "All workers are taken; try again shortly."));
    conversation.linger().await;
}

impl<'a> Conversation<'a> {
    fn new(stream: plimsoll_io::Stream, shared: &'a Shared) -> Conversation<'a> {
        let peer = stream.peer().clone();
        let control = Control::new(&shared.io, stream);
        Conversation { shared, control, peer, state: State::new(), nobody_since: None }
    }

    /// Obeys commands until one of them, or what is no command, is the last.
    async fn run(&mut self) -> Ending {
        self.control.say(&Answer::new(220, "plimsoll is ready."));
        let mut in_a_row = 0;
        loop {
            if self.drain().await.is_err() {
                return Ending::Abort;
            }
            in_a_row = if self.control.is_empty() { 0 } else { in_a_row + 1 };
            if in_a_row >= COMMANDS_PER_TURN_MAX {
                in_a_row = 0;
                self.shared.io.yield_now().await;
            }
            let patience = self.patience();
            self.report_wait();
            let answer = match self.command(patience).await {
                // In memory of its own, which goes when the command is obeyed: an idle session is then
                // small.
                Ok(Heard::Line(line)) => Box::pin(self.obey(line)).await,
                Ok(Heard::TooLong) => Answer::new(500, "The line is too long."),
                Ok(Heard::Ended) => return self.ending().await,
                Err(Silence::Evicted) => {
                    self.control.say(&of_silence(&Silence::Evicted));
                    // It is polled no more, so that nothing can be waited for.
                    return Ending::Close;
                }
                Err(silence) => of_silence(&silence),
            };
            self.control.say(&answer);
            if answer.ends {
                return self.ending().await;
            }
        }
    }

    /// Reports that the server waits for a command. A session of an account keeps its slot meanwhile.
    fn report_wait(&self) {
        let phase = match self.state.who {
            Who::Nobody | Who::Named(_) => Phase::Waiting,
            Who::Guest => Phase::Idle,
            Who::Person(_) => return,
        };
        self.control.stream.slot().enter(phase, self.shared.io.now());
    }

    async fn obey(&mut self, line: Vec<u8>) -> Answer {
        self.control.stream.slot().enter(Phase::Working, self.shared.io.now());
        let Ok(command) = parse(&line) else {
            return Answer::new(500, "There is no such command; HELP lists those that there are.");
        };
        verbs::obey(self, command.verb, command.argument).await.unwrap_or_else(|refused| refused)
    }

    /// Waits for a command. A data port for which no transfer is asked within the connect time is closed:
    /// sessions that transfer nothing must not hold the ports.
    async fn command(&mut self, patience: Duration) -> Result<Heard, Silence> {
        let (io, limits) = (&self.shared.io, self.shared.limits());
        let now = io.now();
        let Way::Passive(_, until) = self.state.way else {
            return self.control.command(io, limits, patience).await;
        };
        let port_time = until - now;
        if port_time >= patience {
            return self.control.command(io, limits, patience).await;
        }
        if !port_time.is_zero() {
            match self.control.command(io, limits, port_time).await {
                Err(Silence::Idle) => {}
                heard => return heard,
            }
        }
        self.state.way = Way::Unset;
        self.control.command(io, limits, patience.saturating_sub(port_time)).await
    }

    /// How long a command is waited for.
    fn patience(&mut self) -> Duration {
        let (now, limits) = (self.shared.io.now(), self.shared.limits());
        self.nobody_since = match self.state.who {
            Who::Nobody | Who::Named(_) => self.nobody_since.or(Some(now)),
            Who::Guest | Who::Person(_) => None,
        };
        match self.nobody_since {
            Some(since) => limits.login_time.saturating_sub(now - since),
            None => limits.idle_time,
        }
    }

    async fn ending(&mut self) -> Ending {
        match (self.drain_below(0).await, self.control.is_empty()) {
            (Err(()), _) => Ending::Abort,
            (Ok(()), true) => Ending::Close,
            (Ok(()), false) => Ending::Linger,
        }
    }

    async fn drain(&mut self) -> Result<(), ()> {
        self.drain_below(UNSENT_BYTES_MAX).await
    }

    /// Waits until at most `below` bytes of answers are unsent; an error where the peer takes none of them.
    async fn drain_below(&mut self, below: u64) -> Result<(), ()> {
        let Control { stream, deadline, .. } = &mut self.control;
        loop {
            let before = stream.tx.unsent();
            deadline.after(self.shared.limits().send_time);
            match deadline.within(stream.tx.drain(below)).await {
                Ok(drained) => return drained.map_err(drop),
                Err(Elapsed) if stream.tx.unsent() < before => {}
                Err(Elapsed) => return Err(()),
            }
        }
    }

    /// Ends a connection on which the peer may still be sending: it is read until it ends, so that it is not
    /// reset before it has read the answer.
    async fn linger(mut self) {
        self.shared.io.leave();
        self.control.stream.slot().enter(Phase::Ending, self.shared.io.now());
        let Control { stream, deadline, .. } = &mut self.control;
        loop {
            let before = stream.tx.unsent();
            deadline.after(self.shared.limits().linger_time);
            match deadline.within(stream.finish()).await {
                Err(Elapsed) if stream.tx.unsent() < before => {}
                _ => return,
            }
        }
    }

    /// Who is at the other end, for a record.
    pub(super) fn visitor(&self) -> Visitor {
        Visitor { io: self.shared.io.clone(), peer: self.peer.clone(), protocol: Protocol::Ftp }
    }

    /// The operations, and who asks for them as they are now: a right that has ended is over at the next
    /// command.
    pub(super) async fn caller(&mut self) -> Result<(&Operations, Caller), Answer> {
        let (Who::Person(caller), Some(operations)) = (&mut self.state.who, &self.shared.served.operations)
        else {
            return Err(Answer::new(550, "Guests can look and download, and nothing else."));
        };
        let now = operations.renew(caller).await?;
        **caller = now.clone();
        Ok((operations, now))
    }
}

fn of_silence(silence: &Silence) -> Answer {
    match silence {
        Silence::Idle => Answer::new(421, "Nothing came for a while; goodbye."),
        Silence::Stopping => Answer::new(421, "The server is going down; come back later."),
        Silence::Late => Answer::new(421, "The command took too long; goodbye."),
        Silence::Evicted => Answer::new(421, "Too many connections are open; try again shortly."),
    }
    .and_end()
}
