//! A client's subscription to the change feed of a server: it applies the changes, and knows how long the
//! cache can be trusted.
//!
//! Invariants: a change is applied before the trust that its response grants. The next request is sent
//! even if the last one failed, so that a server is used as soon as it is back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use plimsoll_io::{Instant, Io};
use serde::de::DeserializeOwned;

use crate::change_feed::{Changes, FeedPosition, Watch};
use crate::client::RpcClient;
use crate::envelope::decode;
use crate::limits::{WATCH_RETRY_TIME, WATCH_TRUST_TIME};
use crate::method::Method;
use crate::network::Network;
use plimsoll_wire::hex;

/// A subscription to a change feed.
#[derive(Default)]
pub struct Subscription {
    /// Until when the cache is trusted, in nanoseconds of the engine's clock.
    trusted: AtomicU64,
    position: Mutex<Option<FeedPosition>>,
}

impl Subscription {
    /// Returns whether cached entries that have not changed can be trusted.
    pub fn is_trusted(&self, now: Instant) -> bool {
        now.since_start() < Duration::from_nanos(self.trusted.load(Ordering::SeqCst))
    }

    /// Requests changes by `method` in a loop, and passes each to `apply`. Never ends. `server` names the
    /// server in the log.
    pub async fn follow<T, E>(
        &self,
        io: &Io,
        client: &RpcClient,
        (method, server): (Method, &str),
        apply: impl Fn(T),
    ) where
        T: DeserializeOwned,
        E: DeserializeOwned + std::fmt::Display,
    {
        let mut name = [0; 16];
        io.entropy(&mut name);
        let front = hex::encode(&name);
        let mut error = None;
        loop {
            let (sent, known) = (io.now(), self.position());
            // Serialising strings and numbers into memory cannot fail.
            let watch = serde_json::to_vec(&Watch { front: front.clone(), known }).unwrap_or_default();
            let response = client.call_with(io, method, Network::new(), watch.into()).await;
            let failed = match response.and_then(|json| decode::<Changes<T>, E>(&json)) {
                Ok(Ok(changes)) => {
                    self.apply(changes, sent, &apply);
                    None
                }
                Ok(Err(error)) => Some(format!("it tells no changes: {error}")),
                Err(error) => Some(error.to_string()),
            };
            log_changed(server, error.as_ref(), failed.as_ref());
            error = failed;
            if error.is_some() {
                io.sleep(WATCH_RETRY_TIME).await;
            }
        }
    }

    /// Applies the changes in a response to the request that was sent at `sent`.
    fn apply<T>(&self, changes: Changes<T>, sent: Instant, apply: impl Fn(T)) {
        // This comes first: when the time of trust is extended, the changes must have been applied.
        changes.changed.into_iter().for_each(apply);
        *self.position.lock().unwrap_or_else(PoisonError::into_inner) = Some(changes.known);
        let until = (sent + WATCH_TRUST_TIME).since_start();
        let until = u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
        self.trusted.fetch_max(until, Ordering::SeqCst);
    }

    fn position(&self) -> Option<FeedPosition> {
        self.position.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Logs an error when it differs from the last one, and when it is over.
fn log_changed(server: &str, before: Option<&String>, now: Option<&String>) {
    match now {
        Some(error) if before != Some(error) => tracing::warn!("{server} does not answer: {error}"),
        None if before.is_some() => tracing::info!("{server} is back"),
        _ => {}
    }
}
