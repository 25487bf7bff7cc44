//! The queue of the engine `pool`: connections that wait for a worker, and workers that wait for a
//! connection.
//!
//! A connection enters it when it is accepted, and each time its client has sent something while it was
//! parked. The queue knows no sockets and serves nothing. Invariants: connections leave in the order of
//! their arrival. Each waker (of a worker without a connection, of the accepting thread, of an idle
//! conversation that would be parked) is woken when its condition changes.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Connections that wait for one of a number of workers.
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    places: usize,
}

struct State<T> {
    waiting: VecDeque<(Instant, T)>,
    workers: Vec<Worker>,
    /// Tasks that wait for a change: for room, for a waiting connection, or for an empty queue.
    watching: Vec<Waker>,
    closed: bool,
}

/// The queue's state of a worker.
#[derive(Default)]
struct Worker {
    /// Whether it has no connection. It may be about to request one, or to take the one it was woken for.
    is_free: bool,
    free: Option<Waker>,
    /// Whether it was woken, and has not requested a connection yet.
    is_woken: bool,
    /// The waker of its idle conversation, which would be parked.
    idle: Option<Waker>,
    /// Whether its conversation was signalled to park, and still has the worker.
    is_signalled: bool,
}

impl<T> Queue<T> {
    /// Creates an empty queue with room for `places` connections.
    pub(super) fn new(workers: usize, places: usize) -> Queue<T> {
        // Free even before a worker requests its first connection: it is about to.
        let free = || Worker { is_free: true, ..Worker::default() };
        let workers = std::iter::repeat_with(free).take(workers).collect();
        let state = State { waiting: VecDeque::new(), workers, watching: Vec::new(), closed: false };
        Queue { state: Mutex::new(state), places }
    }

    /// Appends a connection. Does not check the bound: the callers do.
    pub(super) fn push(&self, connection: T) {
        let mut state = self.state();
        state.waiting.push_back((Instant::now(), connection));
        let mut woken = std::mem::take(&mut state.watching);
        woken.extend(state.next_worker());
        if state.is_room_wanted() {
            // All of them: the queue does not know which of them have work again by now.
            woken.extend(state.workers.iter_mut().filter_map(|worker| worker.idle.take()));
        }
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    /// Returns the next connection, for a worker that has none; `None` when the queue is closed and empty.
    pub(super) fn poll_take(&self, worker: usize, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut state = self.state();
        state.workers[worker] = Worker::default();
        if let Some((_, connection)) = state.waiting.pop_front() {
            let mut woken = std::mem::take(&mut state.watching);
            woken.extend(state.next_worker());
            drop(state);
            woken.into_iter().for_each(Waker::wake);
            return Poll::Ready(Some(connection));
        }
        if state.closed {
            return Poll::Ready(None);
        }
        let waker = Some(cx.waker().clone());
        state.workers[worker] = Worker { is_free: true, free: waker, ..Worker::default() };
        Poll::Pending
    }

    /// Ready when a worker's idle connection should be parked, so that the worker can take a waiting one.
    /// Stays ready until that worker takes its next connection. No more workers are signalled than
    /// connections wait.
    pub(super) fn poll_room_wanted(&self, worker: usize, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.workers[worker].is_signalled || state.is_room_wanted() {
            state.workers[worker].is_signalled = true;
            return Poll::Ready(());
        }
        state.workers[worker].idle = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Ready when there is room.
    pub(super) fn poll_room(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_until(cx, |state| state.waiting.len() < self.places)
    }

    /// Ready when a connection waits.
    pub(super) fn poll_waiting(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_until(cx, |state| !state.waiting.is_empty())
    }

    /// Ready when no connection waits.
    pub(super) fn poll_empty(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_until(cx, |state| state.waiting.is_empty())
    }

    /// Returns whether there is room.
    pub(super) fn has_room(&self) -> bool {
        self.room() > 0
    }

    /// Returns for how many more connections there is room.
    pub(super) fn room(&self) -> usize {
        self.places.saturating_sub(self.state().waiting.len())
    }

    /// Removes up to `most` connections that have waited for `time`, except those that a worker is about to
    /// take. Free workers, and those signalled to park, are left for the first in the queue, however long
    /// the workers take to wake.
    pub(super) fn take_overdue(&self, time: Duration, most: usize) -> Vec<T> {
        let mut state = self.state();
        let coming = state.coming().min(state.waiting.len());
        let is_due = |(since, _): &&(Instant, T)| since.elapsed() >= time;
        let count = state.waiting.range(coming..).take_while(is_due).take(most).count();
        let overdue: Vec<(Instant, T)> = state.waiting.drain(coming..coming + count).collect();
        if count > 0 {
            state.wake();
        }
        overdue.into_iter().map(|(_, connection)| connection).collect()
    }

    /// Returns how many connections have waited for `time` without a worker about to take them, up to the
    /// number of workers.
    pub(super) fn overdue(&self, time: Duration) -> usize {
        let state = self.state();
        let coming = state.coming().min(state.waiting.len());
        let waiting = state.waiting.range(coming..).take(state.workers.len());
        waiting.take_while(|(since, _)| since.elapsed() >= time).count()
    }

    /// Removes all waiting connections.
    pub(super) fn take_all(&self) -> Vec<T> {
        let waiting = std::mem::take(&mut self.state().waiting);
        waiting.into_iter().map(|(_, connection)| connection).collect()
    }

    /// Announces that no more connections will come: workers end when the queue is empty.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        let free: Vec<Waker> = state.workers.iter_mut().filter_map(|worker| worker.free.take()).collect();
        drop(state);
        free.into_iter().for_each(Waker::wake);
    }

    fn poll_until(&self, cx: &mut Context<'_>, reached: impl Fn(&State<T>) -> bool) -> Poll<()> {
        let mut state = self.state();
        if reached(&state) {
            return Poll::Ready(());
        }
        if !state.watching.iter().any(|known| known.will_wake(cx.waker())) {
            state.watching.push(cx.waker().clone());
        }
        Poll::Pending
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> State<T> {
    /// Returns how many workers are certain to take the next connections.
    fn coming(&self) -> usize {
        self.workers.iter().filter(|worker| worker.is_free || worker.is_signalled).count()
    }

    fn is_room_wanted(&self) -> bool {
        // Mostly no connection waits, and then no worker is counted.
        !self.waiting.is_empty() && self.waiting.len() > self.coming()
    }

    /// Returns the waker of a free worker, if a connection waits and no other worker is being woken. The
    /// woken worker wakes the next, once it has requested a connection. With short requests, busy workers
    /// take most waiting connections before a sleeping one could, and a wakeup costs as much as a request.
    fn next_worker(&mut self) -> Option<Waker> {
        if self.waiting.is_empty() || self.workers.iter().any(|worker| worker.is_woken) {
            return None;
        }
        let free = self.workers.iter_mut().find(|worker| worker.free.is_some())?;
        free.is_woken = true;
        free.free.take()
    }

    /// Wakes the watching tasks. A waker polls nothing: it may be called under the lock.
    fn wake(&mut self) {
        self.watching.drain(..).for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    /// Counts its wakeups.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A waiting task.
    #[derive(Default)]
    struct Waiter(Arc<Woken>);

    impl Waiter {
        fn asks<T>(&self, ask: impl FnOnce(&mut Context<'_>) -> T) -> T {
            ask(&mut Context::from_waker(&Waker::from(Arc::clone(&self.0))))
        }

        fn woken(&self) -> usize {
            self.0.0.load(Ordering::Relaxed)
        }
    }

    /// Creates a queue whose workers all have a connection.
    fn all_taken(workers: usize) -> Queue<char> {
        let (queue, worker) = (Queue::new(workers, 9), Waiter::default());
        for number in 0..workers {
            queue.push('-');
            assert!(worker.asks(|cx| queue.poll_take(number, cx)).is_ready());
        }
        queue
    }

    #[test]
    fn connections_are_served_in_the_order_of_their_arrival() {
        let (queue, worker) = (Queue::new(1, 2), Waiter::default());
        queue.push('a');
        queue.push('b');
        assert_eq!(worker.asks(|cx| queue.poll_take(0, cx)), Poll::Ready(Some('a')));
        assert_eq!(worker.asks(|cx| queue.poll_take(0, cx)), Poll::Ready(Some('b')));
        assert_eq!(worker.asks(|cx| queue.poll_take(0, cx)), Poll::Pending);
    }

    #[test]
    fn a_connection_wakes_a_free_worker_which_wakes_the_next_one() {
        let (queue, workers) = (Queue::new(2, 2), [Waiter::default(), Waiter::default()]);
        for (number, worker) in workers.iter().enumerate() {
            assert!(worker.asks(|cx| queue.poll_take(number, cx)).is_pending());
        }
        queue.push('a');
        assert_eq!(workers.each_ref().map(Waiter::woken).iter().sum::<usize>(), 1);
        queue.push('b');
        assert_eq!(workers.each_ref().map(Waiter::woken), [1, 0], "the first is on its way");
        assert_eq!(workers[0].asks(|cx| queue.poll_take(0, cx)), Poll::Ready(Some('a')));
        assert_eq!(workers.each_ref().map(Waiter::woken), [1, 1], "it may take long over its own");
        assert_eq!(workers[1].asks(|cx| queue.poll_take(1, cx)), Poll::Ready(Some('b')));
    }

    #[test]
    fn a_worker_that_finds_the_queue_empty_is_woken_for_the_next_connection() {
        let (queue, workers) = (Queue::new(2, 2), [Waiter::default(), Waiter::default()]);
        assert!(workers[0].asks(|cx| queue.poll_take(0, cx)).is_pending());
        queue.push('a');
        // Another worker had just finished its connection.
        assert_eq!(workers[1].asks(|cx| queue.poll_take(1, cx)), Poll::Ready(Some('a')));
        assert!(workers[0].asks(|cx| queue.poll_take(0, cx)).is_pending());
        queue.push('b');
        assert_eq!(workers[0].woken(), 2);
    }

    #[test]
    fn a_full_queue_has_room_again_when_one_is_taken() {
        let (queue, door, worker) = (Queue::new(1, 1), Waiter::default(), Waiter::default());
        assert!(door.asks(|cx| queue.poll_room(cx)).is_ready());
        queue.push('a');
        assert!(!queue.has_room());
        assert!(door.asks(|cx| queue.poll_room(cx)).is_pending());
        assert!(worker.asks(|cx| queue.poll_take(0, cx)).is_ready());
        assert_eq!(door.woken(), 1);
        assert!(door.asks(|cx| queue.poll_room(cx)).is_ready());
    }

    #[test]
    fn as_many_idle_conversations_are_asked_to_make_room_as_connections_wait() {
        let (queue, idle) = (all_taken(3), [Waiter::default(), Waiter::default()]);
        let asked =
            || [0, 1].map(|number| idle[number].asks(|cx| queue.poll_room_wanted(number, cx)).is_ready());
        assert_eq!(asked(), [false, false]);
        queue.push('a');
        assert_eq!(idle.each_ref().map(Waiter::woken), [1, 1]);
        assert_eq!(asked(), [true, false], "one is enough, and stays signalled");
        assert_eq!(asked(), [true, false]);
        assert!(!queue.state().is_room_wanted(), "one is making room");
        queue.push('b');
        assert_eq!(idle[1].woken(), 2, "a worker that was not signalled waits on");
        assert_eq!(asked(), [true, true]);
    }

    #[test]
    fn no_conversation_makes_room_while_a_worker_is_free() {
        let (queue, free, idle) = (all_taken(2), Waiter::default(), Waiter::default());
        assert!(free.asks(|cx| queue.poll_take(0, cx)).is_pending());
        queue.push('a');
        assert!(!queue.state().is_room_wanted());
        assert!(idle.asks(|cx| queue.poll_room_wanted(1, cx)).is_pending());
        queue.push('b');
        assert_eq!(idle.woken(), 1);
        assert!(queue.state().is_room_wanted());
    }

    #[test]
    fn a_worker_that_has_made_room_is_asked_again_only_for_other_connections() {
        let (queue, worker) = (all_taken(1), Waiter::default());
        queue.push('a');
        assert!(worker.asks(|cx| queue.poll_room_wanted(0, cx)).is_ready());
        assert!(worker.asks(|cx| queue.poll_take(0, cx)).is_ready());
        assert!(worker.asks(|cx| queue.poll_room_wanted(0, cx)).is_pending());
    }

    #[test]
    fn an_overdue_connection_is_taken_out_unless_a_worker_was_woken_for_it() {
        let (queue, worker) = (Queue::new(1, 9), Waiter::default());
        assert!(worker.asks(|cx| queue.poll_take(0, cx)).is_pending());
        "abc".chars().for_each(|connection| queue.push(connection));
        assert!(queue.take_overdue(Duration::from_secs(3600), 9).is_empty());
        assert_eq!(queue.take_overdue(Duration::ZERO, 1), ['b']);
        assert_eq!(queue.take_overdue(Duration::ZERO, 9), ['c']);
        assert_eq!(worker.asks(|cx| queue.poll_take(0, cx)), Poll::Ready(Some('a')));
        queue.push('d');
        assert_eq!(queue.take_overdue(Duration::ZERO, 9), ['d'], "the worker is taken");
        queue.push('e');
        assert!(worker.asks(|cx| queue.poll_room_wanted(0, cx)).is_ready());
        assert!(queue.take_overdue(Duration::ZERO, 9).is_empty(), "its worker was signalled");
    }

    #[test]
    fn a_worker_that_has_not_asked_yet_is_on_its_way() {
        let queue = Queue::new(1, 9);
        queue.push('a');
        assert!(queue.take_overdue(Duration::ZERO, 9).is_empty());
    }

    #[test]
    fn a_closed_queue_is_served_to_its_end() {
        let (queue, worker) = (Queue::new(1, 9), Waiter::default());
        assert!(worker.asks(|cx| queue.poll_take(0, cx)).is_pending());
        queue.push('a');
        queue.close();
        assert_eq!(worker.asks(|cx| queue.poll_take(0, cx)), Poll::Ready(Some('a')));
        assert_eq!(worker.asks(|cx| queue.poll_take(0, cx)), Poll::Ready(None));
    }

    #[test]
    fn closing_wakes_workers_that_are_free() {
        let (queue, worker) = (Queue::<char>::new(1, 9), Waiter::default());
        assert!(worker.asks(|cx| queue.poll_take(0, cx)).is_pending());
        queue.close();
        assert_eq!(worker.woken(), 1);
    }
}
