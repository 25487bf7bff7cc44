//! The connection of a client, as the server and the proxy have it: received bytes, the client's name, the
//! records of its requests, and its end.
//!
//! It answers no request. Invariants: every wait has a limit. The connection counts for the client of its
//! request, and between requests for its peer. A connection whose client may still be sending is not closed
//! before the client has read all responses.

use std::any::Any;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::{
    Deadline, Either, Elapsed, Instant, Io, Lease, Networks, Parked, Peer, Phase, Stream, Tx, evicted, select,
};
use plimsoll_wire::http::head::{Head, Version};
use plimsoll_wire::http::status::Status;

use super::access_log::{AccessLog, LogEntry};
use super::body::{BodyState, RequestBody};
use super::counters::Counters;
use super::date_cache::{DateCache, Dates};
use super::forwarded;
use super::inbox::{Inbox, NoHead};
use super::limits::{Limits, OVER_SHARE_DETAIL};
use super::turns::{Answered, Ending, Refused, SideWork};
use crate::body_sender::{drain, linger};

/// The records of all requests on one thread.
pub struct Records {
    /// The access log of this thread.
    pub log: AccessLog,
    /// The counters of all threads.
    pub counters: Arc<Counters>,
    /// The present time as text.
    pub dates: DateCache,
}

impl Records {
    /// Creates the records of a thread.
    pub fn new(log: AccessLog, counters: Arc<Counters>) -> Records {
        Records { log, counters, dates: DateCache::new() }
    }
}

/// The state that the connections of one thread and one configuration share.
pub struct Common {
    /// The engine.
    pub io: Io,
    /// The operator's limits.
    pub limits: Limits,
    /// The proxies whose fields are trusted to name a request's client.
    pub trusted: Networks,
    /// The records of requests.
    pub records: Rc<Records>,
}

impl Common {
    /// Returns the state for another configuration.
    #[must_use]
    pub fn with(&self, limits: &Limits, trusted: &Networks) -> Common {
        let (io, records) = (self.io.clone(), Rc::clone(&self.records));
        Common { io, limits: limits.clone(), trusted: trusted.clone(), records }
    }

    /// Returns the present time as text.
    pub fn dates(&self) -> Dates {
        self.records.dates.at(self.io.wall())
    }
}

/// The connection of a client.
pub struct ServerConnection<'a> {
    /// The state that it shares.
    pub common: &'a Common,
    /// The receiving side.
    pub inbox: Inbox,
    /// The sending side.
    pub tx: Tx,
    /// The deadline of the waits for the client.
    pub deadline: Deadline,
    /// The client of the current request, if a trusted proxy names one.
    client: Option<Peer>,
    /// The state that outlives a request.
    state: ConnectionState,
}

/// The state of a connection between requests, also while it is parked.
pub struct ConnectionState {
    peer: Peer,
    /// Whether the peer is a trusted proxy.
    is_trusted: bool,
    /// Whether the connection is encrypted.
    is_encrypted: bool,
    /// Whether the connection is a Unix socket, and no PROXY header names its client.
    is_unix: bool,
    /// Whether a response has been sent, and the connection is kept alive.
    is_kept_alive: bool,
}

impl<'a> ServerConnection<'a> {
    /// Creates a new connection.
    pub fn new(stream: Stream, common: &'a Common) -> Self {
        let peer = stream.peer().clone();
        let (is_trusted, is_encrypted) = (common.trusted.contain(&peer), stream.is_encrypted());
        let is_unix = peer == Peer::Unix && !stream.is_behind_proxy();
        let state = ConnectionState { peer, is_trusted, is_encrypted, is_unix, is_kept_alive: false };
        Self::resumed(stream, common, state)
    }

    /// Creates a connection that was parked.
    pub fn resumed(stream: Stream, common: &'a Common, state: ConnectionState) -> Self {
        let (rx, tx) = stream.split();
        ServerConnection {
            common,
            inbox: Inbox::new(rx),
            tx,
            deadline: common.io.deadline(),
            client: None,
            state,
        }
    }

    /// Returns the peer of the connection.
    pub fn peer(&self) -> &Peer {
        &self.state.peer
    }

    /// Whether the peer is a trusted proxy.
    pub fn is_trusted(&self) -> bool {
        self.state.is_trusted
    }

    /// Returns the client of the current request.
    pub fn client(&self) -> &Peer {
        self.client.as_ref().unwrap_or(&self.state.peer)
    }

    /// Finds the client of a request, which a trusted proxy may name, and counts the connection for it.
    ///
    /// # Errors
    /// The fields name no client, or its address has its share of the connections. The connection stays
    /// open, because it is the proxy's.
    pub fn identify(&mut self, block: &[u8], head: &Head) -> Result<(), Refused> {
        self.client = None;
        if !self.state.is_trusted {
            return Ok(());
        }
        let client = forwarded::client(head, block, &self.state.peer, &self.common.trusted)
            .map_err(|unclear| Refused::new(Status::BAD_REQUEST, unclear.detail()))?;
        let client = self.client.insert(client);
        match self.tx.slot().count_for(Some(client)) {
            true => Ok(()),
            false => Err(Refused::for_now(OVER_SHARE_DETAIL)),
        }
    }

    /// Whether the client has sent the current request encrypted. A trusted proxy has to report it: its own
    /// connection says nothing about the client's.
    pub fn is_encrypted(&self, block: &[u8], head: &Head) -> bool {
        match self.state.is_trusted {
            true => forwarded::is_https(head, block, &self.common.trusted),
            false => self.state.is_encrypted,
        }
    }

    /// Whether the current request came over a Unix socket, and no proxy reports that the client has sent it
    /// without encryption.
    pub fn is_unix_without_report(&self, block: &[u8], head: &Head) -> bool {
        self.state.is_unix && !forwarded::reports_plain(head, block)
    }

    /// Notes the end of a request. Until the next one, the connection of a trusted proxy counts for no
    /// client.
    pub fn release_client(&self) {
        if self.state.is_trusted {
            self.tx.slot().count_for(None);
        }
    }

    /// Returns the client of the current request, and the request's body.
    pub(super) fn with_body<'b>(&'b mut self, state: &'b mut BodyState) -> (&'b Peer, RequestBody<'b>) {
        let ServerConnection { common, inbox, tx, deadline, client, state: own } = self;
        let body = RequestBody { rx: &mut inbox.rx, tx, deadline, limits: &common.limits, state };
        (client.as_ref().unwrap_or(&own.peer), body)
    }

    /// Counts and logs a response. Without a status, the client has left before a response.
    pub fn count_and_log(&self, block: &[u8], head: Option<&Head>, status: Option<Status>, body_bytes: u64) {
        let Common { records, .. } = self.common;
        if let Some(status) = status {
            records.counters.answered(status, body_bytes);
        }
        let entry = LogEntry {
            peer: self.client(),
            method: head.map_or(&[], |head| head.method_bytes(block)),
            target: head.map_or(&[], |head| head.target(block)),
            version: match head.map(Head::version) {
                Some(Version::Http10) => "HTTP/1.0",
                _ => "HTTP/1.1",
            },
            // As other proxies log it.
            status: status.map_or(499, Status::code),
            body_bytes,
        };
        records.log.write(&self.common.dates(), &entry);
    }

    /// Returns the head of the next request, and the buffer that it is in. `side_work` keeps the connection
    /// from being parked: its next request would wait for the end of that work.
    pub(super) async fn next_head(
        &mut self,
        side_work: Option<&dyn SideWork>,
    ) -> Result<(Lease, Head), NoHead> {
        if self.state.is_kept_alive {
            self.tx.slot().enter(Phase::Idle, self.common.io.now());
        }
        if self.inbox.is_empty() {
            self.idle(side_work).await?;
        }
        let limits = &self.common.limits;
        self.deadline.after(limits.head_time);
        let head = self.inbox.head(&limits.head, &self.deadline).await?;
        self.tx.slot().enter(Phase::Working, self.common.io.now());
        Ok(head)
    }

    /// Waits for the first byte of a request. Gives up after the idle time, at shutdown, when the engine
    /// needs the slot, or when others need the worker.
    async fn idle(&mut self, side_work: Option<&dyn SideWork>) -> Result<(), NoHead> {
        let io = &self.common.io;
        let until = io.now() + self.common.limits.idle_time;
        self.deadline.set(until);
        let unwanted = select(io.stopping(), evicted(&**self.tx.slot()));
        let room_wanted = async {
            if let Some(side_work) = side_work {
                poll_fn(|cx| side_work.poll_ended(cx)).await;
            }
            io.room_wanted().await;
        };
        let given_up = select(unwanted, room_wanted);
        match self.deadline.within(select(self.inbox.first_bytes(), given_up)).await {
            Ok(Either::Left(received)) => received,
            Ok(Either::Right(Either::Right(()))) => Err(NoHead::Idle(until)),
            Ok(Either::Right(Either::Left(_))) | Err(Elapsed) => Err(NoHead::Unwanted),
        }
    }

    /// Returns the head of a request that will be refused. Waits no longer for it than for a client's end.
    pub(super) async fn head_before_refusal(&mut self) -> Result<(Lease, Head), NoHead> {
        let limits = &self.common.limits;
        self.deadline.after(limits.linger_time);
        let first = select(self.inbox.first_bytes(), self.common.io.stopping());
        match self.deadline.within(first).await {
            Ok(Either::Left(received)) => received?,
            Ok(Either::Right(())) | Err(Elapsed) => return Err(NoHead::Unwanted),
        }
        self.inbox.head(&limits.head, &self.deadline).await
    }

    /// Keeps the bytes behind a request. Returns the way in which the connection ends if that was the last.
    pub(super) fn end_request(
        &mut self,
        mut block: Lease,
        head: &Head,
        answered: Answered,
    ) -> Option<Ending> {
        let Answered { keep, has_ended, took_rest, rest } = answered;
        block.consume(head.len());
        self.inbox.buffered = if took_rest { rest } else { join(block, rest) };
        if keep && has_ended {
            self.state.is_kept_alive = true;
            return None;
        }
        // A client that did not request the end may be sending its next request. Closing then would reset the
        // connection, and the client could lose the response.
        let is_last = has_ended && self.inbox.is_empty() && !head.keeps_alive();
        Some(if is_last { Ending::Close } else { Ending::Linger })
    }

    /// Ends the connection, or parks it with the state that `park` makes of its own.
    pub async fn end(self, ending: Ending, park: impl FnOnce(ConnectionState) -> Box<dyn Any + Send>) {
        match ending {
            Ending::Close => self.close().await,
            // Boxed: rarely taken, and inlining it would enlarge every connection's future.
            Ending::Linger => {
                let stream = Stream { rx: self.inbox.rx, tx: self.tx };
                Box::pin(read_to_end(self.common, stream, &self.deadline)).await;
            }
            Ending::Park(until) => Box::pin(self.park(until, park)).await,
            Ending::Abort => {}
        }
    }

    /// Ends a connection on which the client sends nothing more. The kernel delivers the bytes that it has
    /// accepted.
    async fn close(mut self) {
        if self.drain().await {
            self.tx.finish();
            // TLS sends its own end. Dropping that unsent would reset the connection, and lose what the
            // kernel has not delivered.
            self.drain().await;
        }
    }

    /// Waits until all is sent. Returns false if the client does not receive it.
    async fn drain(&mut self) -> bool {
        drain(&mut self.tx, 0, &self.deadline, self.common.limits.send_time).await.is_ok()
    }

    /// Returns the connection to the engine until the client sends its next request.
    async fn park(mut self, until: Instant, park: impl FnOnce(ConnectionState) -> Box<dyn Any + Send>) {
        if !self.drain().await {
            return;
        }
        let ServerConnection { common, inbox, mut tx, deadline, state, .. } = self;
        if tx.park(Parked { state: park(state), until }).is_err() {
            read_to_end(common, Stream { rx: inbox.rx, tx }, &deadline).await;
        }
    }
}

/// Ends a connection whose client may still be sending.
async fn read_to_end(common: &Common, mut stream: Stream, deadline: &Deadline) {
    linger(&common.io, &mut stream, deadline, common.limits.linger_time).await;
}

/// Joins the bytes that were received behind a head with those received later.
fn join(mut block: Lease, rest: Option<Lease>) -> Option<Lease> {
    if let Some(rest) = rest {
        block.append(&rest);
    }
    Some(block).filter(|block| !block.is_empty())
}
