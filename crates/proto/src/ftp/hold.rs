//! A start barrier for a laboratory: transfers wait until a given number has arrived, and then start
//! together.
//!
//! "We did this by stopping all the server processes before they started transferring data. When all the
//! server processes were ready to transfer data, they were allowed to continue": the experiments on FTP that
//! this server reproduces. Invariant: a transfer that ends before the start does not count. One case breaks
//! it: under the process engine, a killed process stays counted until the next start, because it cannot
//! decrement the count. A laboratory then restarts the server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use plimsoll_io::{Cells, Io, select};

use super::limits::HOLD_LOOK_TIME;

/// A barrier that holds transfers until enough have arrived.
pub struct Hold {
    count: u64,
    /// One cell: the upper half is the number of starts, the lower half the number of transfers that wait for
    /// the next one.
    line: Cells,
    /// The wakers of waiting transfers, used if this process is the only one. An entry lives as long as its
    /// transfer.
    places: Mutex<Vec<Option<Waker>>>,
}

/// The bit at which the number of starts begins.
const STARTS: u32 = 32;
/// The mask of the number of waiting transfers.
const HERE: u64 = (1 << STARTS) - 1;

/// A transfer's position at the barrier.
struct Place<'a> {
    hold: &'a Hold,
    /// The number of starts before it arrived.
    start: u64,
    number: usize,
}

impl Hold {
    /// The number of cells.
    pub const CELLS: usize = 1;

    /// Creates a barrier for `count` transfers.
    pub fn new(count: usize) -> Hold {
        Hold::counted_in(Cells::own(Hold::CELLS), count)
    }

    /// As [`Hold::new`], counted in `line`, one cell.
    pub fn counted_in(line: Cells, count: usize) -> Hold {
        Hold { count: (count as u64).min(HERE), line, places: Mutex::default() }
    }

    /// Waits until enough transfers have arrived, or the server is shutting down.
    pub(super) async fn wait(&self, io: &Io) {
        let place = self.enter();
        match self.line {
            Cells::Own(_) => self.wait_to_be_woken(io, &place).await,
            // The last transfer may arrive in another process, which cannot wake this one.
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
        // Locked while counting, so that the entry belongs to the start that it counts for.
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
