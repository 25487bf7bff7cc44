//! The connection of a client: requests and responses in turn, until one side ends it.
//!
//! It does not know origins (`exchange` does). Invariants: responses are in the order of their requests. A
//! malformed request is answered once and ends the connection, because the start of the next request is
//! unknown. At shutdown, a request in progress is completed.

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use core::net::SocketAddr;
use plimsoll_io::{Elapsed, Instant, Lease, Parked, Peer, Resume, Stream, Tx};
use plimsoll_proto::http::limits::OVER_SHARE_DETAIL;
use plimsoll_proto::http::{
    Answered, Ending, Inbox, LogEntry, NoHead, Turns, Waiting, answer_in_turn, forwarded_client,
};
use plimsoll_proto::limits::UNSENT_BYTES_MAX;
use plimsoll_proto::{drain, linger};
use plimsoll_wire::http::head::{Field, Framing, Head, Method, Version};
use plimsoll_wire::http::status::Status;

use crate::body::BodyReader;
use crate::caching;
use crate::exchange::{
    Deadlines, Exchange, Outcome, OutcomeEnding, OwnConnection, RequestBody, address_of, local_address,
};
use crate::fields::forwarded_fields;
use crate::limits::DISCARD_BYTES_MAX;
use crate::own_answers::{AnswerForm, OwnAnswer, try_again};
use crate::proxy::Shared;
use crate::request_head::ClientRequest;
use crate::route::route;
use crate::settings::Settings;
use crate::side_tasks::SideTasks;

/// Serves a connection from its first byte to its last.
pub(crate) async fn serve(stream: Stream, shared: Rc<Shared>) {
    let (state, side) = (ConnectionState::of(&stream, &shared), SideTasks::default());
    let mut client = Client::new(stream, &shared, &side, state);
    let ending = side.beside(pin!(answer_in_turn(&mut client))).await;
    // Boxed: inlining it would enlarge every connection's future.
    side.beside(Box::pin(client.end(ending)).as_mut()).await;
    side.finish().await;
}

/// Resumes a connection that was parked.
pub(crate) async fn resume(stream: Stream, parked: ParkedClient, shared: Rc<Shared>, how: Resume) {
    let side = SideTasks::default();
    let mut client = Client::new(stream, &shared, &side, parked.state);
    let ending = match how {
        Resume::Serve => side.beside(pin!(answer_in_turn(&mut client))).await,
        // Boxed: rarely taken, and inlining it would enlarge every connection's future.
        Resume::Refuse => Box::pin(client.refuse_busy()).await,
        // The client may be sending a request: closing on it would reset the connection.
        Resume::End => Ending::Linger,
    };
    side.beside(Box::pin(client.end(ending)).as_mut()).await;
    side.finish().await;
}

/// Refuses a connection for which there is no worker, and ends it.
pub(crate) async fn refuse(stream: Stream, shared: Rc<Shared>) {
    let (state, side) = (ConnectionState::of(&stream, &shared), SideTasks::default());
    let mut client = Client::new(stream, &shared, &side, state);
    let ending = client.refuse_busy().await;
    client.end(ending).await;
}

struct Client<'a> {
    shared: &'a Rc<Shared>,
    /// The work beside the requests.
    side: &'a SideTasks,
    inbox: Inbox,
    tx: Tx,
    deadlines: Deadlines,
    /// The connection to an origin that belongs to this client.
    own_connection: OwnConnection,
    /// The client of the current request, if a trusted proxy names one.
    client: Option<Peer>,
    /// The state that outlives a request.
    state: ConnectionState,
}

/// The state of a connection between requests.
struct ConnectionState {
    /// The client of the connection.
    peer: Peer,
    /// The address that the client connected to.
    local: Option<SocketAddr>,
    /// Whether the peer is a trusted proxy.
    is_trusted: bool,
    /// Whether a response has been sent, and the connection is kept alive.
    is_kept_alive: bool,
}

/// The state of a parked connection, which waits for its next request.
pub(crate) struct ParkedClient {
    settings: Arc<Settings>,
    state: ConnectionState,
}

impl ParkedClient {
    pub(crate) fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }
}

impl ConnectionState {
    fn of(stream: &Stream, shared: &Shared) -> ConnectionState {
        let peer = stream.peer().clone();
        let is_trusted = shared.settings.trusted.contain(&peer);
        ConnectionState { peer, local: local_address(stream), is_trusted, is_kept_alive: false }
    }
}

impl Turns for Client<'_> {
    fn waiting(&mut self) -> Waiting<'_> {
        Waiting {
            io: &self.shared.io,
            limits: &self.shared.settings.limits,
            inbox: &mut self.inbox,
            slot: &**self.tx.slot(),
            deadline: &self.deadlines.upload,
            is_kept_alive: &mut self.state.is_kept_alive,
            side_work: Some(self.side),
        }
    }

    async fn answer_request(&mut self, block: &Lease, head: &Head) -> Result<Answered, Ending> {
        let has_body = !matches!(head.framing(), Framing::None | Framing::Length(0));
        // Bytes behind a request for an upgrade belong to the tunnel.
        let takes_rest = has_body || head.field(block, Field::Upgrade).is_some();
        let received = block.get(head.len()..).filter(|rest| takes_rest && !rest.is_empty());
        let received = received.map(|rest| Lease::owned(rest.to_vec()));
        let reader = BodyReader::new(head.framing(), received);
        let mut body = RequestBody::new(reader, head.expects_continue());
        let allowed = head.keeps_alive() && !self.shared.io.is_stopping();
        let outcome = self.answer(block, head, &mut body, allowed).await;
        let (status, pushed) = (outcome.status, outcome.body_bytes);
        let (keep, status, pushed) = match outcome.ending {
            OutcomeEnding::Relayed { keep } => (keep, status, pushed),
            OutcomeEnding::Refused(answer) => {
                let keep = allowed && !answer.ends_connection() && can_be_discarded(&mut body);
                let form = AnswerForm { method: head.method(), version: head.version(), keep };
                (keep, Some(answer.status()), self.push_own(&answer, &form))
            }
            OutcomeEnding::Tunnelled => {
                self.count_and_log(block, Some(head), status, self.sent_of(pushed));
                return Err(Ending::Close);
            }
            // Without a cache, no exchange is repeated or continued.
            OutcomeEnding::Aborted | OutcomeEnding::Repeat | OutcomeEnding::Unfinished { .. } => {
                self.count_and_log(block, Some(head), status, self.sent_of(pushed));
                return Err(Ending::Abort);
            }
        };
        if !self.send_and_log(block, Some(head), status, pushed).await {
            return Err(Ending::Abort);
        }
        let has_ended = body.reader().has_ended() || (keep && self.discard(&mut body).await);
        if self.state.is_trusted {
            // Between requests, the connection is the trusted proxy's.
            self.tx.slot().count_for(None);
        }
        Ok(Answered { keep, has_ended, took_rest: takes_rest, rest: body.into_rest() })
    }

    async fn refuse_input(&mut self, status: Status, detail: &'static str) -> Ending {
        self.refuse_request(&OwnAnswer::new(status, detail), &[], None).await
    }
}

impl<'a> Client<'a> {
    fn new(
        stream: Stream,
        shared: &'a Rc<Shared>,
        side: &'a SideTasks,
        state: ConnectionState,
    ) -> Client<'a> {
        let (rx, tx) = stream.split();
        let deadlines = Deadlines::new(&shared.io);
        let inbox = Inbox::new(rx);
        Client { shared, side, inbox, tx, deadlines, own_connection: None, client: None, state }
    }

    async fn end(mut self, ending: Ending) {
        if let Some(own) = self.own_connection.take() {
            own.1.close();
        }
        let limits = &self.shared.settings.limits;
        match ending {
            Ending::Close => {
                let sent = drain(&mut self.tx, 0, &self.deadlines.download, limits.send_time);
                if sent.await.is_ok() {
                    self.tx.finish();
                }
            }
            // Boxed: rarely taken, and inlining it would enlarge every connection's future.
            Ending::Linger => {
                let mut stream = Stream { rx: self.inbox.rx, tx: self.tx };
                let deadline = &self.deadlines.download;
                Box::pin(linger(&self.shared.io, &mut stream, deadline, limits.linger_time)).await;
            }
            Ending::Park(until) => Box::pin(self.park(until)).await,
            Ending::Abort => {}
        }
    }

    /// Finds the route of a request, and performs the exchange.
    async fn answer(&mut self, block: &[u8], head: &Head, body: &mut RequestBody, keep: bool) -> Outcome {
        const TOO_LONG: &str = "The body is longer than this proxy forwards. Send less.";
        let refused =
            |answer| Outcome { ending: OutcomeEnding::Refused(answer), status: None, body_bytes: 0 };
        let settings = Arc::clone(&self.shared.settings);
        if matches!(head.framing(), Framing::Length(bytes) if bytes > settings.limits.body_bytes_max) {
            return refused(OwnAnswer::new(Status::CONTENT_TOO_LARGE, TOO_LONG));
        }
        self.client = None;
        if self.state.is_trusted {
            match forwarded_client(head, block, &self.state.peer, &settings.trusted) {
                Ok(client) => self.client = Some(client),
                Err(unknown) => return refused(OwnAnswer::new(Status::BAD_REQUEST, unknown.detail())),
            }
            if !self.tx.slot().count_for(self.client.as_ref()) {
                return refused(try_again(OVER_SHARE_DETAIL));
            }
        }
        let local = self.state.local.map(|at| at.ip());
        let route = match route(head, block, &settings, local) {
            Ok(route) => route,
            Err(answer) => return refused(answer),
        };
        let fields = forwarded_fields(head, block, self.state.is_trusted, &settings.fields);
        let request = ClientRequest { head, block, fields: &fields, peer: &self.state.peer };
        let mut exchange = Exchange {
            shared: self.shared,
            rx: &mut self.inbox.rx,
            tx: &mut self.tx,
            deadlines: &self.deadlines,
            request,
            client: self.client.clone().unwrap_or_else(|| self.state.peer.clone()),
            route: &route,
            body,
            keep,
            addresses: (address_of(&self.state.peer), self.state.local),
            own_connection: &mut self.own_connection,
            side: Some(self.side),
            pass: None,
        };
        let Some(opener) = &settings.cache else { return exchange.run().await };
        // Boxed: without a cache, its memory is not needed.
        match opener.open(&self.shared.io).await {
            Some(cache) => Box::pin(caching::run(exchange, cache)).await,
            None => Box::pin(caching::run_without_cache(exchange, opener)).await,
        }
    }

    /// Reads and drops the rest of a body. Returns false if it is too long for that, or cannot be received.
    async fn discard(&mut self, body: &mut RequestBody) -> bool {
        let (deadline, mut dropped) = (&self.deadlines.upload, 0);
        loop {
            deadline.after(self.shared.settings.limits.receive_time);
            match deadline.within(body.reader().next(&mut self.inbox.rx, &self.tx)).await {
                Ok(Ok(None)) => return true,
                Ok(Ok(Some(segment))) => dropped += segment.len(),
                Ok(Err(_)) | Err(Elapsed) => return false,
            }
            if dropped > DISCARD_BYTES_MAX {
                return false;
            }
        }
    }

    /// Pushes a response of the proxy itself. Returns the length of its body.
    fn push_own(&mut self, answer: &OwnAnswer, form: &AnswerForm) -> u64 {
        answer.push(form, &self.shared.dates.at(self.shared.io.wall()), &mut self.tx)
    }

    async fn refuse_request(&mut self, answer: &OwnAnswer, block: &[u8], head: Option<&Head>) -> Ending {
        let method = head.map_or(Method::Other, Head::method);
        let version = head.map_or(Version::Http11, Head::version);
        let body_bytes = self.push_own(answer, &AnswerForm { method, version, keep: false });
        let is_sent = self.send_and_log(block, head, Some(answer.status()), body_bytes).await;
        if is_sent { Ending::Linger } else { Ending::Abort }
    }

    /// Refuses a request because no worker is free. Waits for the request first, so that the client takes the
    /// refusal for its response.
    async fn refuse_busy(&mut self) -> Ending {
        const BUSY: &str = "All workers are taken; try again shortly.";
        let busy = try_again(BUSY);
        match self.waiting().head_before_refusal().await {
            Ok((block, head)) => self.refuse_request(&busy, &block, Some(&head)).await,
            Err(NoHead::Late | NoHead::Unwanted | NoHead::Idle(_)) => {
                self.refuse_request(&busy, &[], None).await
            }
            Err(NoHead::Refused(refusal)) => self.refuse_input(refusal.status(), refusal.detail()).await,
            Err(NoHead::Ended) => Ending::Close,
        }
    }

    /// Sends a response of which all is pushed, up to a rest that the engine sends while the connection
    /// waits. Then counts and logs it, with all of its body if the client receives. Returns whether it does.
    async fn send_and_log(
        &mut self,
        block: &[u8],
        head: Option<&Head>,
        status: Option<Status>,
        pushed: u64,
    ) -> bool {
        let send_time = self.shared.settings.limits.send_time;
        let sent = drain(&mut self.tx, UNSENT_BYTES_MAX, &self.deadlines.download, send_time).await;
        let body_bytes = if sent.is_ok() { pushed } else { self.sent_of(pushed) };
        self.count_and_log(block, head, status, body_bytes);
        sent.is_ok()
    }

    /// Returns the bytes of a body that the kernel has accepted, of those that were pushed.
    fn sent_of(&self, pushed: u64) -> u64 {
        pushed.saturating_sub(self.tx.unsent() + self.tx.lost())
    }

    /// Counts and logs a response. Without a status, the client has left before a response.
    fn count_and_log(&self, block: &[u8], head: Option<&Head>, status: Option<Status>, body_bytes: u64) {
        if let Some(status) = status {
            self.shared.counters.answered(status, body_bytes);
        }
        let entry = LogEntry {
            peer: self.client.as_ref().unwrap_or(&self.state.peer),
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
        self.shared.log.write(&self.shared.dates.at(self.shared.io.wall()), &entry);
    }

    /// Returns the connection to the engine until the client sends its next request.
    async fn park(mut self, until: Instant) {
        let (deadline, limits) = (&self.deadlines.download, &self.shared.settings.limits);
        if drain(&mut self.tx, 0, deadline, limits.send_time).await.is_err() {
            return;
        }
        let state = Box::new(ParkedClient { settings: Arc::clone(&self.shared.settings), state: self.state });
        if self.tx.park(Parked { state, until }).is_err() {
            let mut stream = Stream { rx: self.inbox.rx, tx: self.tx };
            linger(&self.shared.io, &mut stream, deadline, limits.linger_time).await;
        }
    }
}

/// Whether the rest of a body has an end, and is short enough to be read and dropped.
fn can_be_discarded(body: &mut RequestBody) -> bool {
    let may_never_come = body.expects_continue() && !body.reader().has_ended();
    !may_never_come
        && !body.reader().is_malformed()
        && body.reader().announced().is_none_or(|left| left <= DISCARD_BYTES_MAX)
}
