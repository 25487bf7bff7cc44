//! A remote store as its RPC client sees it: connections, and requests with one response each.
//!
//! The contents of messages are not here, but in [`super::ask`]. Invariants: a request is repeated only if
//! it is read-only, or if the store received none of it. A connection is kept only while it is idle, with
//! bounds for number and age. Transfers in progress are bounded, however slow their receivers are. The
//! secret is in every request and in no log message.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::http::{self, Body, Client, KeepAlive, Request, Resolve, Response, Times, Url};
use plimsoll_io::{File, Instant, Io, Work};
use plimsoll_wire::http::status::Status;
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use super::ask::{Asked, Effect};
use super::trouble::Told;
use super::turns::{Turn, Turns};
use crate::error::{Error, Result};
use crate::limits::{
    READ_AT_ONCE_BYTES_MAX, STORE_ANSWER_BYTES_MAX, STORE_ANSWER_TIME, STORE_BETWEEN_BYTES_TIME,
    STORE_CONNECT_TIME, STORE_CONNECTION_KEPT_TIME, STORE_CONNECTIONS_KEPT_MAX, STORE_SILENT_TIME,
    STORE_TELLS_EVERY, STORE_TRANSFERS_MAX,
};

/// The URL path of requests.
pub const QUESTIONS: &str = "/api/store/questions";
/// The URL path of file transfers.
pub const FILES: &str = "/api/store/files";
/// The URL path of the readiness check.
pub const READY: &str = "/api/store/ready";
/// The field that has the request for a file, or the request to begin an upload.
pub const CALL: &str = "Plimsoll-Call";
/// The field that has the metadata of a file that is sent.
pub const STAT: &str = "Plimsoll-Stat";
/// The field that has the error if a file is not sent.
pub const TROUBLE: &str = "Plimsoll-Trouble";

/// The address of a store, and the settings for its use.
#[derive(Clone)]
pub struct Place {
    /// Its URL, in the HTTP client's type.
    pub url: Url,
    /// The secret that it shares with its fronts.
    pub secret: Zeroizing<String>,
    /// The name of the directory of accounts, if accounts in another directory may have the same numbers:
    /// up to 64 letters and digits. Fronts that share a directory use the same name.
    pub directory: String,
    /// The local folder in which whole uploads are spooled until all bytes of each are received; none if
    /// they are streamed.
    pub spool: Option<File>,
    /// Resolves the name of its host; without it, the URL must have an IP address or `localhost`.
    pub resolve: Option<fn(&Io) -> Resolve>,
}

/// A remote store.
pub(crate) struct Remote {
    place: Place,
    /// The URL as text: the key of its connections in the pool.
    leads_to: Arc<str>,
    authorization: Zeroizing<String>,
    /// Permits for file transfers, shared by all threads.
    transfers: Arc<Turns>,
}

/// An idle connection in a thread's pool.
struct Idle {
    kept: KeepAlive,
    since: Instant,
}

impl Remote {
    pub(crate) fn new(place: Place) -> Arc<Remote> {
        let authorization = Zeroizing::new(format!("Bearer {}", *place.secret));
        let leads_to = place.url.to_string().into();
        Arc::new(Remote { place, leads_to, authorization, transfers: Turns::new(STORE_TRANSFERS_MAX) })
    }

    pub(super) fn directory(&self) -> &str {
        &self.place.directory
    }

    pub(super) fn spool(&self) -> Option<&File> {
        self.place.spool.as_ref()
    }

    /// Sends a request, and waits for the response.
    pub(super) async fn ask<T: DeserializeOwned + Send + 'static>(
        &self,
        io: &Io,
        asked: &Asked,
    ) -> Result<T> {
        let (effect, patience) = asked.question.manner();
        // Serialising strings and numbers into memory cannot fail.
        let body = serde_json::to_vec(asked).unwrap_or_default();
        let request = self.request("POST", QUESTIONS).field("Content-Type", "application/json");
        let request = request.idempotent_if(effect == Effect::Looks).body(Body::Bytes(body));
        let asked = self.client(io, patience).send_owned(request);
        self.told(io, asked.await.map_err(|error| away(&error))?).await
    }

    /// Checks that the store responds, and accepts the secret.
    pub(crate) async fn is_there(&self, io: &Io) -> Result<()> {
        let asked = self.client(io, STORE_ANSWER_TIME).send_owned(self.request("GET", READY));
        self.told(io, asked.await.map_err(|error| away(&error))?).await
    }

    /// Takes a permit for a file transfer, which may take as long as a client does. Other requests need
    /// none.
    ///
    /// # Errors
    /// [`Error::Busy`].
    pub(super) async fn transfer(&self, io: &Io) -> Result<Turn> {
        self.transfers.take(io).await
    }

    /// Creates a request that has the secret.
    pub(super) fn request<'a>(&self, method: &'a str, target: &'a str) -> Request<'a> {
        Request::new(method, target).field("Authorization", self.authorization.as_str())
    }

    /// Creates a client, on a connection from the pool if there is one. The store may work on its request
    /// for as long as `patience`, if it sends interim responses.
    pub(super) fn client(&self, io: &Io, patience: Duration) -> Client {
        let times = Times {
            connect: STORE_CONNECT_TIME,
            first_byte: STORE_SILENT_TIME,
            between_bytes: STORE_BETWEEN_BYTES_TIME,
        };
        let interims = patience.as_secs() / STORE_TELLS_EVERY.as_secs();
        let interims = u32::try_from(interims).unwrap_or(u32::MAX);
        let client = Client::new(io, self.place.url.clone()).with_times(times);
        let mut client = client.with_interims_max(interims);
        if let Some(resolve) = self.place.resolve {
            client = client.with_resolve(resolve(io));
        }
        match self.idle(io) {
            Some(kept) => client.with_connection(kept),
            None => client,
        }
    }

    /// Decodes a JSON response. A long one is parsed as listing work, so that it does not delay this
    /// thread's connections.
    pub(super) async fn told<T: DeserializeOwned + Send + 'static>(
        &self,
        io: &Io,
        mut response: Response<'static>,
    ) -> Result<T> {
        check(&response)?;
        let json = response.bytes(STORE_ANSWER_BYTES_MAX).await.map_err(|error| away(&error))?;
        self.keep(io, response);
        if json.len() <= READ_AT_ONCE_BYTES_MAX {
            return read(&json);
        }
        io.ask(Work::Listings, move |_| Ok(read(&json))).await?
    }

    /// Takes an idle connection from the pool, if it is recent: the store may close an older one just as a
    /// request is sent.
    fn idle(&self, io: &Io) -> Option<KeepAlive> {
        let idle: Idle = io.shelf().take(&self.leads_to)?;
        if io.now() < idle.since + STORE_CONNECTION_KEPT_TIME {
            return Some(idle.kept);
        }
        // The remaining ones are older.
        while io.shelf().take::<Idle>(&self.leads_to).is_some() {}
        None
    }

    /// Returns the connection of a response to the pool.
    pub(super) fn keep(&self, io: &Io, response: Response<'static>) {
        if let Some(kept) = response.into_connection() {
            let idle = Idle { kept, since: io.now() };
            io.shelf().put(&self.leads_to, idle, STORE_CONNECTIONS_KEPT_MAX);
        }
    }
}

/// Decodes the value or error in a JSON response.
fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T> {
    let told: Told<T> = serde_json::from_slice(json).map_err(|_| {
        tracing::warn!(
            "the store's response is not of the request's kind; the two may be of different versions"
        );
        Error::Away
    })?;
    told.into()
}

/// Checks that a store has responded, and not another server.
pub(super) fn check(response: &Response<'_>) -> Result<()> {
    match response.status() {
        Status::OK => Ok(()),
        Status::UNAUTHORIZED => {
            tracing::error!("the store does not take the secret; give the same --secret-file to both");
            Err(Error::Away)
        }
        status => {
            tracing::warn!(status = status.code(), "the store does not answer as a store does");
            Err(Error::Away)
        }
    }
}

/// Logs a missing or incomplete response, and returns [`Error::Away`]: the outcome is unknown.
pub(super) fn away(error: &http::Error) -> Error {
    tracing::warn!(%error, "the store did not answer");
    Error::Away
}
