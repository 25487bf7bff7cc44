//! A remote auth server, as a front sees it: requests that wait for a connection, and how long cached
//! identities can be trusted.
//!
//! It sends nothing ([`crate::courier`] does). Invariants: a request is answered, refused at once, or
//! fails in a bounded time. No cached identity is trusted once a change may have been missed. Token
//! checks never queue behind requests with passwords, which are slow.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use plimsoll_io::oneshot::{Sender, oneshot};
use plimsoll_io::{FairQueue, Instant, Io};

use crate::ask::{Answer, Question};
use crate::attempts::Network;
use crate::changes::Changes;
use crate::desk::{Known, News};
use crate::error::Error;
use crate::limits::{
    BUSY_RETRY_TIME, FRONT_TRUST_TIME, QUESTIONS_WAITING_MAX, QUICK_ANSWER_TIME, SLOW_ANSWER_TIME,
};
use crate::secret::Secret;
use crate::settings::{InForce, Settings};

/// A remote auth server.
pub(crate) struct Remote {
    pub(crate) place: Place,
    settings: InForce,
    changes: Changes,
    /// Whether it is the main process of this server: it reports no changes, so each check is a request.
    is_beside: bool,
    /// Until when cached identities are trusted, in nanoseconds of the engine's clock.
    trusted: AtomicU64,
    known: Mutex<Option<Known>>,
    quick: Line,
    slow: Line,
}

/// The address of an auth server, and the secret for it.
#[derive(Clone)]
pub struct Place {
    /// Its URL, for the HTTP client.
    pub url: plimsoll_client::http::Url,
    /// The secret that it shares with its fronts.
    pub secret: Secret,
}

/// A queue of requests that wait for a connection. Networks take turns: guesses from some delay log-ins
/// of others by one turn each. Requests without a password have no network and keep their order.
pub(crate) struct Line(Mutex<Waiting>);

struct Waiting {
    questions: FairQueue<Network, Asked>,
    couriers: Vec<Waker>,
}

/// A request, and the channel for its response.
pub(crate) struct Asked {
    pub(crate) question: Question,
    pub(crate) answer: Sender<Result<Answer, Error>>,
}

impl Remote {
    pub(crate) fn new(place: Place, settings: Settings, is_beside: bool) -> Remote {
        Remote {
            place,
            settings: InForce::new(settings),
            changes: Changes::new(),
            is_beside,
            trusted: AtomicU64::new(0),
            known: Mutex::new(None),
            quick: Line::new(),
            slow: Line::new(),
        }
    }

    pub(crate) fn set(&self, settings: Settings) {
        self.settings.set(settings);
    }

    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.settings.get()
    }

    pub(crate) fn changes(&self) -> &Changes {
        &self.changes
    }

    /// Whether it reports no changes, so that cached identities are never trusted.
    pub(crate) fn is_beside(&self) -> bool {
        self.is_beside
    }

    /// Whether cached identities that have not changed can be trusted.
    pub(crate) fn is_trusted(&self, now: Instant) -> bool {
        now.since_start() < Duration::from_nanos(self.trusted.load(Ordering::SeqCst))
    }

    /// Sends a request, and waits for the response.
    pub(crate) async fn answer(&self, io: &Io, question: Question) -> Result<Answer, Error> {
        let (line, time) = match question.has_password() {
            true => (&self.slow, SLOW_ANSWER_TIME),
            false => (&self.quick, QUICK_ANSWER_TIME),
        };
        let (answer, wait) = oneshot();
        line.add(Asked { question, answer });
        let deadline = io.deadline();
        deadline.after(time);
        // After a timeout the RPC client sees that the response is no longer wanted.
        let answered = deadline.within(wait).await.ok().flatten();
        answered.unwrap_or(Err(Error::Unavailable))
    }

    pub(crate) fn quick(&self) -> &Line {
        &self.quick
    }

    pub(crate) fn slow(&self) -> &Line {
        &self.slow
    }

    /// Returns the position in the change feed.
    pub(crate) fn known(&self) -> Option<Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Applies the changes in a response to the request that was sent at `asked`.
    pub(crate) fn hear(&self, news: News, asked: Instant) {
        // This comes first: when the time of trust is extended, the changes must have been applied.
        news.changed.into_iter().for_each(|topic| self.changes.note(topic));
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Some(news.known);
        let until = (asked + FRONT_TRUST_TIME).since_start();
        let until = u64::try_from(until.as_nanos()).unwrap_or(u64::MAX);
        self.trusted.fetch_max(until, Ordering::SeqCst);
    }
}

impl Line {
    fn new() -> Line {
        Line(Mutex::new(Waiting { questions: FairQueue::new(QUESTIONS_WAITING_MAX), couriers: Vec::new() }))
    }

    fn add(&self, asked: Asked) {
        let mut waiting = self.waiting();
        if waiting.questions.is_full() {
            waiting.questions.retain(|_, asked| asked.answer.is_wanted());
        }
        let network = asked.question.network();
        let displaced = waiting.questions.push(network, asked);
        // All of them: a single woken task may be busy with another request by now.
        let couriers = std::mem::take(&mut waiting.couriers);
        drop(waiting);
        couriers.into_iter().for_each(Waker::wake);
        if let Some(displaced) = displaced {
            displaced.answer.send(Err(Error::Busy { retry_after: BUSY_RETRY_TIME }));
        }
    }

    /// Waits for the next request whose response is still wanted.
    pub(crate) async fn next(&self) -> Asked {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    fn poll_next(&self, cx: &Context<'_>) -> Poll<Asked> {
        let mut waiting = self.waiting();
        while let Some((_, asked)) = waiting.questions.pop(|_| Some(|_: &Asked| true)) {
            if asked.answer.is_wanted() {
                return Poll::Ready(asked);
            }
        }
        if !waiting.couriers.iter().any(|waker| waker.will_wake(cx.waker())) {
            waiting.couriers.push(cx.waker().clone());
        }
        Poll::Pending
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Question {
    /// Returns whether the request needs a password hash.
    fn has_password(&self) -> bool {
        matches!(
            self,
            Question::SignUp { .. }
                | Question::LogIn { .. }
                | Question::Password { .. }
                | Question::ChangePassword { .. }
        )
    }

    /// Returns the network of a request with a password; empty for all others.
    fn network(&self) -> Network {
        match self {
            Question::SignUp { from, .. }
            | Question::LogIn { from, .. }
            | Question::Password { from, .. }
            | Question::ChangePassword { from, .. } => from.place(),
            _ => Network::new(),
        }
    }
}
