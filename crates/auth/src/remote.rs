//! An auth server elsewhere, as a front sees it: questions that wait to be carried there, and how long what
//! is remembered can be trusted.
//!
//! It carries nothing ([`crate::courier`] does). What must hold: a question is answered, refused at once, or
//! given up in a bounded time; nothing that is remembered is believed once a change may have gone unheard;
//! who shows a token never waits behind who shows a password.

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

/// An auth server elsewhere.
pub(crate) struct Remote {
    pub(crate) place: Place,
    settings: InForce,
    changes: Changes,
    /// Whether it tells no changes, so that it is asked each time.
    is_beside: bool,
    /// Until when what is remembered is trusted, in nanoseconds of the engine's clock.
    trusted: AtomicU64,
    known: Mutex<Option<Known>>,
    quick: Line,
    slow: Line,
}

/// Where an auth server is, and what it wants to hear.
#[derive(Clone)]
pub struct Place {
    /// Its URL, as the HTTP client takes it.
    pub url: plimsoll_client::http::Url,
    /// What it and its fronts alone know.
    pub secret: Secret,
}

/// Questions that wait for a connection. Networks take turns: guesses of some delay log-ins of others by one
/// turn each. Questions without a password come from no network and keep their order.
pub(crate) struct Line(Mutex<Waiting>);

struct Waiting {
    questions: FairQueue<Network, Asked>,
    couriers: Vec<Waker>,
}

/// A question, and who waits for its answer.
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

    /// Whether it tells no changes, so that nothing is believed which it was not asked.
    pub(crate) fn is_beside(&self) -> bool {
        self.is_beside
    }

    /// Whether what is remembered, and was not said to have changed, can be believed.
    pub(crate) fn is_trusted(&self, now: Instant) -> bool {
        now.since_start() < Duration::from_nanos(self.trusted.load(Ordering::SeqCst))
    }

    /// Asks, and waits for the answer.
    pub(crate) async fn answer(&self, io: &Io, question: Question) -> Result<Answer, Error> {
        let (line, time) = match question.has_password() {
            true => (&self.slow, SLOW_ANSWER_TIME),
            false => (&self.quick, QUICK_ANSWER_TIME),
        };
        let (answer, wait) = oneshot();
        line.add(Asked { question, answer });
        let deadline = io.deadline();
        deadline.after(time);
        // Whoever carries it finds that nobody waits any more.
        let answered = deadline.within(wait).await.ok().flatten();
        answered.unwrap_or(Err(Error::Unavailable))
    }

    pub(crate) fn quick(&self) -> &Line {
        &self.quick
    }

    pub(crate) fn slow(&self) -> &Line {
        &self.slow
    }

    /// What was heard of so far.
    pub(crate) fn known(&self) -> Option<Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Takes in what has changed, as an answer to what was asked at `asked` has it.
    pub(crate) fn hear(&self, news: News, asked: Instant) {
        // First of all: what is believed from here on is believed by what has changed.
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
        // All of them: one may have found something else to do meanwhile.
        let couriers = std::mem::take(&mut waiting.couriers);
        drop(waiting);
        couriers.into_iter().for_each(Waker::wake);
        if let Some(displaced) = displaced {
            displaced.answer.send(Err(Error::Busy { retry_after: BUSY_RETRY_TIME }));
        }
    }

    /// The next question that somebody waits for.
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
    /// Whether to answer it takes a password's hash.
    fn has_password(&self) -> bool {
        matches!(
            self,
            Question::SignUp { .. }
                | Question::LogIn { .. }
                | Question::Password { .. }
                | Question::ChangePassword { .. }
        )
    }

    /// The network that a question with a password comes from; empty for all others.
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
