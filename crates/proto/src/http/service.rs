//! The service interface, and the handler that serves HTTP connections with it.
//!
//! This module does not route ([`super::Routes`] is one service). Invariants: a service handles one request
//! of a connection at a time, and reaches the connection only through the request. One [`Snapshot`] serves a
//! connection from its first byte to its last, also across reloads.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::{Handler, Io, LocalFuture, Networks, Parked, Resume, Stream};

use super::access_log::AccessLog;
use super::answer::Answer;
use super::connection::{Common, Records};
use super::conversation::{self, ParkedConversation};
use super::cors::Cors;
use super::counters::Counters;
use super::limits::Limits;
use super::request::Request;
use crate::Current;
use plimsoll_content::HotCache;

/// A function from requests to responses.
pub trait Service: Send + Sync {
    /// Returns the response to one request. It may read any part of the request's body.
    fn answer(&self, request: &mut Request<'_>) -> impl Future<Output = Answer>;

    /// Returns the origins whose pages may read the responses; `None` for none.
    fn cors(&self) -> Option<&Cors> {
        None
    }
}

/// The configuration that serves a connection. It never changes; a reload puts another one into [`Current`].
pub struct Snapshot<S> {
    /// The operator's limits.
    pub limits: Limits,
    /// The proxies whose fields are trusted to name a request's client.
    pub proxies: Networks,
    /// The service that answers requests.
    pub service: S,
}

/// The handler for HTTP on one thread.
pub struct Http<S> {
    current: Arc<Current<Snapshot<S>>>,
    /// The state of the latest connection's snapshot, which the next connection usually shares.
    latest: RefCell<Rc<Shared<S>>>,
}

/// The state that the connections of one thread and one snapshot share.
pub(super) struct Shared<S> {
    pub(super) common: Common,
    pub(super) snapshot: Arc<Snapshot<S>>,
    pub(super) hot: Arc<HotCache>,
}

impl<S: Service + 'static> Http<S> {
    /// Creates a handler for the thread of `io`. Each connection gets the snapshot that is current at its
    /// start.
    pub fn new(
        io: Io,
        current: Arc<Current<Snapshot<S>>>,
        log: AccessLog,
        counters: Arc<Counters>,
        hot: Arc<HotCache>,
    ) -> Http<S> {
        let (snapshot, records) = (current.get(), Rc::new(Records::new(log, counters)));
        let (limits, trusted) = (snapshot.limits.clone(), snapshot.proxies.clone());
        let common = Common { io, limits, trusted, records };
        let latest = RefCell::new(Rc::new(Shared { common, snapshot, hot }));
        Http { current, latest }
    }

    fn shared(&self) -> Rc<Shared<S>> {
        let (snapshot, mut latest) = (self.current.get(), self.latest.borrow_mut());
        if !Arc::ptr_eq(&snapshot, &latest.snapshot) {
            *latest = Rc::new(latest.with_snapshot(snapshot));
        }
        Rc::clone(&latest)
    }

    /// Returns the state for a parked connection, which may have started on another thread and with an older
    /// snapshot.
    fn shared_with_snapshot(&self, snapshot: &Arc<Snapshot<S>>) -> Rc<Shared<S>> {
        let latest = self.latest.borrow();
        if Arc::ptr_eq(snapshot, &latest.snapshot) {
            return Rc::clone(&latest);
        }
        Rc::new(latest.with_snapshot(Arc::clone(snapshot)))
    }
}

impl<S> Shared<S> {
    fn with_snapshot(&self, snapshot: Arc<Snapshot<S>>) -> Shared<S> {
        Shared {
            common: self.common.with(&snapshot.limits, &snapshot.proxies),
            snapshot,
            hot: Arc::clone(&self.hot),
        }
    }
}

impl<S: Service + 'static> Handler for Http<S> {
    fn serve(&self, stream: Stream) -> LocalFuture {
        Box::pin(conversation::serve(stream, self.shared()))
    }

    fn refuse(&self, stream: Stream) -> LocalFuture {
        Box::pin(conversation::refuse(stream, self.shared()))
    }

    fn resume(&self, stream: Stream, parked: Parked, action: Resume) -> LocalFuture {
        match parked.state.downcast::<ParkedConversation<S>>() {
            Ok(parked) => {
                let shared = self.shared_with_snapshot(parked.snapshot());
                Box::pin(conversation::resume(stream, *parked, shared, action))
            }
            // The state of another protocol. An engine resumes a connection by its own handler, so this does
            // not happen.
            Err(_) => Box::pin(async move { drop(stream) }),
        }
    }

    fn background(&self) -> LocalFuture {
        let latest = self.latest.borrow();
        let (io, records) = (latest.common.io.clone(), Rc::clone(&latest.common.records));
        Box::pin(async move { records.log.flush_forever(&io).await })
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_io::sim::{Faults, Sim};
    use plimsoll_io::{Segment, Setup, Want};
    use plimsoll_wire::http::status::Status;

    use super::*;
    use crate::http::Body;

    /// A service that responds with its own name.
    struct FixedText(&'static str);

    impl Service for FixedText {
        async fn answer(&self, _: &mut Request<'_>) -> Answer {
            Answer::new(Status::OK).body(Body::Bytes(self.0.as_bytes().to_vec()))
        }
    }

    async fn get(stream: &mut Stream) -> String {
        stream.tx.push(Segment::Static(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"));
        let answer = stream.rx.recv(Want::Body).await.unwrap().unwrap();
        String::from_utf8_lossy(&answer).rsplit("\r\n").next().unwrap_or_default().to_owned()
    }

    #[test]
    fn a_connection_keeps_its_snapshot_across_a_reload_and_the_next_connection_gets_the_new_one() {
        let sim = Sim::new(0, Faults::none());
        let (server, client) = (sim.host("server"), sim.host("client"));
        let current = Current::new(Snapshot {
            limits: Limits::default(),
            proxies: Networks::default(),
            service: FixedText("old"),
        });
        let shared = Arc::clone(&current);
        let setup: Setup = Arc::new(move |io| {
            let log = AccessLog::new(None);
            Rc::new(Http::new(io, Arc::clone(&shared), log, Arc::default(), HotCache::off()))
        });
        let at = sim.serve(&server, &":80".parse().unwrap(), &setup).unwrap();
        let io = client.io();
        sim.run(&client, async move {
            let mut kept = io.connect(&at).await.unwrap();
            assert_eq!(get(&mut kept).await, "old");
            current.replace(Snapshot {
                limits: Limits::default(),
                proxies: Networks::default(),
                service: FixedText("new"),
            });
            let mut next = io.connect(&at).await.unwrap();
            assert_eq!(get(&mut next).await, "new");
            assert_eq!(get(&mut kept).await, "old");
        });
        assert!(sim.panics().is_empty(), "{:?}", sim.panics());
    }
}
