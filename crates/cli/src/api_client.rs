//! The client of a command: one keep-alive connection, with the session token in each request.
//!
//! It does not retry ([`crate::retry`] does). Invariants: a refusal is a [`Failure`]. A password is sent
//! only to the server that was named.

use plimsoll_client::http::{Body, Client, Error, Request, Response, Times, Url};
use plimsoll_io::Io;
use plimsoll_tls::Connector;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::failure::{Failure, Refusal};
use crate::limits::{ANSWER_TIME_MAX, JSON_BYTES_MAX};
use crate::runtime::Runtime;
use crate::session::Session;

/// A server, with the session for its requests.
pub(crate) struct ApiClient {
    pub(crate) io: Io,
    pub(crate) runtime: Runtime,
    pub(crate) url: Url,
    client: Client,
    session: Option<Session>,
    tls: Option<Connector>,
    /// Whether it has ever answered: if so, a failed connection is worth a retry.
    pub(crate) has_answered: bool,
}

impl ApiClient {
    /// Creates a client of the server at `url`. Each request carries the session's token.
    /// `tls` encrypts connections, if the URL is `https`.
    pub(crate) fn new(
        io: &Io,
        runtime: Runtime,
        url: Url,
        session: Option<Session>,
        tls: Option<Connector>,
    ) -> ApiClient {
        let times = Times { first_byte: ANSWER_TIME_MAX, ..Times::default() };
        let mut client = Client::new(io, url.clone()).with_resolve((runtime.resolve)(io)).with_times(times);
        if let Some(tls) = &tls {
            client = client.with_tls(tls.clone());
        }
        ApiClient { io: io.clone(), runtime, url, client, session, tls, has_answered: false }
    }

    /// As [`Client::connect_early`].
    pub(crate) async fn connect_early(&mut self) -> Result<(), Error> {
        self.client.connect_early().await
    }

    /// Returns a client with the same server and session, on another connection.
    pub(crate) fn new_connection(&self) -> ApiClient {
        let (session, tls) = (self.session.clone(), self.tls.clone());
        let mut other = ApiClient::new(&self.io, self.runtime, self.url.clone(), session, tls);
        other.has_answered = self.has_answered;
        other
    }

    /// Returns a client of the same server, on another connection, whose requests carry no token.
    pub(crate) fn without_session(&self) -> ApiClient {
        ApiClient::new(&self.io, self.runtime, self.url.clone(), None, self.tls.clone())
    }

    /// Identifies the server and account, as a key for stored state.
    pub(crate) fn identity(&self) -> String {
        let account = self.session.as_ref().map_or("", |session| session.account.as_str());
        format!("{} {account}", self.url)
    }

    /// Returns the account of the session.
    pub(crate) fn account(&self) -> Option<String> {
        self.session.as_ref().map(|session| session.account.clone())
    }

    /// Sends a request and returns the response. Any status is a success.
    pub(crate) async fn send<'a>(&'a mut self, mut request: Request<'_>) -> Result<Response<'a>, Failure> {
        if let Some(session) = &self.session {
            request = request.field("Authorization", format!("Bearer {}", session.token));
        }
        let response = self.client.send(request).await?;
        self.has_answered = true;
        Ok(response)
    }

    /// Sends a request and returns a successful response.
    pub(crate) async fn send_ok<'a>(&'a mut self, request: Request<'_>) -> Result<Response<'a>, Failure> {
        let account = self.account();
        let response = self.send(request).await?;
        if (200..300).contains(&response.status().code()) {
            return Ok(response);
        }
        Err(Failure::Refused(Refusal::of(response, account.as_deref()).await))
    }

    /// Sends a request and drops the body of a successful response.
    pub(crate) async fn send_and_discard(&mut self, request: Request<'_>) -> Result<(), Failure> {
        let mut response = self.send_ok(request).await?;
        // Read to its end, so that the connection can be reused.
        response.bytes(JSON_BYTES_MAX).await?;
        Ok(())
    }

    /// Requests JSON.
    pub(crate) async fn get<T: DeserializeOwned>(&mut self, target: &str) -> Result<T, Failure> {
        let request = Request::new("GET", target).field("Accept", "application/json");
        Ok(self.send_ok(request).await?.json(JSON_BYTES_MAX).await?)
    }

    /// Sends JSON and receives JSON.
    pub(crate) async fn post<T: DeserializeOwned>(
        &mut self,
        target: &str,
        value: &impl Serialize,
    ) -> Result<T, Failure> {
        let request = json("POST", target, value)?;
        Ok(self.send_ok(request).await?.json(JSON_BYTES_MAX).await?)
    }
}

/// Returns a request whose body is JSON.
pub(crate) fn json<'a>(
    method: &'a str,
    target: &'a str,
    value: &impl Serialize,
) -> Result<Request<'a>, Failure> {
    let body =
        serde_json::to_vec(value).map_err(|error| Failure::Local(format!("cannot be sent: {error}")))?;
    Ok(Request::new(method, target).field("Content-Type", "application/json").body(Body::Bytes(body)))
}
