//! A connection's entry: its reported state, and the waker that ends it.
//!
//! It does not choose what to evict. Invariants: one thread or process at a time reports. An evicted
//! connection is polled once more at most.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use plimsoll_io::{Cells, Instant, LocalFuture, Peer, Phase, Slot};

use super::{Connections, Count};

/// A [`Phase`], [`PARKED`], or [`QUEUED`] until a task serves the connection.
const PHASE_BITS: u64 = 0b111;
const QUEUED: u64 = 0;
/// A phase of its own: the connection waits for its client, and for no worker.
const PARKED: u64 = 5;
/// Whether a request has completed.
const COMPLETED: u64 = 1 << 3;
const AUTHENTICATED: u64 = 1 << 4;
/// Whether a connection to another server waits for the client.
const KEEPS_UPSTREAM: u64 = 1 << 5;
const FLAGS: u64 = COMPLETED | AUTHENTICATED | KEEPS_UPSTREAM;
/// The rest is a time, in milliseconds since the start.
const SINCE_SHIFT: u32 = 8;

/// The reported state of a connection: phase, flags and time in one word.
pub(super) enum State {
    /// In memory of this process.
    Own(AtomicU64),
    /// On a page shared with the process that serves the connection.
    Shared(&'static AtomicU64),
}

/// The reported state, unpacked.
#[derive(Clone, Copy)]
pub(super) struct Report {
    /// `None` until a task serves the connection.
    pub(super) phase: Option<Phase>,
    /// Whether no task serves the connection, because the client has to send something first.
    pub(super) is_parked: bool,
    /// Whether a request has completed.
    pub(super) has_completed: bool,
    pub(super) is_authenticated: bool,
    /// Whether a connection to another server waits for the client.
    pub(super) keeps_upstream: bool,
    /// Milliseconds since the start, when the client last made progress.
    pub(super) since: u64,
}

/// An open connection.
pub(crate) struct Entry {
    pub(super) connections: Arc<Connections>,
    state: State,
    /// The number of its slot.
    pub(super) index: usize,
    pub(super) service: usize,
    /// Milliseconds since the start.
    pub(super) opened: u64,
    is_evicted: AtomicBool,
    /// Ends the connection: wakes its task, or kills its process.
    evictor: Mutex<Option<Waker>>,
}

fn millis(at: Instant) -> u64 {
    u64::try_from(at.since_start().as_millis()).unwrap_or(u64::MAX)
}

fn code(phase: Phase) -> u64 {
    match phase {
        Phase::Waiting => 1,
        Phase::Working => 2,
        Phase::Idle => 3,
        Phase::Ending => 4,
    }
}

fn phase_of(word: u64) -> Option<Phase> {
    if word & PHASE_BITS == PARKED {
        return Some(if word & COMPLETED == 0 { Phase::Waiting } else { Phase::Idle });
    }
    [Phase::Waiting, Phase::Working, Phase::Idle, Phase::Ending]
        .into_iter()
        .find(|phase| code(*phase) == word & PHASE_BITS)
}

impl State {
    /// The state of a connection that was opened just now, in cell `cell` if processes share `cells`.
    pub(super) fn of(cells: &Cells, cell: usize, opened: Instant) -> State {
        let word = millis(opened) << SINCE_SHIFT | QUEUED;
        match cells {
            Cells::Page(cells) if cell < cells.len() => {
                cells[cell].store(word, Ordering::Relaxed);
                State::Shared(&cells[cell])
            }
            _ => State::Own(AtomicU64::new(word)),
        }
    }

    fn cell(&self) -> &AtomicU64 {
        match self {
            State::Own(cell) => cell,
            State::Shared(cell) => cell,
        }
    }
}

impl Entry {
    pub(super) fn new(
        connections: Arc<Connections>,
        state: State,
        (index, service): (usize, usize),
        opened: Instant,
    ) -> Entry {
        let (is_evicted, evictor) = (AtomicBool::new(false), Mutex::new(None));
        Entry { connections, state, index, service, opened: millis(opened), is_evicted, evictor }
    }

    /// Returns the handle by which the connection's conversation reports.
    pub(crate) fn slot(self: &Arc<Self>) -> Rc<dyn Slot> {
        Rc::new(Reporter(Arc::clone(self)))
    }

    /// Returns the latest reported state.
    pub(super) fn report(&self) -> Report {
        let word = self.state.cell().load(Ordering::Relaxed);
        Report {
            phase: phase_of(word),
            is_parked: word & PHASE_BITS == PARKED,
            has_completed: word & COMPLETED != 0,
            is_authenticated: word & AUTHENTICATED != 0,
            keeps_upstream: word & KEEPS_UPSTREAM != 0,
            since: word >> SINCE_SHIFT,
        }
    }

    fn enter(&self, phase: Phase, now: Instant) {
        let cell = self.state.cell();
        // Only the connection's own thread stores here: a load and a store will do.
        let word = cell.load(Ordering::Relaxed);
        let since = match phase {
            // Waiting is no progress: a client that sends an occasional byte keeps its earlier time.
            Phase::Waiting => word >> SINCE_SHIFT,
            Phase::Working | Phase::Idle | Phase::Ending => millis(now),
        };
        let completed = if phase == Phase::Idle { COMPLETED } else { 0 };
        let flags = word & FLAGS | completed;
        cell.store(since << SINCE_SHIFT | flags | code(phase), Ordering::Relaxed);
    }

    /// Reports that the connection waits for its client, and that no task serves it.
    pub(crate) fn park(&self) {
        self.mark(PARKED);
    }

    /// Reports that the connection waits for a worker. It is not evicted meanwhile.
    pub(crate) fn queue(&self) {
        self.mark(QUEUED);
    }

    fn mark(&self, phase: u64) {
        let cell = self.state.cell();
        // As in `enter`: only the thread that owns the connection stores here.
        cell.store(cell.load(Ordering::Relaxed) & !PHASE_BITS | phase, Ordering::Relaxed);
    }

    pub(super) fn is_authenticated(&self) -> bool {
        self.report().is_authenticated
    }

    /// Registers the waker that ends the connection when others need its slot.
    pub(crate) fn evict_by(&self, evictor: Waker) {
        *self.evictor.lock().unwrap_or_else(PoisonError::into_inner) = Some(evictor);
    }

    /// Marks the connection to be ended.
    pub(super) fn evict(&self) {
        self.is_evicted.store(true, Ordering::Release);
    }

    /// Ends the connection, which was marked before.
    pub(super) fn end(&self) {
        let evictor = self.evictor.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(evictor) = evictor {
            evictor.wake();
        }
    }

    pub(crate) fn is_evicted(&self) -> bool {
        self.is_evicted.load(Ordering::Acquire)
    }
}

/// A conversation's handle of an entry.
struct Reporter(Arc<Entry>);

impl Slot for Reporter {
    fn enter(&self, phase: Phase, now: Instant) {
        self.0.enter(phase, now);
    }

    fn authenticate(&self) {
        let before = self.0.state.cell().fetch_or(AUTHENTICATED, Ordering::Relaxed);
        if before & AUTHENTICATED == 0 {
            self.0.connections.add(Count::Authenticated, 1);
        }
    }

    fn is_authenticated(&self) -> bool {
        self.0.is_authenticated()
    }

    fn count_for(&self, client: Option<&Peer>) -> bool {
        let before = self.0.state.cell().fetch_and(!AUTHENTICATED, Ordering::Relaxed);
        if before & AUTHENTICATED != 0 {
            self.0.connections.cell(Count::Authenticated).fetch_sub(1, Ordering::Relaxed);
        }
        self.0.connections.recount(self.0.index, client)
    }

    fn keep_upstream(&self, waits: bool) {
        let cell = self.0.state.cell();
        // As in `enter`: only the connection's own thread stores here.
        let word = cell.load(Ordering::Relaxed) & !KEEPS_UPSTREAM;
        cell.store(word | if waits { KEEPS_UPSTREAM } else { 0 }, Ordering::Relaxed);
    }

    fn relieve_upstream(&self) {
        self.0.connections.relieve_upstream();
    }

    fn is_evicted(&self) -> bool {
        self.0.is_evicted()
    }
}

/// Serves `connection` until it ends or is evicted.
pub(crate) fn serve_until_evicted(entry: &Arc<Entry>, connection: LocalFuture) -> UntilEvicted {
    UntilEvicted { entry: Arc::clone(entry), connection, has_begun: false }
}

/// See [`serve_until_evicted`].
pub(crate) struct UntilEvicted {
    entry: Arc<Entry>,
    connection: LocalFuture,
    has_begun: bool,
}

impl Future for UntilEvicted {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if !self.has_begun {
            self.has_begun = true;
            // Before the phase changes: from then on it may be evicted. A task has one waker for its life.
            self.entry.evict_by(cx.waker().clone());
            self.entry.enter(Phase::Waiting, Instant::default());
        }
        let is_evicted = self.entry.is_evicted();
        match self.connection.as_mut().poll(cx) {
            Poll::Pending if !is_evicted => Poll::Pending,
            // The conversation had this poll for a last message. The task drops the rest.
            _ => Poll::Ready(()),
        }
    }
}
