//! A server as a person's command speaks to it: one kept connection, and the session with every request.
//!
//! It does not try again ([`super::patience`] does). What must hold: an answer that says no is a
//! [`Failure`]; a password is sent to nobody but the server that was named.

use plimsoll_client::http::{Body, Client, Request, Response, Times, Url};
use plimsoll_io::Io;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::failure::{Failure, Refusal};
use super::limits::{ANSWER_TIME_MAX, JSON_BYTES_MAX};
use super::session::Session;
use crate::resolve::resolve;

/// A server, and who asks it.
pub(crate) struct Server {
    pub(crate) io: Io,
    pub(crate) url: Url,
    client: Client,
    session: Option<Session>,
    /// Whether it has ever answered: then a server that is away may come back.
    pub(super) has_answered: bool,
}

impl Server {
    /// The server at `url`, with the session that every request shows.
    pub(crate) fn new(io: &Io, url: Url, session: Option<Session>) -> Server {
        let times = Times { first_byte: ANSWER_TIME_MAX, ..Times::default() };
        let client = Client::new(io, url.clone()).with_resolve(resolve(io)).with_times(times);
        Server { io: io.clone(), url, client, session, has_answered: false }
    }

    /// The same server and session on another connection.
    pub(crate) fn another(&self) -> Server {
        let mut other = Server::new(&self.io, self.url.clone(), self.session.clone());
        other.has_answered = self.has_answered;
        other
    }

    /// Names the server and the account, for what is remembered of both.
    pub(super) fn identity(&self) -> String {
        let account = self.session.as_ref().map_or("", |session| session.account.as_str());
        format!("{} {account}", self.url)
    }

    /// The account whose session requests show.
    pub(crate) fn account(&self) -> Option<String> {
        self.session.as_ref().map(|session| session.account.clone())
    }

    /// Asks, and takes whatever answer comes.
    pub(crate) async fn send<'a>(&'a mut self, mut request: Request<'_>) -> Result<Response<'a>, Failure> {
        if let Some(session) = &self.session {
            request = request.field("Authorization", format!("Bearer {}", session.token));
        }
        let response = self.client.send(request).await?;
        self.has_answered = true;
        Ok(response)
    }

    /// Asks, and takes an answer that says yes.
    pub(crate) async fn ask<'a>(&'a mut self, request: Request<'_>) -> Result<Response<'a>, Failure> {
        let account = self.account();
        let response = self.send(request).await?;
        if (200..300).contains(&response.status().code()) {
            return Ok(response);
        }
        Err(Failure::Refused(Refusal::of(response, account.as_deref()).await))
    }

    /// Asks for something without looking at what the answer says beyond yes.
    pub(crate) async fn tell(&mut self, request: Request<'_>) -> Result<(), Failure> {
        let mut response = self.ask(request).await?;
        // To its end, so that the connection can be kept.
        response.bytes(JSON_BYTES_MAX).await?;
        Ok(())
    }

    /// Asks for JSON.
    pub(crate) async fn get<T: DeserializeOwned>(&mut self, target: &str) -> Result<T, Failure> {
        let request = Request::new("GET", target).field("Accept", "application/json");
        Ok(self.ask(request).await?.json(JSON_BYTES_MAX).await?)
    }

    /// Sends JSON and gets JSON.
    pub(crate) async fn post<T: DeserializeOwned>(
        &mut self,
        target: &str,
        value: &impl Serialize,
    ) -> Result<T, Failure> {
        let request = json("POST", target, value)?;
        Ok(self.ask(request).await?.json(JSON_BYTES_MAX).await?)
    }
}

/// A request whose body is JSON.
pub(crate) fn json<'a>(
    method: &'a str,
    target: &'a str,
    value: &impl Serialize,
) -> Result<Request<'a>, Failure> {
    let body =
        serde_json::to_vec(value).map_err(|error| Failure::Here(format!("cannot be sent: {error}")))?;
    Ok(Request::new(method, target).field("Content-Type", "application/json").body(Body::Bytes(body)))
}
