//! A connection: one request and its response.
//!
//! Invariants: every wait has its limit. A client that sends too much is not reset before it has read its
//! response. Bytes that were not sent are not reported as sent.

use std::future::pending;
use std::rc::Rc;

use plimsoll_auth::Secret;
use plimsoll_content::{OpenFile, is_hidden, open};
use plimsoll_io::{Deadline, Either, Lease, Phase, Segment, Stream, Want, select};
use plimsoll_operations::{
    AuditEntry, Caller, Error, HomePath, Operation, Protocol, ReadAccess, VisibleEntries, Visitor,
};
use plimsoll_store::{Error as StoreError, Path};
use plimsoll_wire::classic::{Answer, Credentials, LineBuffer, Request, WipedLine};

use super::refusal::reason;
use super::serve::Shared;
use crate::body_sender::{BodySender, SendError, drain, linger, while_permitted};

/// The state of a connection.
struct Conversation<'a> {
    shared: &'a Shared,
    stream: Stream,
    deadline: Deadline,
    /// Received bytes that have not been parsed.
    buffered: Option<Lease>,
}

/// The reason why a conversation ends early.
enum EndReason {
    /// The request is refused. The client gets the reason.
    Refused(String),
    /// The client has closed its side without a request.
    Ended,
    /// The connection is broken, or the data sent on it is incomplete.
    Broken,
}

impl From<Error> for EndReason {
    fn from(error: Error) -> EndReason {
        EndReason::Refused(reason(&error))
    }
}

/// Serves a connection from its first byte to its last.
pub(super) async fn serve(stream: Stream, shared: Rc<Shared>) {
    let mut conversation = Conversation::new(stream, &shared);
    match conversation.run().await {
        Ok(()) | Err(EndReason::Ended) => {}
        Err(EndReason::Refused(reason)) => conversation.send_response(&Answer::Refused(reason.into_bytes())),
        Err(EndReason::Broken) => return,
    }
    conversation.end().await;
}

/// Refuses a connection for which there is no worker, and ends it.
pub(super) async fn refuse(stream: Stream, shared: Rc<Shared>) {
    let mut conversation = Conversation::new(stream, &shared);
    conversation.send_response(&Answer::Refused(b"all workers are taken; try again shortly".to_vec()));
    conversation.end().await;
}

impl<'a> Conversation<'a> {
    fn new(stream: Stream, shared: &'a Shared) -> Conversation<'a> {
        Conversation { shared, stream, deadline: shared.io.deadline(), buffered: None }
    }

    async fn run(&mut self) -> Result<(), EndReason> {
        let line = self.line(false).await?;
        self.enter(Phase::Working);
        let request = Request::parse(&line);
        // The password does not stay in memory during the transfer.
        drop(line);
        match request.map_err(|bad| EndReason::Refused(bad.to_string()))? {
            Request::New(credentials) => self.sign_up(credentials).await,
            Request::Get(credentials) => self.get(credentials).await,
        }
    }

    async fn sign_up(&mut self, Credentials { name, password }: Credentials) -> Result<(), EndReason> {
        // A name that is not UTF-8 is not a valid name, and is refused as such.
        let (name, password) = (String::from_utf8_lossy(&name), Secret::new(password.to_vec()));
        self.shared.operations.sign_up(&self.visitor(), &name, &password).await?;
        self.send_response(&Answer::Done);
        Ok(())
    }

    async fn get(&mut self, credentials: Credentials) -> Result<(), EndReason> {
        let caller = self.log_in(credentials).await?;
        self.stream.slot().authenticate();
        self.send_response(&Answer::Done);
        let name = self.line(true).await?;
        // Reject a right that has ended while the client chose a name.
        let caller = self.shared.operations.renew(&caller).await?;
        let (opened, audit) = self.open(&caller, &name).await?;
        self.send(opened, audit).await
    }

    /// Authenticates the client. The login gets an audit entry, because no request need follow it.
    async fn log_in(&self, Credentials { name, password }: Credentials) -> Result<Caller, EndReason> {
        let (operations, visitor) = (&self.shared.operations, self.visitor());
        let tried = String::from_utf8_lossy(&name);
        let audit = operations.audit_log().begin(&visitor, Operation::LogIn, &tried, &"");
        let password = Secret::new(password.to_vec());
        if let Err(refused) = operations.check_password_channel(&visitor) {
            return Ok(audit.end(Err(refused))?);
        }
        let shown = operations.auth().by_password(&visitor.io, &name, &password, &visitor.peer).await;
        Ok(Caller::new(visitor, audit.end(shown)?))
    }

    /// Opens a file of the caller's home or, if the home has no such file, of the common site.
    async fn open(&self, caller: &Caller, name: &[u8]) -> Result<(OpenFile, AuditEntry), EndReason> {
        let Shared { io, settings, operations } = self.shared;
        let path = Path::parse(name).map_err(|bad| Error::Store(StoreError::Path(bad)))?;
        let common = settings.common.as_ref().filter(|_| !is_hidden(path.as_bytes()));
        let common = common.map(|site| site.location(path.as_bytes().to_vec()));
        let (access, transfer) = operations.read(caller, &HomePath::own(path), Operation::Download).await?;
        let ReadAccess { location, shown, .. } = access;
        let own = if shown == VisibleEntries::All {
            // With the account's `Io`, the transfer counts for the account's share.
            open(caller.io(), &location, 0).await
        } else {
            Err(StoreError::NotFound)
        };
        let opened = match (own, common) {
            (Err(StoreError::NotFound), Some(common)) => open(io, &common, 0).await,
            (own, _) => own,
        };
        match opened {
            Ok(opened) => Ok((opened, transfer)),
            Err(error) => {
                Err(transfer.end::<(), _>(Err(error)).err().map_or(EndReason::Broken, EndReason::from))
            }
        }
    }

    async fn send(&mut self, (stat, source): OpenFile, mut audit: AuditEntry) -> Result<(), EndReason> {
        let bytes = stat.size;
        self.send_response(&Answer::File(bytes));
        let (io, send_time) = (&self.shared.io, self.shared.settings.limits.send_time);
        let mut sender = BodySender::new(io, &mut self.stream.tx, &self.deadline, send_time);
        let sending = async {
            sender.push_source(source, 0..bytes).await?;
            sender.drain(0).await
        };
        let sent = while_permitted(audit.permit(), sending).await;
        audit.moved(sender.sent());
        match sent {
            Ok(()) => {
                audit.done();
                return Ok(());
            }
            Err(SendError::Source(error)) => {
                if let Err(error) = audit.end::<(), _>(Err(error)) {
                    // Logs the reason. The client expects bytes, so it gets none.
                    reason(&error);
                }
            }
            Err(SendError::Connection(_)) => audit.failed("broken off"),
        }
        Err(EndReason::Broken)
    }

    /// Returns the next line, without its end. A line that is `is_started` is received to its end even during
    /// shutdown.
    async fn line(&mut self, is_started: bool) -> Result<WipedLine, EndReason> {
        let (mut line, mut is_started) = (LineBuffer::default(), is_started);
        self.deadline.after(self.shared.settings.limits.line_time);
        loop {
            if let Some(mut buffered) = self.buffered.take() {
                let (taken, whole) =
                    line.take(&buffered).map_err(|long| EndReason::Refused(long.to_string()))?;
                buffered.consume(taken);
                self.buffered = Some(buffered).filter(|buffered| !buffered.is_empty());
                if let Some(whole) = whole {
                    return Ok(whole);
                }
            }
            self.buffered = Some(self.receive(is_started).await?);
            is_started = true;
        }
    }

    async fn receive(&mut self, is_started: bool) -> Result<Lease, EndReason> {
        let stopping = async { if is_started { pending().await } else { self.shared.io.stopping().await } };
        let received = select(self.stream.rx.recv(Want::Head), stopping);
        match self.deadline.within(received).await {
            Ok(Either::Left(Ok(Some(lease)))) => Ok(lease),
            Ok(Either::Left(Ok(None))) if !is_started => Err(EndReason::Ended),
            Ok(Either::Left(Ok(None))) => Err(refused("the line did not come to its end")),
            Ok(Either::Left(Err(_))) => Err(EndReason::Broken),
            Ok(Either::Right(())) => Err(refused("the server is going down; come back later")),
            Err(_) => Err(refused("no line came in time")),
        }
    }

    fn send_response(&mut self, answer: &Answer) {
        let mut line = Vec::with_capacity(64);
        answer.write(&mut line);
        self.stream.tx.push(Segment::Owned(line));
    }

    /// Ends the connection once the client has received all of the response. The client may have sent more
    /// than the server read.
    async fn end(&mut self) {
        let limits = &self.shared.settings.limits;
        if drain(&mut self.stream.tx, 0, &self.deadline, limits.send_time).await.is_err() {
            return;
        }
        linger(&self.shared.io, &mut self.stream, &self.deadline, limits.linger_time).await;
    }

    /// Reports the connection's phase to its slot.
    fn enter(&self, phase: Phase) {
        self.stream.slot().enter(phase, self.shared.io.now());
    }

    fn visitor(&self) -> Visitor {
        let (io, peer) = (self.shared.io.clone(), self.stream.peer().clone());
        Visitor { io, peer, protocol: Protocol::Classic, is_protected: self.stream.is_protected() }
    }
}

fn refused(reason: &str) -> EndReason {
    EndReason::Refused(reason.to_owned())
}
