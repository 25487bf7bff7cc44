//! The conversation on one connection: requests and responses in turn, until one side ends it.
//!
//! This module knows no resource. Invariants: responses are in the order of their requests. Every wait has a
//! limit. A malformed request is answered once and ends the connection, because the start of the next request
//! is unknown. At shutdown, a request in progress is completed.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::{Deadline, Instant, Lease, Parked, Peer, Resume, Stream, Tx};
use plimsoll_wire::http::answer::AnswerHead;
use plimsoll_wire::http::head::{Framing, Head, Method, Version};
use plimsoll_wire::http::status::Status;

use super::access_log::LogEntry;
use super::answer::Answer;
use super::body::{BodyState, RequestBody};
use super::forwarded::{self, UnknownClient};
use super::inbox::{Inbox, NoHead};
use super::limits::{OVER_SHARE_DETAIL, RETRY_AFTER_SECONDS};
use super::problem::problem;
use super::request::{Arrival, ConnectionData, Request};
use super::sending::{self, Sent};
use super::service::{Service, Shared, Snapshot};
use super::turns::{Answered, Ending, Turns, Waiting, answer_in_turn};
use crate::body_sender::{drain, linger};

/// Serves a connection from its first byte to its last.
pub(super) async fn serve<S: Service + 'static>(stream: Stream, shared: Rc<Shared<S>>) {
    let mut conversation = Conversation::new(stream, &shared);
    let ending = answer_in_turn(&mut conversation).await;
    conversation.end(ending).await;
}

/// Resumes a conversation that was parked.
pub(super) async fn resume<S: Service + 'static>(
    stream: Stream,
    parked: ParkedConversation<S>,
    shared: Rc<Shared<S>>,
    how: Resume,
) {
    let mut conversation = Conversation::with_state(stream, &shared, parked.state);
    let ending = match how {
        Resume::Serve => answer_in_turn(&mut conversation).await,
        // Boxed: rarely taken, and inlining it would enlarge every connection's future.
        Resume::Refuse => Box::pin(conversation.refuse_busy()).await,
        // The client may be sending a request: closing on it would reset the connection.
        Resume::End => Ending::Linger,
    };
    conversation.end(ending).await;
}

/// Refuses a connection for which there is no worker, and ends it.
pub(super) async fn refuse<S: Service + 'static>(stream: Stream, shared: Rc<Shared<S>>) {
    let mut conversation = Conversation::new(stream, &shared);
    let ending = conversation.refuse_busy().await;
    conversation.end(ending).await;
}

struct Conversation<'a, S> {
    shared: &'a Shared<S>,
    inbox: Inbox,
    tx: Tx,
    deadline: Deadline,
    /// The client of the current request, if a trusted proxy names one.
    client: Option<Peer>,
    /// The state that outlives a request.
    state: ConnectionState,
}

/// The state of a connection between requests.
struct ConnectionState {
    /// The client of the connection.
    peer: Peer,
    /// Whether the peer is a trusted proxy.
    trusts_fields: bool,
    /// Whether every request comes through a trusted proxy.
    is_behind_proxy: bool,
    /// Whether a response has been sent, and the connection is kept alive.
    is_kept_alive: bool,
    /// The service's own data about the connection.
    data: ConnectionData,
}

/// The state of a parked conversation, which waits for its next request.
pub(super) struct ParkedConversation<S> {
    snapshot: Arc<Snapshot<S>>,
    state: ConnectionState,
}

impl<S> ParkedConversation<S> {
    pub(super) fn snapshot(&self) -> &Arc<Snapshot<S>> {
        &self.snapshot
    }
}

impl<S: Service + 'static> Turns for Conversation<'_, S> {
    fn waiting(&mut self) -> Waiting<'_> {
        Waiting {
            io: &self.shared.io,
            limits: self.shared.limits(),
            inbox: &mut self.inbox,
            slot: &**self.tx.slot(),
            deadline: &self.deadline,
            is_kept_alive: &mut self.state.is_kept_alive,
            side_work: None,
        }
    }

    async fn answer_request(&mut self, block: &Lease, head: &Head) -> Result<Answered, Ending> {
        let has_body = !matches!(head.framing(), Framing::None | Framing::Length(0));
        let received =
            (has_body && block.len() > head.len()).then(|| Lease::owned(block[head.len()..].to_vec()));
        let mut body = BodyState::new(head.framing(), received, head.expects_continue());
        let too_long = self.is_too_long(head);
        let answer = match self.find_client(block, head) {
            _ if too_long => problem(Status::CONTENT_TOO_LARGE, "The body is longer than this server takes."),
            Err(unclear) => problem(Status::BAD_REQUEST, unclear.detail()),
            Ok(()) if !self.has_slot() => over_share(),
            Ok(()) => self.call_service(block, head, &mut body).await,
        };
        let io = &self.shared.io;
        // A client may send bytes for the tunnel at once: behind a refused CONNECT need be no request.
        let is_refused_tunnel = head.method() == Method::Connect;
        let keep = head.keeps_alive()
            && !is_refused_tunnel
            && !too_long
            && body.can_be_discarded()
            && !io.is_stopping();
        let sent = self.answer(answer, (block, head), keep).await;
        self.count_and_log(block, Some(head), &sent);
        if sent.broken {
            return Err(Ending::Abort);
        }
        let has_ended = body.has_ended() || (keep && self.discard(&mut body).await);
        if self.state.trusts_fields {
            // Between requests, the connection is the proxy's.
            self.tx.slot().count_for(None);
        }
        Ok(Answered { keep, has_ended, took_rest: has_body, rest: body.into_rest() })
    }

    async fn refuse_input(&mut self, status: Status, detail: &'static str) -> Ending {
        self.answer_and_end(problem(status, detail), &[], None).await
    }
}

impl<'a, S: Service + 'static> Conversation<'a, S> {
    fn new(stream: Stream, shared: &'a Shared<S>) -> Conversation<'a, S> {
        let peer = stream.peer().clone();
        let trusts_fields = shared.snapshot.proxies.contain(&peer);
        let is_behind_proxy = trusts_fields || stream.is_behind_proxy();
        let (is_kept_alive, data) = (false, ConnectionData::default());
        Conversation::with_state(
            stream,
            shared,
            ConnectionState { peer, trusts_fields, is_behind_proxy, is_kept_alive, data },
        )
    }

    fn with_state(stream: Stream, shared: &'a Shared<S>, state: ConnectionState) -> Conversation<'a, S> {
        let (rx, tx) = stream.split();
        let (inbox, deadline) = (Inbox::new(rx), shared.io.deadline());
        Conversation { shared, inbox, tx, deadline, client: None, state }
    }

    async fn end(mut self, ending: Ending) {
        match ending {
            Ending::Close => self.close().await,
            // Boxed: rarely taken, and inlining it would enlarge every connection's future.
            Ending::Linger => {
                let mut stream = Stream { rx: self.inbox.rx, tx: self.tx };
                let linger_time = self.shared.limits().linger_time;
                Box::pin(linger(&self.shared.io, &mut stream, &self.deadline, linger_time)).await;
            }
            Ending::Park(until) => Box::pin(self.park(until)).await,
            Ending::Abort => {}
        }
    }

    /// Finds the client of a request, which a trusted proxy may name.
    fn find_client(&mut self, block: &[u8], head: &Head) -> Result<(), UnknownClient> {
        self.client = None;
        if self.state.trusts_fields {
            self.client =
                Some(forwarded::client(head, block, &self.state.peer, &self.shared.snapshot.proxies)?);
        }
        Ok(())
    }

    /// Counts the connection for the client that a trusted proxy names. Returns whether the client's address
    /// has a share left.
    fn has_slot(&self) -> bool {
        self.client.as_ref().is_none_or(|client| self.tx.slot().count_for(Some(client)))
    }

    /// Whether the announced length of the body is above the limit.
    fn is_too_long(&self, head: &Head) -> bool {
        matches!(head.framing(), Framing::Length(bytes) if bytes > self.shared.limits().body_bytes_max)
    }

    async fn call_service(&mut self, block: &[u8], head: &Head, state: &mut BodyState) -> Answer {
        let body = RequestBody {
            rx: &mut self.inbox.rx,
            tx: &mut self.tx,
            deadline: &self.deadline,
            limits: self.shared.limits(),
            state,
        };
        let (io, hot) = (&self.shared.io, &*self.shared.hot);
        let peer = self.client.as_ref().unwrap_or(&self.state.peer);
        let arrival = if self.state.is_behind_proxy { Arrival::Proxied } else { Arrival::Direct };
        let cors = self.shared.snapshot.service.cors();
        let is_of_named_origin = cors.is_some_and(|cors| cors.allowed(head, block).is_some());
        let connection = &mut self.state.data;
        let mut request =
            Request { io, peer, arrival, is_of_named_origin, head, block, body, hot, connection };
        self.shared.snapshot.service.answer(&mut request).await
    }

    /// Lets a page of a named origin read the response.
    fn for_page(&self, answer: Answer, block: &[u8], head: &Head) -> Answer {
        match self.shared.snapshot.service.cors() {
            Some(cors) => cors.mark(head, block, answer),
            None => answer,
        }
    }

    async fn discard(&mut self, state: &mut BodyState) -> bool {
        let (rx, tx) = (&mut self.inbox.rx, &mut self.tx);
        let (deadline, limits) = (&self.deadline, self.shared.limits());
        matches!(RequestBody { rx, tx, deadline, limits, state }.discard().await, Ok(true))
    }

    async fn answer(&mut self, mut answer: Answer, (block, head): (&[u8], &Head), keep: bool) -> Sent {
        let with_body = head.method() != Method::Head;
        let shared = self.shared;
        let reserved = shared.counters.generated().reserve(answer.body.generated_bytes());
        if reserved.is_none() {
            answer = problem(
                Status::SERVICE_UNAVAILABLE,
                "Too many large answers are under way; try again shortly.",
            )
            .field_display("Retry-After", RETRY_AFTER_SECONDS);
        }
        let mut answer = self.for_page(answer, block, head);
        self.complete(&mut answer, keep, head.version());
        let when_sent = answer.when_sent.take();
        let sent = sending::send(answer, with_body, &mut self.tx, &self.deadline, self.shared).await;
        if let Some(when_sent) = when_sent {
            when_sent.report(sent.body_bytes, !sent.broken);
        }
        sent
    }

    /// Adds the fields that every response has.
    fn complete(&self, answer: &mut Answer, keep: bool, version: Version) {
        let dates = self.shared.dates.at(self.shared.io.wall());
        let length = answer.body.len();
        let bodiless = answer.status().is_bodiless();
        let mut head = AnswerHead::resume(&mut answer.head).date(&dates.http);
        if !bodiless {
            head = head.content_length(length);
        }
        head.keep_alive(keep, version).finish();
    }

    async fn answer_and_end(&mut self, mut answer: Answer, block: &[u8], head: Option<&Head>) -> Ending {
        if let Some(head) = head {
            answer = self.for_page(answer, block, head);
        }
        self.complete(&mut answer, false, head.map_or(Version::Http11, Head::version));
        let with_body = head.is_none_or(|head| head.method() != Method::Head);
        let sent = sending::send(answer, with_body, &mut self.tx, &self.deadline, self.shared).await;
        self.count_and_log(block, head, &sent);
        if sent.broken { Ending::Abort } else { Ending::Linger }
    }

    /// Refuses a request because no worker is free: "The server MAY send a Retry-After header field to
    /// suggest an appropriate amount of time for the client to wait before retrying the request" (RFC 9110,
    /// section 15.6.4). Waits for the request first, so that the client takes the refusal for its response.
    async fn refuse_busy(&mut self) -> Ending {
        let busy = problem(Status::SERVICE_UNAVAILABLE, "All workers are taken; try again shortly.")
            .field_display("Retry-After", RETRY_AFTER_SECONDS);
        match self.waiting().head_before_refusal().await {
            Ok((block, head)) => self.answer_and_end(busy, &block, Some(&head)).await,
            Err(NoHead::Late | NoHead::Unwanted | NoHead::Idle(_)) => {
                self.answer_and_end(busy, &[], None).await
            }
            Err(NoHead::Refused(refusal)) => self.refuse_input(refusal.status(), refusal.detail()).await,
            Err(NoHead::Ended) => Ending::Close,
        }
    }

    /// Counts and logs a response.
    fn count_and_log(&self, block: &[u8], head: Option<&Head>, sent: &Sent) {
        self.shared.counters.answered(sent.status, sent.body_bytes);
        let entry = LogEntry {
            peer: self.client.as_ref().unwrap_or(&self.state.peer),
            method: head.map_or(&[], |head| head.method_bytes(block)),
            target: head.map_or(&[], |head| head.target(block)),
            version: match head.map(Head::version) {
                Some(Version::Http10) => "HTTP/1.0",
                _ => "HTTP/1.1",
            },
            status: sent.status.code(),
            body_bytes: sent.body_bytes,
        };
        self.shared.log.write(&self.shared.dates.at(self.shared.io.wall()), &entry);
    }

    /// Ends a connection on which the client sends nothing more. The kernel delivers the bytes that it has
    /// accepted.
    async fn close(&mut self) {
        let sent = drain(&mut self.tx, 0, &self.deadline, self.shared.limits().send_time).await;
        if sent.is_ok() {
            self.tx.finish();
        }
    }

    /// Returns the connection to the engine until the client sends its next request.
    async fn park(mut self, until: Instant) {
        if drain(&mut self.tx, 0, &self.deadline, self.shared.limits().send_time).await.is_err() {
            return;
        }
        let state =
            Box::new(ParkedConversation { snapshot: Arc::clone(&self.shared.snapshot), state: self.state });
        if self.tx.park(Parked { state, until }).is_err() {
            let mut stream = Stream { rx: self.inbox.rx, tx: self.tx };
            linger(&self.shared.io, &mut stream, &self.deadline, self.shared.limits().linger_time).await;
        }
    }
}

/// Returns the response to a client of a proxy whose address has its share of the connections. The
/// connection stays open, because it is the proxy's.
fn over_share() -> Answer {
    problem(Status::SERVICE_UNAVAILABLE, OVER_SHARE_DETAIL).field_display("Retry-After", RETRY_AFTER_SECONDS)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plimsoll_io::sim::{Faults, Sim};
    use plimsoll_io::{Networks, Segment, Setup, Want};

    use super::*;
    use crate::Current;
    use crate::http::limits::Limits;
    use crate::http::{AccessLog, Body, Counters, Http, Snapshot};
    use crate::limits::GENERATED_BYTES_MAX;
    use plimsoll_content::HotCache;

    /// More than a simulated kernel buffers before its peer reads.
    const LARGE_BYTES: usize = 1 << 20;

    struct Large;

    impl Service for Large {
        async fn answer(&self, _: &mut Request<'_>) -> Answer {
            Answer::new(Status::OK).body(Body::Bytes(vec![b'x'; LARGE_BYTES]))
        }
    }

    fn send_request(stream: &mut Stream) {
        stream.tx.push(Segment::Static(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"));
    }

    /// Receives until `whole` returns true.
    async fn received(stream: &mut Stream, whole: impl Fn(&[u8]) -> bool) -> String {
        let mut bytes = Vec::new();
        while !whole(&bytes) {
            bytes.extend_from_slice(&stream.rx.recv(Want::Body).await.unwrap().unwrap());
        }
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn generated_bodies_above_the_memory_limit_get_503_until_others_are_sent() {
        let (sim, counters) = (Sim::new(0, Faults::none()), Arc::<Counters>::default());
        let (server, client) = (sim.host("server"), sim.host("client"));
        let shared = Arc::clone(&counters);
        let setup: Setup = Arc::new(move |io| {
            let current = Current::new(Snapshot {
                limits: Limits::default(),
                proxies: Networks::default(),
                service: Large,
            });
            Rc::new(Http::new(io, current, AccessLog::new(None), Arc::clone(&shared), HotCache::off()))
        });
        let at = sim.serve(&server, &":80".parse().unwrap(), &setup).unwrap();
        let io = client.io();
        sim.run(&client, async move {
            let mut stream = io.connect(&at).await.unwrap();
            let others = counters.generated().reserve(GENERATED_BYTES_MAX).expect("nothing is in memory yet");
            send_request(&mut stream);
            let refused = received(&mut stream, |bytes| bytes.contains(&b'}')).await;
            assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
            assert!(refused.contains(&format!("\r\nRetry-After: {RETRY_AFTER_SECONDS}\r\n")), "{refused}");
            drop(others);
            // The connection stays usable, and its response counts until it is sent.
            send_request(&mut stream);
            io.sleep(Duration::from_secs(1)).await;
            assert!(counters.generated().reserve(GENERATED_BYTES_MAX).is_none(), "nobody has read it yet");
            let is_whole = |bytes: &[u8]| bytes.iter().filter(|&&byte| byte == b'x').count() == LARGE_BYTES;
            let answer = received(&mut stream, is_whole).await;
            assert!(answer.trim_start().starts_with("HTTP/1.1 200 "), "{:?}", &answer[..100]);
            io.sleep(Duration::from_secs(1)).await;
            assert!(counters.generated().reserve(GENERATED_BYTES_MAX).is_some(), "it was sent");
        });
        assert!(sim.panics().is_empty(), "{:?}", sim.panics());
    }
}
