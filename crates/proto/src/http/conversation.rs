//! The conversation on one connection: requests and responses in turn, until one side ends it.
//!
//! This module knows no resource. Invariants: responses are in the order of their requests. Every wait has a
//! limit. A malformed request is answered once and ends the connection, because the start of the next request
//! is unknown. At shutdown, a request in progress is completed.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::{Lease, Resume, Stream};
use plimsoll_wire::http::answer::AnswerHead;
use plimsoll_wire::http::head::{Framing, Head, Method, Version};
use plimsoll_wire::http::status::Status;

use super::answer::Answer;
use super::body::BodyState;
use super::connection::{ConnectionState, ServerConnection};
use super::limits::RETRY_AFTER_SECONDS;
use super::problem::problem;
use super::request::{Arrival, ConnectionData, Request};
use super::sending::{self, Sent};
use super::service::{Service, Shared, Snapshot};
use super::turns::{Answered, Ending, Refused, Turns, answer_in_turn, refuse_busy, resume_turns};

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
    action: Resume,
) {
    let ParkedConversation { connection, arrival, data, .. } = parked;
    let connection = ServerConnection::resumed(stream, &shared.common, connection);
    let mut conversation = Conversation { shared: &shared, connection, arrival, data };
    let ending = resume_turns(&mut conversation, action).await;
    conversation.end(ending).await;
}

/// Refuses a connection for which there is no worker, and ends it.
pub(super) async fn refuse<S: Service + 'static>(stream: Stream, shared: Rc<Shared<S>>) {
    let mut conversation = Conversation::new(stream, &shared);
    let ending = refuse_busy(&mut conversation).await;
    conversation.end(ending).await;
}

struct Conversation<'a, S> {
    shared: &'a Shared<S>,
    connection: ServerConnection<'a>,
    /// Whether every request comes through a trusted proxy.
    arrival: Arrival,
    /// The service's own data about the connection.
    data: ConnectionData,
}

/// The state of a parked conversation, which waits for its next request.
pub(super) struct ParkedConversation<S> {
    snapshot: Arc<Snapshot<S>>,
    connection: ConnectionState,
    arrival: Arrival,
    data: ConnectionData,
}

impl<S> ParkedConversation<S> {
    pub(super) fn snapshot(&self) -> &Arc<Snapshot<S>> {
        &self.snapshot
    }
}

impl<'a, S: Service + 'static> Turns<'a> for Conversation<'a, S> {
    fn connection(&mut self) -> &mut ServerConnection<'a> {
        &mut self.connection
    }

    async fn answer_request(&mut self, block: &Lease, head: &Head) -> Result<Answered, Ending> {
        let has_body = !matches!(head.framing(), Framing::None | Framing::Length(0));
        let received =
            (has_body && block.len() > head.len()).then(|| Lease::owned(block[head.len()..].to_vec()));
        let mut body = BodyState::new(head.framing(), received, head.expects_continue());
        let too_long = self.is_too_long(head);
        let answer = match self.connection.identify(block, head) {
            _ if too_long => problem(Status::CONTENT_TOO_LARGE, "The body is longer than this server takes."),
            Err(refused) => refusal(refused),
            Ok(()) => self.call_service(block, head, &mut body).await,
        };
        // A client may send bytes for the tunnel at once: behind a refused CONNECT need be no request.
        let is_refused_tunnel = head.method() == Method::Connect;
        let keep = head.keeps_alive()
            && !is_refused_tunnel
            && !too_long
            // Otherwise it ends with the connection.
            && (answer.body.has_length() || head.version() == Version::Http11)
            && body.can_be_discarded()
            && !self.shared.common.io.is_stopping();
        let sent = self.answer(answer, (block, head), keep).await;
        self.connection.count_and_log(block, Some(head), Some(sent.status), sent.body_bytes);
        if sent.broken {
            return Err(Ending::Abort);
        }
        let has_ended = body.has_ended() || (keep && self.discard(&mut body).await);
        self.connection.release_client();
        Ok(Answered { keep, has_ended, took_rest: has_body, rest: body.into_rest() })
    }

    async fn refuse(&mut self, refused: Refused, block: &[u8], head: Option<&Head>) -> Ending {
        let mut answer = refusal(refused);
        if let Some(head) = head {
            answer = self.for_page(answer, block, head);
        }
        self.complete(&mut answer, false, head.map_or(Version::Http11, Head::version));
        let with_body = head.is_none_or(|head| head.method() != Method::Head);
        let sent = self.send(answer, with_body, Version::Http11).await;
        self.connection.count_and_log(block, head, Some(sent.status), sent.body_bytes);
        if sent.broken { Ending::Abort } else { Ending::Linger }
    }
}

impl<'a, S: Service + 'static> Conversation<'a, S> {
    fn new(stream: Stream, shared: &'a Shared<S>) -> Conversation<'a, S> {
        let is_behind_proxy = stream.is_behind_proxy();
        let connection = ServerConnection::new(stream, &shared.common);
        let arrival = match is_behind_proxy || connection.is_trusted() {
            true => Arrival::Proxied,
            false => Arrival::Direct,
        };
        Conversation { shared, connection, arrival, data: ConnectionData::default() }
    }

    async fn end(self, ending: Ending) {
        let Conversation { shared, connection, arrival, data } = self;
        let snapshot = Arc::clone(&shared.snapshot);
        let park = |connection| Box::new(ParkedConversation { snapshot, connection, arrival, data }) as _;
        connection.end(ending, park).await;
    }

    /// Whether the announced length of the body is above the limit.
    fn is_too_long(&self, head: &Head) -> bool {
        let bytes_max = self.shared.common.limits.body_bytes_max;
        matches!(head.framing(), Framing::Length(bytes) if bytes > bytes_max)
    }

    async fn call_service(&mut self, block: &[u8], head: &Head, state: &mut BodyState) -> Answer {
        let shared = self.shared;
        let cors = shared.snapshot.service.cors();
        let is_of_named_origin = cors.is_some_and(|cors| cors.allowed(head, block).is_some());
        let is_encrypted = self.connection.is_encrypted(block, head);
        let is_admitted_by_socket = self.connection.is_unix_without_report(block, head);
        let (peer, body) = self.connection.with_body(state);
        let mut request = Request {
            io: &shared.common.io,
            peer,
            arrival: self.arrival,
            is_encrypted,
            is_admitted_by_socket,
            is_of_named_origin,
            head,
            block,
            body,
            hot: &shared.hot,
            connection: &mut self.data,
        };
        shared.snapshot.service.answer(&mut request).await
    }

    /// Lets a page of a named origin read the response.
    fn for_page(&self, answer: Answer, block: &[u8], head: &Head) -> Answer {
        match self.shared.snapshot.service.cors() {
            Some(cors) => cors.mark(head, block, answer),
            None => answer,
        }
    }

    async fn discard(&mut self, state: &mut BodyState) -> bool {
        matches!(self.connection.with_body(state).1.discard().await, Ok(true))
    }

    async fn answer(&mut self, mut answer: Answer, (block, head): (&[u8], &Head), keep: bool) -> Sent {
        let generated = self.shared.common.records.counters.generated();
        let reserved = generated.reserve(answer.body.generated_bytes());
        if reserved.is_none() {
            answer =
                refusal(Refused::for_now("Too many large responses are in progress; try again shortly."));
        }
        let mut answer = self.for_page(answer, block, head);
        self.complete(&mut answer, keep, head.version());
        let when_sent = answer.when_sent.take();
        let sent = self.send(answer, head.method() != Method::Head, head.version()).await;
        if let Some(when_sent) = when_sent {
            when_sent.report(sent.body_bytes, !sent.broken);
        }
        sent
    }

    async fn send(&mut self, answer: Answer, with_body: bool, version: Version) -> Sent {
        let ServerConnection { tx, deadline, .. } = &mut self.connection;
        sending::send(answer, with_body, version, tx, deadline, &self.shared.common).await
    }

    /// Adds the fields that every response has.
    fn complete(&self, answer: &mut Answer, keep: bool, version: Version) {
        let dates = self.shared.common.dates();
        let length = Some(answer.body.len()).filter(|_| answer.body.has_length());
        let bodiless = answer.status().is_bodiless();
        let mut head = AnswerHead::resume(&mut answer.head).date(&dates.http);
        match length {
            Some(length) if !bodiless => head = head.content_length(length),
            None if version == Version::Http11 => head = head.chunked(),
            _ => {}
        }
        head.keep_alive(keep, version).finish();
    }
}

/// Returns the response to a refused request.
fn refusal(refused: Refused) -> Answer {
    let answer = problem(refused.status, refused.detail);
    match refused.is_temporary {
        true => answer.field_display("Retry-After", RETRY_AFTER_SECONDS),
        false => answer,
    }
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
