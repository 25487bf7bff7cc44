//! One origin: its address, its health, its counts, and the idle connections of each thread.
//!
//! It does not choose among origins ([`crate::balance`] does). Invariants: an idle connection is reused only
//! if it is open and nothing arrived on it. The number of idle connections and their age are bounded.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_channel::Connector;
use plimsoll_client::http::{Connection, Dial, Error, Resolve, Url};
use plimsoll_io::{Address, Deadline, Instant, Io, Stream};
use plimsoll_tls::Connector as TlsConnector;

use crate::admission::{Admission, Permit};
use crate::histogram::Histogram;
use crate::limits::{
    FAILURE_REPORT_TIME, FAILURES_MAX, FRESH_CONNECTION_TIME, IDLE_CONNECTION_TIME, IDLE_CONNECTIONS_MAX,
    UNHEALTHY_TIME,
};

/// One origin, shared by all threads.
#[derive(Debug)]
pub struct Origin {
    url: Url,
    /// The URL as text: the key of its connections in a thread's pool.
    key: Arc<str>,
    health: Health,
    pub(crate) counts: Counts,
    pub(crate) admission: Arc<Admission>,
}

/// Whether connecting to an origin succeeds.
#[derive(Debug, Default)]
struct Health {
    /// Failures since the last success.
    failures: AtomicU64,
    /// The time of the next attempt after those, in nanoseconds since the engine's start.
    retry_at: AtomicU64,
    /// The time from which a failed request is a warning again, in the same unit.
    report_at: AtomicU64,
}

/// Counts of one origin since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Requests in progress.
    pub(crate) active: AtomicU64,
    /// Attempts of requests.
    pub(crate) requests: AtomicU64,
    /// Attempts that ended without a whole response.
    pub(crate) failures: AtomicU64,
    /// Requests that were repeated after such an attempt.
    pub(crate) retries: AtomicU64,
    /// Connections that were opened.
    pub(crate) connections: AtomicU64,
    /// Requests that were sent on a connection that had carried another.
    pub(crate) reused: AtomicU64,
    /// Idle connections.
    pub(crate) idle: AtomicU64,
    /// Time from a request to the head of its response.
    pub(crate) first_byte: Histogram,
}

/// A request in progress at an origin. Dropping it ends the count.
pub(crate) struct ActiveRequest {
    origin: Arc<Origin>,
    /// The right to use a connection, which is passed on.
    _permit: Permit,
}

/// An idle connection in a thread's pool.
struct Idle {
    connection: Option<Connection>,
    since: Instant,
    origin: Arc<Origin>,
}

impl Drop for Idle {
    fn drop(&mut self) {
        self.origin.counts.idle.fetch_sub(1, Ordering::Relaxed);
        self.connection.take().into_iter().for_each(Connection::close);
    }
}

/// The means to connect to an origin.
pub(crate) struct Connecting<'a> {
    pub(crate) io: &'a Io,
    pub(crate) resolve: Option<&'a Resolve>,
    /// Connects channels, if origins at Unix sockets have them.
    pub(crate) connector: Option<&'a Connector>,
    pub(crate) tls: Option<&'a TlsConnector>,
    /// Bytes that are sent before everything else, by TCP or a Unix socket: the header of the PROXY protocol.
    pub(crate) preface: &'a [u8],
    pub(crate) deadline: &'a Deadline,
    pub(crate) time_max: Duration,
}

impl Origin {
    /// Creates an origin at `url`, which must have no path.
    #[must_use]
    pub fn new(url: Url) -> Arc<Origin> {
        let key = url.to_string().into();
        let (health, counts, admission) = Default::default();
        Arc::new(Origin { url, key, health, counts, admission })
    }

    /// Returns the URL.
    #[must_use]
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the URL as text.
    pub(crate) fn key(&self) -> &Arc<str> {
        &self.key
    }

    /// Whether requests may be sent to it, by the latest attempts to connect.
    pub(crate) fn is_healthy(&self, now: Instant) -> bool {
        let failures = self.health.failures.load(Ordering::Relaxed);
        failures < FAILURES_MAX || nanos(now) >= self.health.retry_at.load(Ordering::Relaxed)
    }

    /// Whether the latest attempts to connect have failed, even if it is time for the next one.
    pub(crate) fn is_failing(&self) -> bool {
        self.health.failures.load(Ordering::Relaxed) >= FAILURES_MAX
    }

    /// Records that it accepted a connection.
    pub(crate) fn succeeded(&self) {
        if self.health.failures.swap(0, Ordering::Relaxed) >= FAILURES_MAX {
            tracing::info!(origin = %self.url, "the origin accepts connections again");
        }
    }

    /// Records that it did not accept a connection.
    pub(crate) fn failed(&self, now: Instant, error: &Error) {
        self.health.retry_at.store(nanos(now + UNHEALTHY_TIME), Ordering::Relaxed);
        if self.health.failures.fetch_add(1, Ordering::Relaxed) + 1 == FAILURES_MAX {
            tracing::warn!(origin = %self.url, %error, "the origin accepts no connections");
        }
    }

    /// Logs that a request got no whole response: as a warning, unless one was logged within
    /// [`FAILURE_REPORT_TIME`].
    pub(crate) fn report(&self, now: Instant, reason: &str) {
        let next = nanos(now + FAILURE_REPORT_TIME);
        let is_due = |at: u64| (nanos(now) >= at).then_some(next);
        let report_at = &self.health.report_at;
        if report_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_due).is_ok() {
            tracing::warn!(origin = %self.url, reason, "a request failed");
        } else {
            tracing::debug!(origin = %self.url, reason, "a request failed");
        }
    }

    /// Counts a request in progress.
    pub(crate) fn begin(self: &Arc<Origin>, permit: Permit) -> ActiveRequest {
        self.counts.active.fetch_add(1, Ordering::Relaxed);
        self.counts.requests.fetch_add(1, Ordering::Relaxed);
        ActiveRequest { origin: Arc::clone(self), _permit: permit }
    }

    /// Takes an idle connection of this thread. A request that must not be repeated gets a recent one only.
    pub(crate) fn take_idle(&self, io: &Io, may_repeat: bool) -> Option<Connection> {
        let age_max = if may_repeat { IDLE_CONNECTION_TIME } else { FRESH_CONNECTION_TIME };
        while let Some(mut idle) = io.resource_pool().take::<Idle>(&self.key) {
            if io.now() >= idle.since + age_max {
                // The others are older. This one may do for the next request.
                if io.now() < idle.since + IDLE_CONNECTION_TIME {
                    io.resource_pool().put(&self.key, idle, IDLE_CONNECTIONS_MAX);
                    return None;
                }
                continue;
            }
            if idle.connection.as_mut().is_some_and(Connection::is_quiet) {
                return idle.connection.take();
            }
        }
        None
    }

    /// Keeps a connection for the next request of this thread.
    pub(crate) fn keep(self: &Arc<Origin>, io: &Io, mut connection: Connection) {
        if !connection.watch() {
            return connection.close();
        }
        self.counts.idle.fetch_add(1, Ordering::Relaxed);
        let idle = Idle { connection: Some(connection), since: io.now(), origin: Arc::clone(self) };
        io.resource_pool().put(&self.key, idle, IDLE_CONNECTIONS_MAX);
    }

    /// Closes the idle connections of this thread that are too old, or that the origin has closed.
    pub(crate) fn close_expired(&self, io: &Io) {
        let is_usable = |idle: &mut Idle| {
            io.now() < idle.since + IDLE_CONNECTION_TIME
                && idle.connection.as_mut().is_some_and(Connection::is_quiet)
        };
        let all: Vec<Idle> = std::iter::from_fn(|| io.resource_pool().take(&self.key)).collect();
        for mut idle in all.into_iter().rev() {
            if is_usable(&mut idle) {
                io.resource_pool().put(&self.key, idle, IDLE_CONNECTIONS_MAX);
            }
        }
    }

    async fn connect_channel(
        &self,
        connector: &Connector,
        at: &Address,
        by: &Connecting<'_>,
    ) -> Result<Stream, Error> {
        by.deadline.after(by.time_max);
        let connected = by.deadline.within(connector.connect(at)).await;
        let connected = connected.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        connected.map_err(|source| Error::Connect { to: self.url.to_string(), source })
    }

    /// Opens a connection.
    pub(crate) async fn connect(&self, by: &Connecting<'_>) -> Result<Connection, Error> {
        let connected = match by.connector.zip(self.url.unix_socket()) {
            Some((connector, at)) => self.connect_channel(connector, at, by).await,
            None => {
                let dial = Dial {
                    io: by.io,
                    resolve: by.resolve,
                    tls: by.tls,
                    preface: by.preface,
                    deadline: by.deadline,
                };
                dial.connect(&self.url, by.time_max).await
            }
        };
        match connected {
            Ok(stream) => {
                self.succeeded();
                self.counts.connections.fetch_add(1, Ordering::Relaxed);
                Ok(Connection::new(stream))
            }
            Err(error) => {
                self.failed(by.io.now(), &error);
                Err(error)
            }
        }
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.origin.counts.active.fetch_sub(1, Ordering::Relaxed);
    }
}

fn nanos(at: Instant) -> u64 {
    u64::try_from(at.since_start().as_nanos()).unwrap_or(u64::MAX)
}
