//! What answers requests, and what a connection is served by.
//!
//! It is not routing ([`super::Routes`] is one service). What must hold: a service sees one request at a
//! time and cannot touch the connection but through it.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::{Handler, Io, LocalFuture, Stream};

use super::access_log::AccessLog;
use super::answer::Answer;
use super::clock::DateCache;
use super::conversation;
use super::counters::Counters;
use super::limits::Limits;
use super::request::Request;

/// Answers requests.
pub trait Service {
    /// The answer to one request. It may read the body, as much of it as it wants.
    fn answer(&self, request: &mut Request<'_>) -> impl Future<Output = Answer>;
}

/// HTTP on one thread: what all its connections share.
pub struct Http<S> {
    shared: Rc<Shared<S>>,
}

pub(super) struct Shared<S> {
    pub(super) io: Io,
    pub(super) limits: Arc<Limits>,
    pub(super) service: S,
    pub(super) log: AccessLog,
    pub(super) counters: Arc<Counters>,
    pub(super) dates: DateCache,
}

impl<S: Service + 'static> Http<S> {
    /// Serves `service` on the thread that `io` is of.
    pub fn new(io: Io, limits: Arc<Limits>, service: S, log: AccessLog, counters: Arc<Counters>) -> Http<S> {
        Http { shared: Rc::new(Shared { io, limits, service, log, counters, dates: DateCache::new() }) }
    }
}

impl<S: Service + 'static> Handler for Http<S> {
    fn serve(&self, stream: Stream) -> LocalFuture {
        Box::pin(conversation::hold(stream, Rc::clone(&self.shared)))
    }

    fn background(&self) -> LocalFuture {
        let shared = Rc::clone(&self.shared);
        Box::pin(async move { shared.log.hand_over_for_ever(&shared.io).await })
    }
}
