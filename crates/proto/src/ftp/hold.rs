//! A start line for a laboratory: transfers wait until there are so many, and then begin together.
//!
//! "We did this by stopping all the server processes before they started transferring data. When all the
//! server processes were ready to transfer data, they were allowed to continue": the experiments on FTP that
//! this server reruns. What must hold: who goes away before the start does not count. One thing breaks that:
//! where connections are processes, the place of one that is killed stays counted until the next start,
//! because nobody is left to give it back. In a laboratory, start the server again then.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use plimsoll_io::{Cells, Io, select};

use super::limits::HOLD_LOOK_TIME;

/// Holds transfers until there are enough of them.
pub struct Hold {
    count: u64,
    /// One cell: how many times enough have come, and, in the lower half, how many wait for the next time.
    line: Cells,
    /// Who waits in this process, if it is the only one: the place is kept as long as the transfer lives.
    places: Mutex<Vec<Option<Waker>>>,
}

/// Where the number of starts begins in the cell.
const STARTS: u32 = 32;
/// The number of those who wait.
const HERE: u64 = (1 << STARTS) - 1;

/// A place at the start line.
struct Place<'a> {
    hold: &'a Hold,
    /// How many starts there had been.
    start: u64,
    number: usize,
}

impl Hold {
    /// How many cells it counts in.
    pub const CELLS: usize = 1;

    /// Holds transfers until there are `count`.
    pub fn new(count: usize) -> Hold {
        Hold::counted_in(Cells::own(Hold::CELLS), count)
    }

    /// The same, counted in `line`, of which there is one.
    pub fn counted_in(line: Cells, count: usize) -> Hold {
        Hold { count: (count as u64).min(HERE), line, places: Mutex::default() }
    }

    /// Waits until there are enough, or the server is to end.
    pub(super) async fn wait(&self, io: &Io) {
        let place = self.enter();
        match self.line {
            Cells::Own(_) => self.wait_to_be_woken(io, &place).await,
            // Another process may be the last to come, and none wakes another.
            Cells::Page(_) => {
                while !self.has_begun(&place) && !io.is_stopping() {
                    select(io.sleep(HOLD_LOOK_TIME), io.stopping()).await;
                }
            }
        }
    }

    async fn wait_to_be_woken(&self, io: &Io, place: &Place<'_>) {
        std::future::poll_fn(|cx| {
            let mut places = self.places();
            if self.has_begun(place) || io.poll_stopping(cx).is_ready() {
                return Poll::Ready(());
            }
            places[place.number] = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn enter(&self) -> Place<'_> {
        // Held over the count, so that a place is one of the start that it counts for.
        let mut places = self.places();
        let come = |line: u64| {
            let (start, here) = (line >> STARTS, (line & HERE) + 1);
            Some(if here >= self.count { (start + 1) << STARTS } else { start << STARTS | here })
        };
        let (Ok(line) | Err(line)) = self.cell().fetch_update(Ordering::SeqCst, Ordering::SeqCst, come);
        let place = Place { hold: self, start: line >> STARTS, number: places.len() };
        places.push(None);
        if self.has_begun(&place) {
            let woken = std::mem::take(&mut *places);
            drop(places);
            woken.into_iter().flatten().for_each(Waker::wake);
        }
        place
    }

    fn has_begun(&self, place: &Place<'_>) -> bool {
        self.cell().load(Ordering::SeqCst) >> STARTS != place.start
    }

    fn cell(&self) -> &AtomicU64 {
        &self.line[0]
    }

    fn places(&self) -> MutexGuard<'_, Vec<Option<Waker>>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut places = self.hold.places();
        let go = |line: u64| (line >> STARTS == self.start).then(|| line - 1);
        if self.hold.cell().fetch_update(Ordering::SeqCst, Ordering::SeqCst, go).is_ok() {
            places[self.number] = None;
        }
    }
}
