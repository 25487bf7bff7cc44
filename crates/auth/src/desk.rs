//! The RPC server for remote fronts: answers their requests, and reports the changes since they last
//! asked.
//!
//! It is not a protocol: messages are data here. Invariants: a change is confirmed to its caller once
//! each front has acknowledged it or no longer trusts its cache. A silent front is waited for no longer
//! than [`FRONT_WAIT_TIME`].

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use plimsoll_io::{Instant, Io};
use plimsoll_wire::hex;
use serde::{Deserialize, Serialize};

use crate::ask::{Answer, Order, Question};
use crate::auth::Auth;
use crate::changes::Topic;
use crate::error::Error;
use crate::limits::{BUSY_RETRY_TIME, FRONT_NAME_BYTES_MAX, FRONT_WAIT_TIME, FRONTS_MAX, WATCH_TIME};

/// A front's request for changes. It also acknowledges the changes received so far.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Watch {
    /// The random name that the front gave itself when it started.
    pub front: String,
    /// The position that it has received. None at first.
    pub known: Option<Known>,
}

/// A front's position in an auth server's change feed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Known {
    /// The name that the auth server gave itself when it started.
    pub server: String,
    /// The number of the latest change that it has received.
    pub number: u64,
}

/// A response with changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct News {
    /// The front's position after this response.
    pub known: Known,
    /// The topics whose cached entries are out of date.
    pub changed: Vec<Topic>,
}

/// The RPC server for remote fronts. An auth server has one.
pub struct Desk {
    auth: Auth,
    name: String,
    started: Instant,
    fronts: Mutex<Fronts>,
}

#[derive(Default)]
struct Fronts {
    known: HashMap<String, Front>,
    /// Tasks that wait until fronts have acknowledged a change.
    waiting: Vec<Waker>,
}

struct Front {
    number: u64,
    /// When it is no longer waited for.
    until: Instant,
}

impl Desk {
    /// Creates an RPC server that answers from `auth`. No other one in this process may serve the same
    /// directory.
    #[must_use]
    pub fn new(io: &Io, auth: Auth) -> Arc<Desk> {
        let mut drawn = [0; 16];
        io.entropy(&mut drawn);
        let (name, started) = (hex::encode(&drawn), io.now());
        Arc::new(Desk { auth, name, started, fronts: Mutex::default() })
    }

    /// Answers a front's request. A request that ends a right is answered once no front trusts the old
    /// state.
    ///
    /// # Errors
    /// Those of the request; [`Error::NotAllowed`] for operator requests.
    pub async fn answer(&self, io: &Io, question: Question) -> Result<Answer, Error> {
        if matches!(question, Question::Operator(_)) {
            return Err(Error::NotAllowed);
        }
        let ends = question.ends_something();
        let answer = self.auth.answer_at_once(io, question).await;
        // Also if it has ended already: the request that ended it may still be waiting for the fronts.
        if ends && matches!(answer, Ok(_) | Err(Error::NoSession | Error::NotFound)) {
            self.heard_by_all(io, self.auth.journal().last()).await;
        }
        answer
    }

    /// Returns the changes since the front's position. Waits for one, for [`WATCH_TIME`] at most.
    ///
    /// # Errors
    /// [`Error::Busy`] if there are too many fronts, [`Error::NotAllowed`] if the name is empty or too
    /// long, [`Error::Unavailable`] if the directory cannot be read.
    pub async fn watch(&self, io: &Io, watch: Watch) -> Result<News, Error> {
        let number = watch.known.filter(|known| known.server == self.name).map(|known| known.number);
        // A front trusts its cache from when it sent this request. The clock is read once a turn, and
        // this turn may have begun before that. The next one begins later.
        io.yield_now().await;
        self.note(watch.front, number, io.now())?;
        // Changes that other processes made to the directory are found by polling.
        self.auth.look_around(io).await?;
        if let Some(number) = number {
            let deadline = io.deadline();
            deadline.after(WATCH_TIME);
            let _ = deadline.within(poll_fn(|cx| self.auth.journal().poll_since(cx, number))).await;
        }
        let (number, changed) = self.auth.journal().since(number);
        Ok(News { known: Known { server: self.name.clone(), number }, changed })
    }

    /// Notes a front's position, and that it is alive.
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

    /// Waits until no front trusts the state before the change of this number.
    async fn heard_by_all(&self, io: &Io, number: u64) {
        // Fronts of this server's predecessor are not known, so all of them get the full time.
        let unknown = FRONT_WAIT_TIME.saturating_sub(io.now() - self.started);
        if !unknown.is_zero() {
            return io.sleep(FRONT_WAIT_TIME).await;
        }
        let deadline = io.deadline();
        // A response after the change contains it, and earlier ones are trusted for less than this time.
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
    /// Returns whether it ends a right that a front may have cached. Then it is confirmed once no front
    /// trusts that entry.
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
