//! A start line for a laboratory: transfers wait until there are so many, and then begin together.
//!
//! "We did this by stopping all the server processes before they started transferring data. When all the
//! server processes were ready to transfer data, they were allowed to continue": the experiments on FTP that
//! this server reruns. What must hold: who goes away before the start does not count.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use plimsoll_io::Io;

/// Holds transfers until there are enough of them.
pub struct Hold {
    count: usize,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// How many times enough have come.
    starts: u64,
    /// Who waits for the next time; the place in it is kept as long as the transfer lives.
    places: Vec<Option<Waker>>,
    here: usize,
}

/// A place at the start line.
struct Place<'a> {
    hold: &'a Hold,
    start: u64,
    number: usize,
}

impl Hold {
    /// Holds transfers until there are `count`.
    pub fn new(count: usize) -> Hold {
        Hold { count, waiting: Mutex::default() }
    }

    /// Waits until there are enough, or the server is to end.
    pub(super) async fn wait(&self, io: &Io) {
        let place = self.enter();
        std::future::poll_fn(|cx| {
            let mut waiting = self.lock();
            if waiting.starts != place.start || io.poll_stopping(cx).is_ready() {
                return Poll::Ready(());
            }
            waiting.places[place.number] = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn enter(&self) -> Place<'_> {
        let mut waiting = self.lock();
        let (start, number) = (waiting.starts, waiting.places.len());
        waiting.places.push(None);
        waiting.here += 1;
        if waiting.here >= self.count {
            waiting.starts += 1;
            waiting.here = 0;
            let places = std::mem::take(&mut waiting.places);
            drop(waiting);
            places.into_iter().flatten().for_each(Waker::wake);
        }
        Place { hold: self, start, number }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut waiting = self.hold.lock();
        if waiting.starts == self.start {
            waiting.here -= 1;
            waiting.places[self.number] = None;
        }
    }
}
