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

use super::limits::START_POLL_TIME;

/// A barrier that holds transfers until enough have arrived.
pub struct StartBarrier {
    count: u64,
    /// One cell: the upper half is the number of starts, the lower half the number of transfers that wait for
    /// the next one.
    cells: Cells,
    /// The wakers of waiting transfers, used if this process is the only one. An entry lives as long as its
    /// transfer.
    arrivals: Mutex<Vec<Option<Waker>>>,
}

/// The bit at which the number of starts begins.
const STARTS_SHIFT: u32 = 32;
/// The mask of the number of waiting transfers.
const WAITING_MASK: u64 = (1 << STARTS_SHIFT) - 1;

/// A transfer's position at the barrier.
struct Arrival<'a> {
    barrier: &'a StartBarrier,
    /// The number of starts before it arrived.
    start: u64,
    index: usize,
}

impl StartBarrier {
    /// The number of cells.
    pub const CELLS: usize = 1;

    /// Creates a barrier for `count` transfers.
    pub fn new(count: usize) -> StartBarrier {
        StartBarrier::in_cells(Cells::own(StartBarrier::CELLS), count)
    }

    /// As [`StartBarrier::new`], counted in `cells`, one cell.
    pub fn in_cells(cells: Cells, count: usize) -> StartBarrier {
        StartBarrier { count: (count as u64).min(WAITING_MASK), cells, arrivals: Mutex::default() }
    }

    /// Waits until enough transfers have arrived, or the server is shutting down.
    pub(super) async fn wait(&self, io: &Io) {
        let arrival = self.enter();
        match self.cells {
            Cells::Own(_) => self.wait_for_wakeup(io, &arrival).await,
            // The last transfer may arrive in another process, which cannot wake this one.
            Cells::Page(_) => {
                while !self.has_started(&arrival) && !io.is_stopping() {
                    select(io.sleep(START_POLL_TIME), io.stopping()).await;
                }
            }
        }
    }

    async fn wait_for_wakeup(&self, io: &Io, arrival: &Arrival<'_>) {
        std::future::poll_fn(|cx| {
            let mut arrivals = self.arrivals();
            if self.has_started(arrival) || io.poll_stopping(cx).is_ready() {
                return Poll::Ready(());
            }
            arrivals[arrival.index] = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn enter(&self) -> Arrival<'_> {
        // Locked while counting, so that the entry belongs to the start that it counts for.
        let mut arrivals = self.arrivals();
        let arrive = |cells: u64| {
            let (start, waiting) = (cells >> STARTS_SHIFT, (cells & WAITING_MASK) + 1);
            Some(if waiting >= self.count {
                (start + 1) << STARTS_SHIFT
            } else {
                start << STARTS_SHIFT | waiting
            })
        };
        let (Ok(cells) | Err(cells)) = self.state().fetch_update(Ordering::SeqCst, Ordering::SeqCst, arrive);
        let arrival = Arrival { barrier: self, start: cells >> STARTS_SHIFT, index: arrivals.len() };
        arrivals.push(None);
        if self.has_started(&arrival) {
            let woken = std::mem::take(&mut *arrivals);
            drop(arrivals);
            woken.into_iter().flatten().for_each(Waker::wake);
        }
        arrival
    }

    fn has_started(&self, arrival: &Arrival<'_>) -> bool {
        self.state().load(Ordering::SeqCst) >> STARTS_SHIFT != arrival.start
    }

    fn state(&self) -> &AtomicU64 {
        &self.cells[0]
    }

    fn arrivals(&self) -> MutexGuard<'_, Vec<Option<Waker>>> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Arrival<'_> {
    fn drop(&mut self) {
        let mut arrivals = self.barrier.arrivals();
        let leave = |cells: u64| (cells >> STARTS_SHIFT == self.start).then(|| cells - 1);
        if self.barrier.state().fetch_update(Ordering::SeqCst, Ordering::SeqCst, leave).is_ok() {
            arrivals[self.index] = None;
        }
    }
}
