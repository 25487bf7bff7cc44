//! The connection of a client: requests and responses in turn, until one side ends it.
//!
//! It does not know origins (`exchange` does). Invariants: responses are in the order of their requests. A
//! malformed request is answered once and ends the connection, because the start of the next request is
//! unknown. At shutdown, a request in progress is completed.

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use core::net::SocketAddr;
use plimsoll_io::{Deadline, Elapsed, Lease, Resume, Stream};
use plimsoll_proto::drain;
use plimsoll_proto::http::{
    Answered, ConnectionState, Ending, Refused, ServerConnection, SideWork, Turns, answer_in_turn,
    refuse_busy, resume_turns,
};
use plimsoll_proto::limits::UNSENT_BYTES_MAX;
use plimsoll_wire::http::head::{Field, Framing, Head, Method, Version};
use plimsoll_wire::http::status::Status;

use crate::body::BodyReader;
use crate::caching;
use crate::exchange::{
    Deadlines, Exchange, Outcome, OutcomeEnding, OwnConnection, RequestBody, address_of, local_address,
};
use crate::fields::forwarded_fields;
use crate::limits::DISCARD_BYTES_MAX;
use crate::own_answers::{AnswerForm, OwnAnswer};
use crate::proxy::Shared;
use crate::request_head::ClientRequest;
use crate::route::route;
use crate::scheme::Scheme;
use crate::settings::Settings;
use crate::side_tasks::SideTasks;

/// Serves a connection from its first byte to its last.
pub(crate) async fn serve(stream: Stream, shared: Rc<Shared>) {
    let side = SideTasks::default();
    let mut client = Client::new(stream, &shared, &side);
    let ending = side.beside(pin!(answer_in_turn(&mut client))).await;
    // Boxed: inlining it would enlarge every connection's future.
    side.beside(Box::pin(client.end(ending)).as_mut()).await;
    side.finish().await;
}

/// Resumes a connection that was parked.
pub(crate) async fn resume(stream: Stream, parked: ParkedClient, shared: Rc<Shared>, action: Resume) {
    let side = SideTasks::default();
    let connection = ServerConnection::resumed(stream, &shared.common, parked.connection);
    let mut client = Client::of(connection, &shared, &side, (parked.local, parked.scheme));
    let ending = side.beside(pin!(resume_turns(&mut client, action))).await;
    side.beside(Box::pin(client.end(ending)).as_mut()).await;
    side.finish().await;
}

/// Refuses a connection for which there is no worker, and ends it.
pub(crate) async fn refuse(stream: Stream, shared: Rc<Shared>) {
    let side = SideTasks::default();
    let mut client = Client::new(stream, &shared, &side);
    let ending = refuse_busy(&mut client).await;
    client.end(ending).await;
}

struct Client<'a> {
    shared: &'a Rc<Shared>,
    connection: ServerConnection<'a>,
    /// The work beside the requests.
    side: &'a SideTasks,
    /// The deadline of the waits for an origin, and for the client to receive its response.
    download: Deadline,
    /// The connection to an origin that belongs to this client.
    own_connection: OwnConnection,
    /// The address that the client connected to.
    local: Option<SocketAddr>,
    scheme: Scheme,
}

/// The state of a parked connection, which waits for its next request.
pub(crate) struct ParkedClient {
    settings: Arc<Settings>,
    connection: ConnectionState,
    local: Option<SocketAddr>,
    scheme: Scheme,
}

impl ParkedClient {
    pub(crate) fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }
}

impl<'a> Turns<'a> for Client<'a> {
    fn connection(&mut self) -> &mut ServerConnection<'a> {
        &mut self.connection
    }

    fn side_work(&self) -> Option<&'a dyn SideWork> {
        Some(self.side)
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
                self.connection.count_and_log(block, Some(head), status, self.sent_of(pushed));
                return Err(Ending::Close);
            }
            // Without a cache, no exchange is repeated or continued.
            OutcomeEnding::Aborted | OutcomeEnding::Repeat | OutcomeEnding::Unfinished { .. } => {
                self.connection.count_and_log(block, Some(head), status, self.sent_of(pushed));
                return Err(Ending::Abort);
            }
        };
        if !self.send_and_log(block, Some(head), status, pushed).await {
            return Err(Ending::Abort);
        }
        let has_ended = body.reader().has_ended() || (keep && self.discard(&mut body).await);
        self.connection.release_client();
        Ok(Answered { keep, has_ended, took_rest: takes_rest, rest: body.into_rest() })
    }

    async fn refuse(&mut self, refused: Refused, block: &[u8], head: Option<&Head>) -> Ending {
        let answer = OwnAnswer::from(refused);
        let method = head.map_or(Method::Other, Head::method);
        let version = head.map_or(Version::Http11, Head::version);
        let body_bytes = self.push_own(&answer, &AnswerForm { method, version, keep: false });
        let is_sent = self.send_and_log(block, head, Some(answer.status()), body_bytes).await;
        if is_sent { Ending::Linger } else { Ending::Abort }
    }
}

impl<'a> Client<'a> {
    fn new(stream: Stream, shared: &'a Rc<Shared>, side: &'a SideTasks) -> Client<'a> {
        let (local, scheme) = (local_address(&stream), Scheme::of(&stream));
        Client::of(ServerConnection::new(stream, &shared.common), shared, side, (local, scheme))
    }

    fn of(
        connection: ServerConnection<'a>,
        shared: &'a Rc<Shared>,
        side: &'a SideTasks,
        (local, scheme): (Option<SocketAddr>, Scheme),
    ) -> Client<'a> {
        let download = shared.io.deadline();
        Client { shared, connection, side, download, own_connection: None, local, scheme }
    }

    async fn end(self, ending: Ending) {
        if let Some(own) = self.own_connection {
            own.1.close();
        }
        let (settings, local, scheme) = (Arc::clone(&self.shared.settings), self.local, self.scheme);
        let park = |connection| Box::new(ParkedClient { settings, connection, local, scheme }) as _;
        self.connection.end(ending, park).await;
    }

    /// Finds the route of a request, and performs the exchange.
    async fn answer(&mut self, block: &[u8], head: &Head, body: &mut RequestBody, keep: bool) -> Outcome {
        const TOO_LONG: &str = "The body is longer than this proxy forwards. Send less.";
        let refused =
            |answer| Outcome { ending: OutcomeEnding::Refused(answer), status: None, body_bytes: 0 };
        let shared = self.shared;
        let settings = Arc::clone(&shared.settings);
        let identified = self.connection.identify(block, head);
        if matches!(head.framing(), Framing::Length(bytes) if bytes > settings.limits.body_bytes_max) {
            return refused(OwnAnswer::new(Status::CONTENT_TOO_LARGE, TOO_LONG));
        }
        if let Err(reason) = identified {
            return refused(reason.into());
        }
        let fields = forwarded_fields(head, block, self.connection.is_trusted(), &settings.fields);
        let scheme = self.scheme.as_forwarded(&fields);
        let route = match route(head, block, &settings, self.local.map(|at| at.ip()), scheme) {
            Ok(route) => route,
            Err(answer) => return refused(answer),
        };
        let (peer, client) = (self.connection.peer().clone(), self.connection.client().clone());
        let ServerConnection { inbox, tx, deadline, .. } = &mut self.connection;
        let mut exchange = Exchange {
            shared,
            rx: &mut inbox.rx,
            tx,
            deadlines: Deadlines { upload: deadline, download: &self.download },
            request: ClientRequest { head, block, fields: &fields, peer: &peer, scheme: self.scheme },
            client,
            route: &route,
            body,
            keep,
            addresses: (address_of(&peer), self.local),
            own_connection: &mut self.own_connection,
            side: Some(self.side),
            pass: None,
        };
        let Some(opener) = &settings.cache else { return exchange.run().await };
        // Boxed: without a cache, its memory is not needed.
        match opener.open(&shared.io).await {
            Some(cache) => Box::pin(caching::run(exchange, cache)).await,
            None => Box::pin(caching::run_without_cache(exchange, opener)).await,
        }
    }

    /// Reads and drops the rest of a body. Returns false if it is too long for that, or cannot be received.
    async fn discard(&mut self, body: &mut RequestBody) -> bool {
        let (deadline, mut dropped) = (&self.connection.deadline, 0);
        loop {
            deadline.after(self.shared.settings.limits.receive_time);
            match deadline
                .within(body.reader().next(&mut self.connection.inbox.rx, &self.connection.tx))
                .await
            {
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
        answer.push(form, &self.shared.common.dates(), &mut self.connection.tx)
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
        let sent = drain(&mut self.connection.tx, UNSENT_BYTES_MAX, &self.download, send_time).await;
        let body_bytes = if sent.is_ok() { pushed } else { self.sent_of(pushed) };
        self.connection.count_and_log(block, head, status, body_bytes);
        sent.is_ok()
    }

    /// Returns the bytes of a body that the kernel has accepted, of those that were pushed.
    fn sent_of(&self, pushed: u64) -> u64 {
        let tx = &self.connection.tx;
        pushed.saturating_sub(tx.unsent() + tx.lost())
    }
}

/// Whether the rest of a body has an end, and is short enough to be read and dropped.
fn can_be_discarded(body: &mut RequestBody) -> bool {
    let may_never_come = body.expects_continue() && !body.reader().has_ended();
    !may_never_come
        && !body.reader().is_malformed()
        && body.reader().announced().is_none_or(|left| left <= DISCARD_BYTES_MAX)
}
