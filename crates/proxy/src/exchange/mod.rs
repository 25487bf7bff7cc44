//! One request at an origin, and its response: attempts, retries, and both directions at once.
//!
//! It does not read the request's head, and does not end the client's connection. Invariants: a request is
//! sent again only if the origin cannot have acted on it, or if that has the same effect as once; and never
//! after a byte of a response. A client never takes a part of a response for the whole.

mod download;
mod recording;
mod rest;
mod signals;
mod tunnel;
mod upload;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use core::net::SocketAddr;
use plimsoll_client::http::{Connection, Error};
use plimsoll_io::{Deadline, Either, Instant, Peer, Rx, Segment, Stream, Tx, select};
use plimsoll_proto::http::is_link;
use plimsoll_wire::http::head::Framing;
use plimsoll_wire::http::status::Status;
use plimsoll_wire::proxy;

use self::download::{Download, Downloaded};
pub(crate) use self::signals::Signals;
pub(crate) use self::upload::RequestBody;
use self::upload::Upload;
use crate::admission::{Busy, Permit};
use crate::cache::policy::Timestamp;
use crate::caching::{CachePass, Rest};
use crate::failure::{Failure, reason_of_connecting};
use crate::limits::ATTEMPTS_MAX;
use crate::origin::{ActiveRequest, Connecting, Origin};
use crate::own_answers::OwnAnswer;
use crate::proxy::Shared;
use crate::request_head::ClientRequest;
use crate::route::{Destination, Route};
use crate::side_tasks::SideTasks;

/// The deadlines of an exchange: one for each direction, because both wait at once.
#[derive(Clone, Copy)]
pub(crate) struct Deadlines<'a> {
    /// For the request's way to the origin.
    pub(crate) upload: &'a Deadline,
    /// For the response's way to the client.
    pub(crate) download: &'a Deadline,
}

/// The connection to an origin that belongs to one client, because it began with that client's address.
pub(crate) type OwnConnection = Option<Box<(Arc<Origin>, Connection)>>;

/// One request, and the connection of its client.
pub(crate) struct Exchange<'a> {
    pub(crate) shared: &'a Rc<Shared>,
    pub(crate) rx: &'a mut Rx,
    pub(crate) tx: &'a mut Tx,
    pub(crate) deadlines: Deadlines<'a>,
    pub(crate) request: ClientRequest<'a>,
    /// The client for which connections are counted: the one that a trusted proxy names, or the peer.
    pub(crate) client: Peer,
    pub(crate) route: &'a Route,
    pub(crate) body: &'a mut RequestBody,
    /// Whether the client and the server allow another request on the connection.
    pub(crate) keep: bool,
    /// The addresses of the client and of the proxy's end, for the PROXY protocol.
    pub(crate) addresses: (Option<SocketAddr>, Option<SocketAddr>),
    pub(crate) own_connection: &'a mut OwnConnection,
    /// The work beside the requests of the client's connection, if there is a client.
    pub(crate) side: Option<&'a SideTasks>,
    /// The cache's part in it.
    pub(crate) pass: Option<CachePass<'a>>,
}

/// The result of an exchange.
pub(crate) struct Outcome {
    pub(crate) ending: OutcomeEnding,
    /// The status of the response that was sent.
    pub(crate) status: Option<Status>,
    /// Bytes of the response's body that were pushed.
    pub(crate) body_bytes: u64,
}

/// The end of an exchange, for the client's connection.
pub(crate) enum OutcomeEnding {
    /// The whole response was pushed. The client may send another request, or not.
    Relayed { keep: bool },
    /// No byte of a response was pushed: the proxy answers.
    Refused(OwnAnswer),
    /// The client has left, or has a part of a response: the connection must not end cleanly.
    Aborted,
    /// Both sides of the tunnel have ended.
    Tunnelled,
    /// No byte was pushed: the cache must look the request up again.
    Repeat,
    /// The client has a part of a response whose file cannot be read to its end.
    Unfinished {
        /// The part that the client lacks.
        rest: Box<Rest>,
        /// Whether the client may send another request after that.
        keep: bool,
    },
}

impl OutcomeEnding {
    /// The client has a part of a response, and lacks the rest, if that can be requested.
    pub(crate) fn unfinished(rest: Option<Rest>, keep: bool) -> OutcomeEnding {
        rest.map_or(OutcomeEnding::Aborted, |rest| OutcomeEnding::Unfinished { rest: Box::new(rest), keep })
    }
}

/// The origins that were tried, and the last failure.
struct Attempts {
    count: usize,
    tried: Vec<Arc<Origin>>,
    /// Whether the next attempt gets a new connection.
    is_fresh: bool,
}

impl<'a> Exchange<'a> {
    /// Performs the exchange.
    pub(crate) async fn run(&mut self) -> Outcome {
        let signals = Signals::default();
        if let Err(failure) = self.receive_short_body().await {
            return signals.outcome(ending_of(&failure, &signals));
        }
        let mut attempts = Attempts { count: 0, tried: Vec::new(), is_fresh: false };
        let mut failure = Failure::Unreachable;
        // The origin that failed last, and why.
        let mut last: Option<(Arc<Origin>, String)> = None;
        while attempts.count < ATTEMPTS_MAX
            && let Some(origin) = self.choose(&attempts)
        {
            attempts.count += 1;
            let Ok(permit) = self.permit(&origin).await else {
                failure = Failure::Busy;
                last = Some((origin, failure.reason().to_owned()));
                break;
            };
            let active = origin.begin(permit);
            let mut connection = match self.connection(&origin, &attempts).await {
                Ok(connection) => connection,
                Err(error) => {
                    last = Some((Arc::clone(&origin), reason_of_connecting(&error)));
                    failure = Failure::of_connecting(&error);
                    origin.counts.failures.fetch_add(1, Ordering::Relaxed);
                    attempts.tried.push(origin);
                    continue;
                }
            };
            let attempted = self.attempt(&origin, &mut connection, &signals).await;
            match attempted {
                Ok(downloaded) => {
                    return self.succeed(active, origin, connection, downloaded, &signals).await;
                }
                Err(error) => failure = error,
            }
            if !failure.is_of_client() {
                origin.counts.failures.fetch_add(1, Ordering::Relaxed);
                last = Some((Arc::clone(&origin), self.explain(&failure, &origin)));
            }
            if !self.may_retry(&failure, &connection, &signals) {
                break;
            }
            origin.counts.retries.fetch_add(1, Ordering::Relaxed);
            attempts.is_fresh = true;
            if !connection.is_reused {
                attempts.tried.push(origin);
            }
        }
        if let Some((origin, reason)) = last.filter(|_| !failure.is_of_client()) {
            origin.report(self.shared.io.now(), &reason);
        }
        signals.outcome(ending_of(&failure, &signals))
    }

    /// Waits for the right to use a connection to an origin.
    async fn permit(&mut self, origin: &Arc<Origin>) -> Result<Permit, Busy> {
        let (max, slot) = (self.shared.settings.origin_connections, Rc::clone(self.tx.slot()));
        origin.admission.enter(&self.client, max, &*slot, self.deadlines.download).await
    }

    /// Chooses the origin of the next attempt.
    fn choose(&self, attempts: &Attempts) -> Option<Arc<Origin>> {
        match &self.route.to {
            Destination::Origins => {
                // The connection of this client belongs to one origin.
                if let Some(own) = &self.own_connection {
                    return Some(Arc::clone(&own.0));
                }
                let now = self.shared.io.now();
                self.shared.settings.origins.choose(now, &attempts.tried).map(Arc::clone)
            }
            Destination::Forward(origin) => {
                let is_tried = attempts.tried.iter().any(|tried| Arc::ptr_eq(tried, origin));
                (!is_tried).then(|| Arc::clone(origin))
            }
        }
    }

    /// Whether the connection to the origin begins with the address of this client.
    fn has_own_connection(&self) -> bool {
        self.shared.settings.header.is_some() && matches!(self.route.to, Destination::Origins)
    }

    /// Returns an idle connection to the origin, or opens one.
    async fn connection(&mut self, origin: &Arc<Origin>, attempts: &Attempts) -> Result<Connection, Error> {
        let shared = self.shared;
        let is_own = self.has_own_connection();
        let may_repeat = self.may_repeat();
        let idle = if attempts.is_fresh {
            *self.own_connection = None;
            None
        } else if is_own {
            let own = self.own_connection.take().map(|own| own.1);
            own.and_then(|mut connection| connection.is_quiet().then_some(connection))
        } else {
            origin.take_idle(&shared.io, may_repeat)
        };
        if let Some(connection) = idle {
            origin.counts.reused.fetch_add(1, Ordering::Relaxed);
            return Ok(connection);
        }
        let mut preface = Vec::new();
        if let Some(version) = shared.settings.header.filter(|_| is_own) {
            let (source, destination) = self.addresses;
            proxy::write(version, source, destination, &mut preface);
        }
        let by = Connecting {
            io: &shared.io,
            resolve: shared.resolve.as_ref(),
            connector: shared.connector.as_ref(),
            tls: shared.settings.tls.as_ref(),
            preface: &preface,
            deadline: self.deadlines.download,
            time_max: shared.settings.times.connect,
        };
        origin.connect(&by).await
    }

    /// Returns the reason of an origin's failure for the operator's log.
    fn explain(&self, failure: &Failure, origin: &Origin) -> String {
        const CHANNEL: &str = "if this is the socket of `plimsoll serve --channel`, add `--channel shm`";
        let is_plain_socket = self.shared.settings.channel.is_none() && origin.url().unix_socket().is_some();
        match failure {
            Failure::Broken if is_plain_socket => format!("{}; {CHANNEL}", failure.reason()),
            _ => failure.reason().to_owned(),
        }
    }

    /// Whether the request could be sent again from its start. A GET of a public link may count a download.
    fn may_repeat(&self) -> bool {
        self.request.head.method().is_idempotent()
            && self.body.is_replayable()
            && !is_link(&self.route.target)
    }

    /// Whether the request is sent again after this failure.
    fn may_retry(&self, failure: &Failure, connection: &Connection, signals: &Signals) -> bool {
        matches!(failure, Failure::Broken)
            && connection.inbox.is_untouched()
            && !signals.is_answered()
            && self.may_repeat()
    }

    /// Sends the request once, and relays its response.
    async fn attempt(
        &mut self,
        origin: &Arc<Origin>,
        connection: &mut Connection,
        signals: &Signals,
    ) -> Result<Downloaded<'a>, Failure> {
        let settings = &self.shared.settings;
        let conditions = self.pass.as_ref().and_then(CachePass::conditions);
        let authority = origin.url().authority();
        let head = self.request.write(self.route, authority, &settings.pseudonym, conditions.as_ref());
        let is_detached = self.pass.as_ref().is_some_and(CachePass::is_detached);
        if let Some(pass) = &mut self.pass {
            pass.note_sent(Timestamp::now(&self.shared.io));
        }
        let Connection { inbox, tx: origin_tx, .. } = connection;
        origin_tx.push(Segment::Owned(head));
        signals.begin();
        let has_body = !matches!(self.request.head.framing(), Framing::None | Framing::Length(0));
        let mut download = Download {
            shared: self.shared,
            inbox,
            tx: &mut *self.tx,
            deadlines: self.deadlines,
            signals,
            request: &self.request,
            keep: self.keep,
            origin,
            expects_continue: self.body.expects_continue(),
            pass: &mut self.pass,
        };
        if !has_body || self.body.expects_continue() {
            self.deadlines.download.after(settings.times.first_byte);
        } else {
            self.deadlines.download.set(Instant::NEVER);
        }
        if is_detached {
            // The exchange goes on when the client has left, so that its end is not watched for.
            signals.set_upload(signals::UploadState::Done);
            return download.run().await;
        }
        let slot = Rc::clone(download.tx.slot());
        let mut upload = Upload {
            shared: self.shared,
            rx: &mut *self.rx,
            body: &mut *self.body,
            origin_tx,
            slot: &*slot,
            deadlines: self.deadlines,
            signals,
            framing: self.request.head.framing(),
        };
        match select(download.run(), upload.run()).await {
            Either::Left(downloaded) => downloaded,
            Either::Right(failure) => Err(failure),
        }
    }

    /// Keeps or ends the connection to the origin after a whole response; runs the tunnel after an upgrade.
    async fn succeed(
        &mut self,
        active: ActiveRequest,
        origin: Arc<Origin>,
        connection: Connection,
        downloaded: Downloaded<'a>,
        signals: &Signals,
    ) -> Outcome {
        let (keep, unsent) = match downloaded {
            Downloaded::Whole { keep, is_reusable, unsent } => {
                if !(is_reusable && signals.is_uploaded() && connection.tx.unsent() == 0) {
                    // Without a whole request, the origin must not take the connection's end for its end.
                    if signals.is_uploaded() {
                        connection.close();
                    }
                } else if self.has_own_connection() {
                    let mut connection = connection;
                    if connection.watch() {
                        *self.own_connection = Some(Box::new((origin, connection)));
                    }
                } else {
                    origin.keep(&self.shared.io, connection);
                }
                (keep, unsent)
            }
            Downloaded::Upgraded => {
                let slot = Rc::clone(self.tx.slot());
                let client =
                    tunnel::End { rx: &mut *self.rx, tx: &mut *self.tx, early: self.body.take_rest() };
                let Connection { mut inbox, mut tx, .. } = connection;
                let early = inbox.buffered.take();
                let origin_end = tunnel::End { rx: &mut inbox.rx, tx: &mut tx, early };
                let tunnel = tunnel::Tunnel::new(self.shared, self.deadlines, signals, slot);
                // A tunnel lasts as long as its client's connection, whose number is bounded.
                drop(active);
                let has_ended = Box::pin(tunnel.run(client, origin_end)).await;
                return signals.outcome(if has_ended {
                    OutcomeEnding::Tunnelled
                } else {
                    OutcomeEnding::Aborted
                });
            }
        };
        drop(active);
        let Some(unsent) = unsent else { return signals.outcome(OutcomeEnding::Relayed { keep }) };
        // Boxed: inlining it would enlarge every connection's future.
        signals.outcome(Box::pin(self.send_rest(unsent, keep, signals)).await)
    }
}

/// Returns the end of an exchange that failed.
fn ending_of(failure: &Failure, signals: &Signals) -> OutcomeEnding {
    match failure.own_answer() {
        Some(answer) if !signals.is_answered() => OutcomeEnding::Refused(answer),
        _ => OutcomeEnding::Aborted,
    }
}

/// Returns the address of a client, for the PROXY protocol.
pub(crate) fn address_of(peer: &Peer) -> Option<SocketAddr> {
    match peer {
        Peer::Ip(ip, port) => Some(SocketAddr::new(*ip, *port)),
        Peer::Unix => None,
    }
}

/// Returns the address of the proxy's end of a client's connection.
pub(crate) fn local_address(stream: &Stream) -> Option<SocketAddr> {
    match stream.local() {
        Ok(plimsoll_io::Address::Ip(at)) => Some(at),
        _ => None,
    }
}
