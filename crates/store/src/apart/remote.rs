//! A store elsewhere, as a front reaches it: connections, and requests with one answer each.
//!
//! What the messages say is [`super::ask`]'s. What must hold: a request is sent once, or again where it only
//! looks or nothing of it was taken; a connection is kept only when nothing is under way on it, so many of
//! them, so long; so many files are on their way at a time, however slow who takes them is; the secret is in
//! every request and in no message of ours.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::http::{self, Body, Client, Kept, Request, Resolve, Response, Times, Url};
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

/// Where questions are sent.
pub const QUESTIONS: &str = "/api/store/questions";
/// Where files come from and go to.
pub const FILES: &str = "/api/store/files";
/// Where it is asked whether the store is ready.
pub const READY: &str = "/api/store/ready";
/// The field that says which file, or how an upload begins.
pub const CALL: &str = "Plimsoll-Call";
/// The field that says what is known of a file that is sent.
pub const STAT: &str = "Plimsoll-Stat";
/// The field that says why a file is not sent.
pub const TROUBLE: &str = "Plimsoll-Trouble";

/// Where a store is.
#[derive(Clone)]
pub struct Place {
    /// Its URL, as the HTTP client takes it.
    pub url: Url,
    /// What it and its fronts alone know.
    pub secret: Zeroizing<String>,
    /// What the directory of accounts is called, if others' accounts may have the same numbers: up to 64
    /// letters and digits. Fronts that have one directory say the same.
    pub directory: String,
    /// The folder, here, in which whole uploads wait until all of each has come; none if they go on as they
    /// come.
    pub spool: Option<File>,
    /// What looks up the name of its host; without, the URL has an IP address or `localhost`.
    pub resolve: Option<fn(&Io) -> Resolve>,
}

/// A store elsewhere.
pub(crate) struct Remote {
    place: Place,
    /// Its URL as text: which connections on a shelf lead there.
    leads_to: Arc<str>,
    authorization: Zeroizing<String>,
    /// For files on their way, from any thread.
    transfers: Arc<Turns>,
}

/// A connection that is kept on a thread.
struct Idle {
    kept: Kept,
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

    /// Asks, and waits for the answer.
    pub(super) async fn ask<T: DeserializeOwned + Send + 'static>(
        &self,
        io: &Io,
        asked: &Asked,
    ) -> Result<T> {
        let (effect, patience) = asked.question.manner();
        // Strings and numbers into memory: there is nothing here that could fail.
        let body = serde_json::to_vec(asked).unwrap_or_default();
        let request = self.request("POST", QUESTIONS).field("Content-Type", "application/json");
        let request = request.idempotent_if(effect == Effect::Looks).body(Body::Bytes(body));
        let asked = self.client(io, patience).send_along(request);
        self.told(io, asked.await.map_err(|error| away(&error))?).await
    }

    /// Whether it answers, and takes the secret.
    pub(crate) async fn is_there(&self, io: &Io) -> Result<()> {
        let asked = self.client(io, STORE_ANSWER_TIME).send_along(self.request("GET", READY));
        self.told(io, asked.await.map_err(|error| away(&error))?).await
    }

    /// A turn for a file on its way: it may take as long as a client does. Questions wait for none.
    ///
    /// # Errors
    /// [`Error::Busy`].
    pub(super) async fn transfer(&self, io: &Io) -> Result<Turn> {
        self.transfers.take(io).await
    }

    /// A request with the secret in it.
    pub(super) fn request<'a>(&self, method: &'a str, target: &'a str) -> Request<'a> {
        Request::new(method, target).field("Authorization", self.authorization.as_str())
    }

    /// A client on a connection that was kept, if there is one: the store may be at what it is asked for as
    /// long as `patience`, if it says so.
    pub(super) fn client(&self, io: &Io, patience: Duration) -> Client {
        let times = Times {
            connect: STORE_CONNECT_TIME,
            first_byte: STORE_SILENT_TIME,
            between_bytes: STORE_BETWEEN_BYTES_TIME,
        };
        let interims = patience.as_secs() / STORE_TELLS_EVERY.as_secs();
        let interims = u32::try_from(interims).unwrap_or(u32::MAX);
        let client = Client::new(io, self.place.url.clone()).with_times(times);
        let mut client = client.with_interims(interims);
        if let Some(resolve) = self.place.resolve {
            client = client.with_resolve(resolve(io));
        }
        match self.idle(io) {
            Some(kept) => client.with_kept(kept),
            None => client,
        }
    }

    /// What an answer in JSON says. A long one is read where it holds up nobody of this thread.
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

    /// A connection that was kept, if one is young enough: an older one may be closed at the very moment that
    /// a request goes out.
    fn idle(&self, io: &Io) -> Option<Kept> {
        let idle: Idle = io.shelf().take(&self.leads_to)?;
        if io.now() < idle.since + STORE_CONNECTION_KEPT_TIME {
            return Some(idle.kept);
        }
        // The others are older.
        while io.shelf().take::<Idle>(&self.leads_to).is_some() {}
        None
    }

    /// Keeps the connection that an answer came on.
    pub(super) fn keep(&self, io: &Io, response: Response<'static>) {
        if let Some(kept) = response.into_kept() {
            let idle = Idle { kept, since: io.now() };
            io.shelf().put(&self.leads_to, idle, STORE_CONNECTIONS_KEPT_MAX);
        }
    }
}

/// What is answered, in JSON.
fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T> {
    let told: Told<T> = serde_json::from_slice(json).map_err(|_| {
        tracing::warn!("the store's answer is not what was asked for; the two may be of different versions");
        Error::Away
    })?;
    told.into()
}

/// Whether a store has answered, and not somebody who speaks for none.
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

/// There was no answer, or no whole one: nobody knows whether it was done.
pub(super) fn away(error: &http::Error) -> Error {
    tracing::warn!(%error, "the store did not answer");
    Error::Away
}
