//! The RPC client: carries a front's requests to a remote auth server, and its changes back.
//!
//! It decides nothing, and [`crate::ask`] and [`crate::desk`] define the messages. Invariants: a request
//! is sent once. One without a response is `Unavailable`, never a success. A request is tried even if the
//! last one failed, so that a server is used as soon as it is back.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use plimsoll_client::http::{self, Body, Client, Request, Resolve, Times};
use plimsoll_io::Io;
use plimsoll_wire::hex;
use plimsoll_wire::http::status::Status;
use serde::Serialize;
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use crate::ask::{Answer, Question, Told};
use crate::desk::{News, Watch};
use crate::error::Error;
use crate::limits::{
    CONNECT_TIME, MESSAGE_BYTES_MAX, QUICK_ANSWER_TIME, QUICK_CONNECTIONS, SLOW_ANSWER_TIME,
    SLOW_CONNECTIONS, WATCH_ANSWER_TIME, WATCH_RETRY_TIME,
};
use crate::remote::{Line, Place, Remote};
use crate::sessions::SessionId;

/// The path that requests are sent to.
pub const QUESTIONS: &str = "/api/auth/questions";
/// The path that changes are requested from.
pub const CHANGES: &str = "/api/auth/changes";

/// Why there is no response: a text for the log.
#[derive(Debug, thiserror::Error)]
enum Unanswered {
    #[error("{0}")]
    Broken(#[from] http::Error),
    #[error("it does not take the secret; give the same --secret-file to both")]
    Secret,
    #[error("it says {0}")]
    Status(u16),
}

/// Forwards a front's message to the auth server at `place`, at path `to`: [`QUESTIONS`] or [`CHANGES`].
/// Returns the response.
///
/// # Errors
/// [`Error::Unavailable`] if there is no response.
pub async fn hand_on<T: DeserializeOwned>(
    place: &Place,
    io: &Io,
    to: &str,
    said: &impl Serialize,
) -> Result<T, Error> {
    // The front has its own timeout for each kind of message; this is the longest of them.
    let mut post = Post::new(place, io, None, SLOW_ANSWER_TIME);
    let told: Result<Told<T>, Unanswered> = post.send(to, said).await;
    match told {
        Ok(Told::Answer(answer)) => Ok(answer),
        Ok(Told::Error(error)) => Err(error),
        Err(unanswered) => {
            tracing::error!("a front's request could not be forwarded: {unanswered}");
            Err(Error::Unavailable)
        }
    }
}

/// Carries requests and changes for as long as it is polled. A front has one such task.
pub(crate) async fn carry(remote: Arc<Remote>, io: Io, resolve: Option<Resolve>) {
    let post = |patience| Post::new(&remote.place, &io, resolve.clone(), patience);
    let mut all: Vec<Pin<Box<dyn Future<Output = ()> + '_>>> = Vec::new();
    // A connection's own process sends one request at a time, so one connection of each kind is enough.
    let (quick, slow) = if remote.is_beside() { (1, 1) } else { (QUICK_CONNECTIONS, SLOW_CONNECTIONS) };
    for _ in 0..quick {
        all.push(Box::pin(carry_questions(post(QUICK_ANSWER_TIME), &remote, remote.quick())));
    }
    for _ in 0..slow {
        all.push(Box::pin(carry_questions(post(SLOW_ANSWER_TIME), &remote, remote.slow())));
    }
    if !remote.is_beside() {
        all.push(Box::pin(carry_changes(post(WATCH_ANSWER_TIME), &remote, &io)));
    }
    std::future::poll_fn(|cx| {
        // None of them completes.
        for each in &mut all {
            let _ = each.as_mut().poll(cx);
        }
        Poll::<()>::Pending
    })
    .await;
}

/// Sends one request to the auth server at `place`, to check that it answers.
///
/// # Errors
/// A description of the problem, for an operator.
pub async fn try_out(place: &Place, io: &Io, resolve: Option<Resolve>) -> Result<(), String> {
    let told: Result<Told<Answer>, _> =
        Post::new(place, io, resolve, QUICK_ANSWER_TIME).send(QUESTIONS, &of_nobody(io)).await;
    match told.map_err(|unanswered| unanswered.to_string())? {
        // The expected error: the server looked in its directory and found no such session.
        Told::Error(Error::NoSession) => Ok(()),
        Told::Error(error) => Err(error.to_string()),
        Told::Answer(_) => Err("it knows a session that nobody began".to_owned()),
    }
}

/// A request for a session that does not exist: a server that can read its directory reports that.
pub(crate) fn of_nobody(io: &Io) -> Question {
    let mut number = [0; 32];
    io.entropy(&mut number);
    Question::Session(SessionId(number))
}

/// Carries one request after the other, on one connection unless `connect_each` is set.
async fn carry_questions(mut post: Post, remote: &Remote, line: &Line) {
    loop {
        let asked = line.next().await;
        let told: Result<Told<Answer>, Unanswered> = post.send(QUESTIONS, &asked.question).await;
        let answer = match told {
            Ok(told) => told.into(),
            Err(unanswered) => {
                // The task that requests changes logs once that the server is away.
                tracing::debug!("the auth server did not answer: {unanswered}");
                Err(Error::Unavailable)
            }
        };
        if remote.settings().connect_each {
            post.client.close();
        }
        asked.answer.send(answer);
    }
}

/// Requests changes in a loop.
async fn carry_changes(mut post: Post, remote: &Remote, io: &Io) {
    let mut drawn = [0; 16];
    io.entropy(&mut drawn);
    let front = hex::encode(&drawn);
    let mut trouble = None;
    loop {
        let asked = io.now();
        let watch = Watch { front: front.clone(), known: remote.known() };
        let wrong = match post.send::<Told<News>>(CHANGES, &watch).await {
            Ok(Told::Answer(news)) => {
                remote.hear(news, asked);
                None
            }
            Ok(Told::Error(error)) => Some(format!("it tells no changes: {error}")),
            Err(unanswered) => Some(unanswered.to_string()),
        };
        note(&mut trouble, wrong);
        if trouble.is_some() {
            io.sleep(WATCH_RETRY_TIME).await;
        }
    }
}

/// Logs an error when it differs from the last one, and when it is over.
fn note(before: &mut Option<String>, now: Option<String>) {
    match &now {
        Some(trouble) if before.as_ref() != Some(trouble) => {
            tracing::warn!("the auth server does not answer: {trouble}");
        }
        None if before.is_some() => tracing::info!("the auth server is back"),
        _ => {}
    }
    *before = now;
}

/// A connection to the auth server.
struct Post {
    client: Client,
    authorization: Zeroizing<String>,
}

impl Post {
    fn new(place: &Place, io: &Io, resolve: Option<Resolve>, patience: Duration) -> Post {
        let times = Times { connect: CONNECT_TIME, first_byte: patience, between_bytes: patience };
        let client = Client::new(io, place.url.clone()).with_times(times).without_repeats();
        let client = match resolve {
            Some(resolve) => client.with_resolve(resolve),
            None => client,
        };
        let secret = String::from_utf8_lossy(place.secret.bytes());
        Post { client, authorization: Zeroizing::new(format!("Bearer {secret}")) }
    }

    async fn send<T: DeserializeOwned>(
        &mut self,
        to: &str,
        message: &impl Serialize,
    ) -> Result<T, Unanswered> {
        let body = serde_json::to_vec(message).unwrap_or_default();
        let mut request = Request::new("POST", to)
            .field("Authorization", self.authorization.as_str())
            .field("Content-Type", "application/json");
        request.body = Body::Bytes(body);
        let mut response = self.client.send(request).await?;
        match response.status() {
            Status::OK => Ok(response.json(MESSAGE_BYTES_MAX).await?),
            Status::UNAUTHORIZED => Err(Unanswered::Secret),
            status => Err(Unanswered::Status(status.code())),
        }
    }
}
