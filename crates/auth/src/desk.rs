//! Where fronts elsewhere are answered: their questions, and what has changed since they last asked.
//!
//! It is not a protocol: messages are data here. What must hold: a change is confirmed to whoever made it
//! when each front has said that it knows of it, or does not trust any more what it remembers; a front that
//! nobody hears of is waited for no longer than [`FRONT_WAIT_TIME`].

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use plimsoll_io::{Instant, Io};
use serde::{Deserialize, Serialize};

use crate::ask::{Answer, Order, Question};
use crate::auth::Auth;
use crate::changes::Topic;
use crate::error::Error;
use crate::hex;
use crate::limits::{BUSY_RETRY_TIME, FRONT_NAME_BYTES_MAX, FRONT_WAIT_TIME, FRONTS_MAX, WATCH_TIME};

/// What a front asks to hear of changes; in the same breath it says what it has heard of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Watch {
    /// The name that the front gave itself when it started: nobody else's.
    pub front: String,
    /// What it knows. Nothing at first.
    pub known: Option<Known>,
}

/// What a front knows of an auth server's changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// The name that the auth server gave itself when it started.
    pub server: String,
    /// The number of the latest change that it has heard of.
    pub number: u64,
}

/// What has changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct News {
    /// What the front knows with this.
    pub known: Known,
    /// What is not to be believed any more.
    pub changed: Vec<Topic>,
}

/// Where fronts elsewhere are answered. One for an auth server.
pub struct Desk {
    auth: Auth,
    name: String,
    started: Instant,
    fronts: Mutex<Fronts>,
}

#[derive(Default)]
struct Fronts {
    known: HashMap<String, Front>,
    /// Who waits for fronts to hear of a change.
    waiting: Vec<Waker>,
}

struct Front {
    number: u64,
    /// When it is not waited for any more.
    until: Instant,
}

impl Desk {
    /// A desk that answers from `auth`, on whose directory no other desk of this process answers.
    #[must_use]
    pub fn new(io: &Io, auth: Auth) -> Arc<Desk> {
        let mut drawn = [0; 16];
        io.entropy(&mut drawn);
        let (name, started) = (hex::text(&drawn), io.now());
        Arc::new(Desk { auth, name, started, fronts: Mutex::default() })
    }

    /// Answers a front's question. What ends something is answered when no front believes it any more.
    ///
    /// # Errors
    /// As the question's; [`Error::NotAllowed`] for what only an operator may ask.
    pub async fn answer(&self, io: &Io, question: Question) -> Result<Answer, Error> {
        if matches!(question, Question::Operator(_)) {
            return Err(Error::NotAllowed);
        }
        let ends = question.ends_something();
        let answer = self.auth.answer_at_once(io, question).await;
        // Also who hears that it has ended already: perhaps by somebody who still waits for the fronts.
        if ends && matches!(answer, Ok(_) | Err(Error::NoSession | Error::NotFound)) {
            self.heard_by_all(io, self.auth.journal().last()).await;
        }
        answer
    }

    /// What has changed since the front last heard. It waits for a change, for [`WATCH_TIME`] at most.
    ///
    /// # Errors
    /// [`Error::Busy`] if there are too many fronts, [`Error::NotAllowed`] if the name is none,
    /// [`Error::Unavailable`] if the directory cannot be looked at.
    pub async fn watch(&self, io: &Io, watch: Watch) -> Result<News, Error> {
        let number = watch.known.filter(|known| known.server == self.name).map(|known| known.number);
        // The clock of a turn that begins now is later than when the front asked, from when it trusts: this
        // turn's may be from before that, by however long its thread was held up.
        io.yield_now().await;
        self.note(watch.front, number, io.now())?;
        // Who changes the directory beside this server is heard of by looking.
        self.auth.look_around(io).await?;
        if let Some(number) = number {
            let deadline = io.deadline();
            deadline.after(WATCH_TIME);
            let _ = deadline.within(poll_fn(|cx| self.auth.journal().poll_since(cx, number))).await;
        }
        let (number, changed) = self.auth.journal().since(number);
        Ok(News { known: Known { server: self.name.clone(), number }, changed })
    }

    /// Notes what a front knows, and that it is there.
    fn note(&self, front: String, number: Option<u64>, now: Instant) -> Result<(), Error> {
        if front.is_empty() || front.len() > FRONT_NAME_BYTES_MAX {
            return Err(Error::NotAllowed);
        }
        let mut fronts = self.fronts();
        fronts.known.retain(|_, front| front.until > now);
        if fronts.known.len() >= FRONTS_MAX && !fronts.known.contains_key(&front) {
            return Err(Error::Busy { retry_after: BUSY_RETRY_TIME });
        }
        fronts.known.insert(front, Front { number: number.unwrap_or(0), until: now + FRONT_WAIT_TIME });
        let waiting = std::mem::take(&mut fronts.waiting);
        drop(fronts);
        waiting.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Waits until no front believes what was before the change of this number.
    async fn heard_by_all(&self, io: &Io, number: u64) {
        // Fronts of a server that was here before are not known: they are given their time.
        let unknown = FRONT_WAIT_TIME.saturating_sub(io.now() - self.started);
        if !unknown.is_zero() {
            return io.sleep(FRONT_WAIT_TIME).await;
        }
        let deadline = io.deadline();
        // Who is answered after the change is told of it: no front trusts for longer than from before it.
        deadline.after(FRONT_WAIT_TIME);
        let _ = deadline.within(poll_fn(|cx| self.poll_heard(cx, number, io.now()))).await;
    }

    fn poll_heard(&self, cx: &Context<'_>, number: u64, now: Instant) -> Poll<()> {
        let mut fronts = self.fronts();
        if fronts.known.values().all(|front| front.number >= number || front.until <= now) {
            return Poll::Ready(());
        }
        if !fronts.waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
            fronts.waiting.push(cx.waker().clone());
        }
        Poll::Pending
    }

    fn fronts(&self) -> MutexGuard<'_, Fronts> {
        self.fronts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Question {
    /// Whether it ends what a front may remember: then it is confirmed when no front does.
    fn ends_something(&self) -> bool {
        match self {
            Question::LogOut(_) | Question::ChangePassword { .. } | Question::Unshare { .. } => true,
            Question::Operator(order) => {
                matches!(order, Order::SetPassword { .. } | Order::Change(..) | Order::Remove(_))
            }
            _ => false,
        }
    }
}
