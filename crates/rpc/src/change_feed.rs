//! The change feed of a server: its latest changes in order, and the clients that subscribe to them.
//!
//! A request for the changes after number 8 acknowledges all changes up to 8. Invariants: a subscriber
//! gets every later change, or a notice to invalidate everything. A change counts as known once each
//! subscriber has acknowledged it or no longer trusts its cache. A silent subscriber is waited for no
//! longer than [`ACKNOWLEDGE_TIME`]. The memory is bounded.

use std::collections::{HashMap, VecDeque};
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use plimsoll_io::{Instant, Io};
use serde::{Deserialize, Serialize};

use crate::limits::{
    ACKNOWLEDGE_TIME, FEED_CHANGES_MAX, SUBSCRIBER_NAME_BYTES_MAX, SUBSCRIBERS_MAX, WATCH_TIME,
};
use plimsoll_wire::hex;

/// A subscriber's request for changes. It also acknowledges the changes received so far.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Watch {
    /// The random name that the subscriber gave itself when it started.
    pub front: String,
    /// The position that it has received. None at first.
    pub known: Option<FeedPosition>,
}

/// A position in a server's change feed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedPosition {
    /// The name that the server gave itself when it started.
    pub server: String,
    /// The number of the latest change.
    pub number: u64,
}

/// A response with changes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Changes<T> {
    /// The subscriber's position after this response.
    pub known: FeedPosition,
    /// The topics whose cached entries are out of date.
    pub changed: Vec<T>,
}

/// Why a request for changes is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedError {
    /// There are too many subscribers.
    TooMany,
    /// The subscriber's name is empty or too long.
    BadName,
}

/// The change feed of a server. Changes are numbered, beginning with 1.
pub struct ChangeFeed<T> {
    /// The change that invalidates everything.
    everything: T,
    log: Mutex<Log<T>>,
    subscribers: Mutex<Subscribers>,
    started: OnceLock<Started>,
}

struct Log<T> {
    /// The number of the latest change.
    last: u64,
    latest: VecDeque<T>,
    waiting: Vec<Waker>,
}

#[derive(Default)]
struct Subscribers {
    known: HashMap<String, Subscriber>,
    /// Tasks that wait for acknowledgements.
    waiting: Vec<Waker>,
}

struct Subscriber {
    /// The number of the latest change that it has acknowledged.
    number: u64,
    /// When it is no longer waited for.
    until: Instant,
}

/// The server's name, and the time of its first request.
struct Started {
    name: String,
    at: Instant,
}

impl<T: Clone> ChangeFeed<T> {
    /// Creates an empty feed. `everything` is the change that invalidates all that a subscriber has cached.
    #[must_use]
    pub fn new(everything: T) -> ChangeFeed<T> {
        let log = Log { last: 0, latest: VecDeque::new(), waiting: Vec::new() };
        ChangeFeed {
            everything,
            log: Mutex::new(log),
            subscribers: Mutex::default(),
            started: OnceLock::new(),
        }
    }

    /// Returns the number of the latest change.
    pub fn last(&self) -> u64 {
        lock(&self.log).last
    }

    /// Adds a change.
    pub fn publish(&self, change: T) {
        let mut log = lock(&self.log);
        log.last += 1;
        log.latest.push_back(change);
        if log.latest.len() > FEED_CHANGES_MAX {
            log.latest.pop_front();
        }
        let waiting = std::mem::take(&mut log.waiting);
        drop(log);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Notes that a subscriber is alive, and the changes that it acknowledges. Returns their number; `None`
    /// if it has received none of this server's changes.
    ///
    /// # Errors
    /// [`FeedError`].
    pub async fn acknowledge(&self, io: &Io, watch: Watch) -> Result<Option<u64>, FeedError> {
        let server = &self.started(io).name;
        let number = watch.known.filter(|known| known.server == *server).map(|known| known.number);
        // A subscriber trusts its cache from when it sent this request. The clock is read once a turn, and
        // this turn may have begun before that. The next one begins later.
        io.yield_now().await;
        self.note(watch.front, number, io.now())?;
        Ok(number)
    }

    fn note(&self, name: String, number: Option<u64>, now: Instant) -> Result<(), FeedError> {
        if name.is_empty() || name.len() > SUBSCRIBER_NAME_BYTES_MAX {
            return Err(FeedError::BadName);
        }
        let mut subscribers = lock(&self.subscribers);
        subscribers.known.retain(|_, subscriber| subscriber.until > now);
        if subscribers.known.len() >= SUBSCRIBERS_MAX && !subscribers.known.contains_key(&name) {
            return Err(FeedError::TooMany);
        }
        let subscriber = Subscriber { number: number.unwrap_or(0), until: now + ACKNOWLEDGE_TIME };
        subscribers.known.insert(name, subscriber);
        let waiting = std::mem::take(&mut subscribers.waiting);
        drop(subscribers);
        waiting.into_iter().for_each(Waker::wake);
        Ok(())
    }

    /// Returns the changes after `number`. Waits for one, for [`WATCH_TIME`] at most.
    pub async fn changes_after(&self, io: &Io, number: Option<u64>) -> Changes<T> {
        if let Some(number) = number {
            let deadline = io.deadline();
            deadline.after(WATCH_TIME);
            let _ = deadline.within(poll_fn(|cx| self.poll_after(cx, number))).await;
        }
        let (number, changed) = self.after(number);
        Changes { known: FeedPosition { server: self.started(io).name.clone(), number }, changed }
    }

    /// Returns the number of the latest change, and the changes after `number`. If those are no longer
    /// stored, or the number is unknown, it is one change of everything.
    fn after(&self, number: Option<u64>) -> (u64, Vec<T>) {
        let log = lock(&self.log);
        let missed = number.and_then(|number| log.last.checked_sub(number));
        let missed = missed.and_then(|missed| usize::try_from(missed).ok());
        let changes = match missed.and_then(|missed| log.latest.len().checked_sub(missed)) {
            Some(known) => log.latest.iter().skip(known).cloned().collect(),
            None => vec![self.everything.clone()],
        };
        (log.last, changes)
    }

    fn poll_after(&self, cx: &Context<'_>, number: u64) -> Poll<()> {
        let mut log = lock(&self.log);
        if log.last > number {
            return Poll::Ready(());
        }
        add_waker(&mut log.waiting, cx);
        Poll::Pending
    }

    /// Waits until every subscriber has acknowledged the change of this number, or trusts its cache no
    /// longer.
    pub async fn acknowledged_by_all(&self, io: &Io, number: u64) {
        // Subscribers of this server's predecessor are not known, so all of them get the full time.
        let unknown = ACKNOWLEDGE_TIME.saturating_sub(io.now() - self.started(io).at);
        if !unknown.is_zero() {
            return io.sleep(ACKNOWLEDGE_TIME).await;
        }
        let deadline = io.deadline();
        // A response after the change contains it, and earlier ones are trusted for less than this time.
        deadline.after(ACKNOWLEDGE_TIME);
        let _ = deadline.within(poll_fn(|cx| self.poll_acknowledged(cx, number, io.now()))).await;
    }

    fn poll_acknowledged(&self, cx: &Context<'_>, number: u64, now: Instant) -> Poll<()> {
        let mut subscribers = lock(&self.subscribers);
        if subscribers.known.values().all(|known| known.number >= number || known.until <= now) {
            return Poll::Ready(());
        }
        add_waker(&mut subscribers.waiting, cx);
        Poll::Pending
    }

    fn started(&self, io: &Io) -> &Started {
        self.started.get_or_init(|| {
            let mut name = [0; 16];
            io.entropy(&mut name);
            Started { name: hex::encode(&name), at: io.now() }
        })
    }
}

fn add_waker(waiting: &mut Vec<Waker>, cx: &Context<'_>) {
    if !waiting.iter().any(|waker| waker.will_wake(cx.waker())) {
        waiting.push(cx.waker().clone());
    }
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERYTHING: u64 = 0;

    #[test]
    fn changes_after_a_number_are_returned_in_order() {
        let feed = ChangeFeed::new(EVERYTHING);
        (1..=3).for_each(|change| feed.publish(change));
        assert_eq!(feed.after(Some(1)), (3, vec![2, 3]));
        assert_eq!(feed.after(Some(3)), (3, vec![]));
    }

    #[test]
    fn a_subscriber_without_a_valid_number_has_missed_everything() {
        let feed = ChangeFeed::new(EVERYTHING);
        feed.publish(1);
        assert_eq!(feed.after(None), (1, vec![EVERYTHING]));
        assert_eq!(feed.after(Some(2)), (1, vec![EVERYTHING]));
    }

    #[test]
    fn a_subscriber_that_has_missed_more_than_is_stored_has_missed_everything() {
        let feed = ChangeFeed::new(EVERYTHING);
        (0..=FEED_CHANGES_MAX as u64).for_each(|change| feed.publish(change));
        assert_eq!(feed.after(Some(0)).1, vec![EVERYTHING]);
        assert_eq!(feed.after(Some(1)).1.len(), FEED_CHANGES_MAX);
    }
}
