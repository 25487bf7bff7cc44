//! The conversation on one control connection: commands and replies in turn, until one side ends it.
//!
//! The commands are in `verbs`. Invariants: replies are in the order of their commands. Every wait has a
//! limit. At shutdown, a command in progress is completed.

use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_io::{Either, Instant, Peer, Phase, select};
use plimsoll_operations::{Caller, Operations, Protocol, Visitor};
use plimsoll_wire::ftp::command::parse;

use super::control::{Control, ControlInput, NoCommand};
use super::delivery::Delivery;
use super::encryption::SecureSession;
use super::limits::COMMANDS_PER_TURN_MAX;
use super::reply::{Reply, Then};
use super::serve::Shared;
use super::state::{DataMode, Login, State};
use super::verbs;
use crate::body_sender::{drain, linger};
use crate::limits::UNSENT_BYTES_MAX;

/// A session, as the commands access it.
pub(super) struct Conversation<'a> {
    pub(super) shared: &'a Shared,
    pub(super) control: Control,
    pub(super) peer: Peer,
    pub(super) state: State,
    /// The session's TLS, if the control connection is encrypted.
    pub(super) secure: Option<Box<SecureSession>>,
    /// The latest download, while its last bytes are on their way.
    pub(super) delivery: Option<Box<Delivery>>,
    /// The time since which the client is not logged in, unless it is.
    logged_out_since: Option<Instant>,
}

/// The way in which a session ends.
pub(super) enum Ending {
    /// All replies are sent, and the client sends nothing more.
    Close,
    /// All replies are sent, but the client may still be sending: wait until it has read them.
    Linger,
    /// The connection is broken.
    Abort,
}

/// Serves a session from its first byte to its last. One that `is_implicit` begins with TLS.
pub(super) async fn serve(stream: plimsoll_io::Stream, shared: Rc<Shared>, is_implicit: bool) {
    let mut conversation = Conversation::new(stream, &shared);
    // Boxed: the memory is freed before the session is served.
    if is_implicit && Box::pin(conversation.begin_encrypted()).await.is_err() {
        return;
    }
    let ending = conversation.run().await;
    conversation.delivery = None;
    match ending {
        Ending::Close => {
            conversation.control.stream.tx.finish();
            if conversation.secure.is_some() {
                // TLS sends an end of its own.
                let _: Result<(), ()> = conversation.drain_below(0).await;
            }
        }
        // Boxed: rarely taken, and inlining it would enlarge every session's future.
        Ending::Linger => Box::pin(conversation.linger()).await,
        Ending::Abort => {}
    }
}

/// Refuses a connection for which there is no worker, and ends it: "421 Service not available, closing
/// control connection" is a permitted greeting (RFC 959, section 5.4).
pub(super) async fn refuse(stream: plimsoll_io::Stream, shared: Rc<Shared>) {
    let mut conversation = Conversation::new(stream, &shared);
    conversation.control.send_reply(&Reply::new(421, "All workers are taken; try again shortly."));
    conversation.linger().await;
}

impl<'a> Conversation<'a> {
    fn new(stream: plimsoll_io::Stream, shared: &'a Shared) -> Conversation<'a> {
        let peer = stream.peer().clone();
        let control = Control::new(&shared.io, stream);
        let (state, delivery) = (State::new(), None);
        Conversation { shared, control, peer, state, secure: None, delivery, logged_out_since: None }
    }

    /// Executes commands until one of them, or the end of the input, ends the session.
    async fn run(&mut self) -> Ending {
        self.control.send_reply(&Reply::new(220, "plimsoll is ready."));
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
            let command_time = self.command_time();
            self.report_wait();
            let command = match self.delivery.take() {
                None => self.command(command_time).await,
                // Boxed: most sessions wait for a command without it.
                Some(delivery) => Box::pin(self.command_during(delivery, command_time)).await,
            };
            let reply = match command {
                // Boxed: the memory is freed with the command, so that an idle session is small.
                Ok(ControlInput::Line(line)) => Box::pin(self.execute(line)).await,
                Ok(ControlInput::TooLong) => Reply::new(500, "The line is too long."),
                Ok(ControlInput::Closed) => return self.end_session().await,
                Err(NoCommand::Evicted) => {
                    self.control.send_reply(&reply_without_command(&NoCommand::Evicted));
                    // An evicted connection is not polled again, so it must not wait.
                    return Ending::Close;
                }
                Err(reason) => reply_without_command(&reason),
            };
            self.control.send_reply(&reply);
            match reply.then {
                Then::Command => {}
                // Boxed: rarely taken.
                Then::Handshake => {
                    if let Err(ending) = Box::pin(self.start_tls()).await {
                        return ending;
                    }
                }
                Then::End => return self.end_session().await,
            }
        }
    }

    /// Reports that the server waits for a command. A session of an account keeps its slot meanwhile.
    fn report_wait(&self) {
        let phase = match self.state.login {
            Login::None | Login::NameGiven(_) => Phase::Waiting,
            Login::Guest => Phase::Idle,
            Login::Account(_) => return,
        };
        self.control.stream.slot().enter(phase, self.shared.io.now());
    }

    async fn execute(&mut self, line: Vec<u8>) -> Reply {
        self.control.stream.slot().enter(Phase::Working, self.shared.io.now());
        let Ok(command) = parse(&line) else {
            return Reply::new(500, "There is no such command; HELP lists those that there are.");
        };
        verbs::execute(self, command.verb, command.argument).await.unwrap_or_else(|refused| refused)
    }

    /// Waits for a command, and ends the audit entry of a download when the client has received it, before
    /// the command is executed at the latest.
    async fn command_during(
        &mut self,
        delivery: Box<Delivery>,
        command_time: Duration,
    ) -> Result<ControlInput, NoCommand> {
        let mut command = pin!(self.command(command_time));
        if let Either::Left(input) = select(command.as_mut(), delivery.wait()).await {
            return input;
        }
        drop(delivery);
        command.await
    }

    /// Waits for a command. Closes a data port if no transfer is requested within the connect time: sessions
    /// that transfer nothing must not occupy ports.
    async fn command(&mut self, command_time: Duration) -> Result<ControlInput, NoCommand> {
        let (io, limits) = (&self.shared.io, self.shared.limits());
        let now = io.now();
        let DataMode::Passive(port) = &self.state.data_mode else {
            return self.control.command(io, limits, command_time).await;
        };
        let port_time = port.until - now;
        if port_time >= command_time {
            return self.control.command(io, limits, command_time).await;
        }
        if !port_time.is_zero() {
            match self.control.command(io, limits, port_time).await {
                Err(NoCommand::Idle) => {}
                input => return input,
            }
        }
        self.state.data_mode = DataMode::Unset;
        self.control.command(io, limits, command_time.saturating_sub(port_time)).await
    }

    /// Returns the time limit for the next command.
    pub(super) fn command_time(&mut self) -> Duration {
        let (now, limits) = (self.shared.io.now(), self.shared.limits());
        self.logged_out_since = match self.state.login {
            Login::None | Login::NameGiven(_) => self.logged_out_since.or(Some(now)),
            Login::Guest | Login::Account(_) => None,
        };
        match self.logged_out_since {
            Some(since) => limits.login_time.saturating_sub(now - since),
            None => limits.idle_time,
        }
    }

    pub(super) async fn end_session(&mut self) -> Ending {
        match (self.drain_below(0).await, self.control.is_empty()) {
            (Err(()), _) => Ending::Abort,
            (Ok(()), true) => Ending::Close,
            (Ok(()), false) => Ending::Linger,
        }
    }

    async fn drain(&mut self) -> Result<(), ()> {
        self.drain_below(UNSENT_BYTES_MAX).await
    }

    /// Waits until at most `below` bytes of replies are unsent; an error if the client stalled.
    async fn drain_below(&mut self, below: u64) -> Result<(), ()> {
        let (Control { stream, deadline, .. }, limits) = (&mut self.control, self.shared.limits());
        drain(&mut stream.tx, below, deadline, limits.send_time).await.map_err(|_| ())
    }

    /// Ends a connection whose client may still be sending, so that it receives the last reply before the
    /// close.
    async fn linger(mut self) {
        let (Control { stream, deadline, .. }, limits) = (&mut self.control, self.shared.limits());
        linger(&self.shared.io, stream, deadline, limits.linger_time).await;
    }

    /// Returns the client, for an audit entry.
    pub(super) fn visitor(&self) -> Visitor {
        let (io, peer) = (self.shared.io.clone(), self.peer.clone());
        let is_protected = self.control.stream.is_protected();
        Visitor { io, peer, protocol: Protocol::Ftp, is_protected }
    }

    /// Returns the operations, and the caller with its current permissions: a permission that has ended is
    /// gone at the next command.
    pub(super) async fn caller(&mut self) -> Result<(&Operations, Caller), Reply> {
        let (Login::Account(caller), Some(operations)) =
            (&mut self.state.login, &self.shared.services.operations)
        else {
            return Err(Reply::new(550, "Guests can look and download, and nothing else."));
        };
        let now = operations.renew(caller).await?;
        **caller = now.clone();
        Ok((operations, now))
    }
}

fn reply_without_command(reason: &NoCommand) -> Reply {
    match reason {
        NoCommand::Idle => Reply::new(421, "Nothing came for a while; goodbye."),
        NoCommand::Stopping => Reply::new(421, "The server is going down; come back later."),
        NoCommand::Late => Reply::new(421, "The command took too long; goodbye."),
        NoCommand::Evicted => Reply::new(421, "Too many connections are open; try again shortly."),
    }
    .and_end()
}
