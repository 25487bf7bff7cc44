//! The handler of a proxy on one thread, and the state that its connections share.
//!
//! It does not serve a connection (`client.rs` does). Invariants: one value of the settings serves a
//! connection from its first byte to its last, also across reloads. The background work ends with the thread.

use std::cell::RefCell;
use std::future::pending;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_channel::Connector;
use plimsoll_client::http::Resolve;
use plimsoll_io::{Handler, Io, LocalFuture, Parked, Resume, Stream, select};
use plimsoll_proto::Current;
use plimsoll_proto::http::{AccessLog, Common, Counters, Records};
use plimsoll_wire::proxy;

use crate::cache::limits::PASSED_CHECK_TIME;
use crate::client::{self, ParkedClient};
use crate::limits::{HEALTH_CHECK_TIME, IDLE_CHECK_TIME};
use crate::origin::{Connecting, Origin};
use crate::settings::Settings;

/// The handler of a proxy on one thread.
pub struct Proxy {
    current: Arc<Current<Settings>>,
    /// The state of the latest connection's settings, which the next connection usually shares.
    latest: RefCell<Rc<Shared>>,
}

/// The records of a proxy's requests.
pub struct Logs {
    /// The access log of this thread.
    pub access: AccessLog,
    /// The counters of all threads.
    pub counters: Arc<Counters>,
}

/// The state that the connections of one thread and one value of the settings share.
pub(crate) struct Shared {
    pub(crate) io: Io,
    pub(crate) common: Common,
    pub(crate) settings: Arc<Settings>,
    pub(crate) resolve: Option<Resolve>,
    pub(crate) connector: Option<Connector>,
}

impl Proxy {
    /// Creates a handler for the thread of `io`. Each connection gets the settings that are current at its
    /// start.
    pub fn new(io: Io, current: Arc<Current<Settings>>, logs: Logs) -> Proxy {
        let settings = current.get();
        let resolve = settings.resolve.map(|resolve| resolve(&io));
        let connector = settings.connector(&io);
        let records = Rc::new(Records::new(logs.access, logs.counters));
        let (limits, trusted) = (settings.limits.clone(), settings.trusted.clone());
        let common = Common { io: io.clone(), limits, trusted, records };
        let latest = RefCell::new(Rc::new(Shared { io, common, settings, resolve, connector }));
        Proxy { current, latest }
    }

    fn shared(&self) -> Rc<Shared> {
        let (settings, mut latest) = (self.current.get(), self.latest.borrow_mut());
        if !Arc::ptr_eq(&settings, &latest.settings) {
            *latest = Rc::new(latest.with_settings(settings));
        }
        Rc::clone(&latest)
    }

    /// Returns the state for a parked connection, which may have started on another thread and with older
    /// settings.
    fn shared_with_settings(&self, settings: &Arc<Settings>) -> Rc<Shared> {
        let latest = self.latest.borrow();
        if Arc::ptr_eq(settings, &latest.settings) {
            return Rc::clone(&latest);
        }
        Rc::new(latest.with_settings(Arc::clone(settings)))
    }
}

impl Shared {
    fn with_settings(&self, settings: Arc<Settings>) -> Shared {
        Shared {
            io: self.io.clone(),
            common: self.common.with(&settings.limits, &settings.trusted),
            resolve: settings.resolve.map(|resolve| resolve(&self.io)),
            connector: settings.connector(&self.io),
            settings,
        }
    }
}

impl Handler for Proxy {
    fn serve(&self, stream: Stream) -> LocalFuture {
        Box::pin(client::serve(stream, self.shared()))
    }

    fn refuse(&self, stream: Stream) -> LocalFuture {
        Box::pin(client::refuse(stream, self.shared()))
    }

    fn resume(&self, stream: Stream, parked: Parked, action: Resume) -> LocalFuture {
        match parked.state.downcast::<ParkedClient>() {
            Ok(parked) => {
                let shared = self.shared_with_settings(parked.settings());
                Box::pin(client::resume(stream, *parked, shared, action))
            }
            // The state of another protocol. An engine resumes a connection by its own handler, so this does
            // not happen.
            Err(_) => Box::pin(async move { drop(stream) }),
        }
    }

    fn background(&self) -> LocalFuture {
        let shared = Rc::clone(&self.latest.borrow());
        let current = Arc::clone(&self.current);
        Box::pin(async move {
            let origins = select(check_origins(&shared, &current), close_idle(&shared, &current));
            let upkeep = select(origins, check_files(&shared, &current));
            select(shared.common.records.log.flush_forever(&shared.io), upkeep).await;
        })
    }
}

/// Returns whether at least one origin accepts a connection.
pub async fn is_any_origin_up(io: &Io, settings: &Settings) -> bool {
    let (deadline, resolve) = (io.deadline(), settings.resolve.map(|resolve| resolve(io)));
    let time_max = settings.times.connect;
    let connector = settings.connector(io);
    let (resolve, connector) = (resolve.as_ref(), connector.as_ref());
    let tls = settings.tls.as_ref();
    for origin in settings.origins.origins() {
        let preface = &check_preface(origin, settings);
        let by = Connecting { io, resolve, connector, tls, preface, deadline: &deadline, time_max };
        if let Ok(connection) = origin.connect(&by).await {
            connection.close();
            return true;
        }
    }
    false
}

/// Connects to the origins that accepted no connection, one after the other, so that they get requests again
/// as soon as they do. Never returns.
async fn check_origins(shared: &Shared, current: &Current<Settings>) {
    let deadline = shared.io.deadline();
    loop {
        shared.io.sleep(HEALTH_CHECK_TIME).await;
        let settings = current.get();
        let resolve = settings.resolve.map(|resolve| resolve(&shared.io));
        let connector = settings.connector(&shared.io);
        for origin in failing(&settings) {
            let by = Connecting {
                io: &shared.io,
                resolve: resolve.as_ref(),
                connector: connector.as_ref(),
                tls: settings.tls.as_ref(),
                preface: &check_preface(&origin, &settings),
                deadline: &deadline,
                time_max: settings.times.connect,
            };
            match origin.connect(&by).await {
                // A header of the PROXY protocol may be expected: this connection carries no request.
                Ok(connection) => connection.close(),
                Err(error) => tracing::debug!(origin = %origin.key(), %error, "the origin is still away"),
            }
        }
    }
}

/// Returns the bytes that a connection without a request begins with: an origin may expect a header of the
/// PROXY protocol before a TLS handshake.
fn check_preface(origin: &Origin, settings: &Settings) -> Vec<u8> {
    let mut preface = Vec::new();
    if let Some(version) = settings.header.filter(|_| origin.url().is_https()) {
        proxy::write(version, None, None, &mut preface);
    }
    preface
}

fn failing(settings: &Settings) -> Vec<Arc<Origin>> {
    let all = settings.origins.origins().iter().chain(settings.forward.origins());
    all.filter(|origin| origin.is_failing()).map(Arc::clone).collect()
}

/// Closes idle connections that are too old, or that their origins have closed. Never returns.
async fn close_idle(shared: &Shared, current: &Current<Settings>) {
    loop {
        shared.io.sleep(IDLE_CHECK_TIME).await;
        let settings = current.get();
        for origin in settings.origins.origins().iter().chain(settings.forward.origins()) {
            origin.close_expired(&shared.io);
        }
    }
}

/// Starts checks of the files of origins that the cache keeps open. Never returns.
async fn check_files(shared: &Shared, current: &Current<Settings>) {
    // A reload keeps the cache, or its lack.
    let Some(opener) = current.get().cache.clone() else { return pending().await };
    loop {
        shared.io.sleep(PASSED_CHECK_TIME).await;
        if let Some(cache) = opener.get() {
            cache.check_files(&shared.io);
        }
    }
}
