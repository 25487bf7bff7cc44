//! Work that a connection's task performs beside its requests, such as the validation of a stale response.
//!
//! It starts no thread: every engine polls a connection's task in the same way. Invariants: the client waits
//! for none of this work, neither between requests nor at the end of its connection; the work goes on when
//! the client has left; its amount is bounded for each connection.

use std::cell::RefCell;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll};

use plimsoll_io::LocalFuture;
use plimsoll_proto::http::SideWork;

use crate::limits::SIDE_TASKS_MAX;

/// The work of one connection.
#[derive(Default)]
pub(crate) struct SideTasks(RefCell<Vec<LocalFuture>>);

impl SideTasks {
    /// Whether another task may be started.
    pub(crate) fn has_room(&self) -> bool {
        self.0.borrow().len() < SIDE_TASKS_MAX
    }

    /// Starts a task. The caller has checked that there is [room](SideTasks::has_room).
    pub(crate) fn start(&self, task: LocalFuture) {
        self.0.borrow_mut().push(task);
    }

    /// Performs `main`, and the tasks beside it. Ready as soon as `main` is.
    // The caller pins `main`: passed by value, it would be in the connection's future twice.
    pub(crate) async fn beside<F: Future>(&self, mut main: Pin<&mut F>) -> F::Output {
        poll_fn(|cx| {
            loop {
                if let Poll::Ready(output) = main.as_mut().poll(cx) {
                    return Poll::Ready(output);
                }
                // `main` may wait for the end of the tasks.
                if !self.poll(cx) {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    /// Performs the tasks to their end.
    pub(crate) async fn finish(&self) {
        poll_fn(|cx| {
            self.poll(cx);
            if self.0.borrow().is_empty() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    /// Polls the tasks. Returns whether the last has ended.
    fn poll(&self, cx: &mut Context<'_>) -> bool {
        let mut running = mem::take(&mut *self.0.borrow_mut());
        if running.is_empty() {
            return false;
        }
        running.retain_mut(|task| task.as_mut().poll(cx).is_pending());
        let has_ended = running.is_empty();
        *self.0.borrow_mut() = running;
        has_ended
    }
}

impl SideWork for SideTasks {
    fn poll_ended(&self, _: &mut Context<'_>) -> Poll<()> {
        if self.0.borrow().is_empty() { Poll::Ready(()) } else { Poll::Pending }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::pin::pin;
    use std::rc::Rc;
    use std::task::Waker;

    use super::*;

    fn poll<F: Future>(future: F) -> Poll<F::Output> {
        pin!(future).poll(&mut Context::from_waker(Waker::noop()))
    }

    /// A task that ends when `is_open`.
    fn task(is_open: &Rc<Cell<bool>>) -> LocalFuture {
        let is_open = Rc::clone(is_open);
        Box::pin(poll_fn(move |_| if is_open.get() { Poll::Ready(()) } else { Poll::Pending }))
    }

    #[test]
    fn the_main_work_does_not_wait_for_the_tasks_and_they_are_finished_after_it() {
        let (tasks, is_open) = (SideTasks::default(), Rc::new(Cell::new(false)));
        for _ in 0..SIDE_TASKS_MAX {
            assert!(tasks.has_room());
            tasks.start(task(&is_open));
        }
        assert!(!tasks.has_room());
        assert_eq!(poll(tasks.beside(pin!(async { 7 }))), Poll::Ready(7));
        assert!(poll(tasks.finish()).is_pending());
        is_open.set(true);
        assert!(poll(tasks.finish()).is_ready() && tasks.has_room());
    }

    #[test]
    fn work_that_waits_for_the_end_of_the_tasks_goes_on_in_the_same_turn() {
        let (tasks, is_open) = (SideTasks::default(), Rc::new(Cell::new(false)));
        tasks.start(task(&is_open));
        assert!(poll(tasks.beside(pin!(poll_fn(|cx| tasks.poll_ended(cx))))).is_pending());
        is_open.set(true);
        assert!(poll(tasks.beside(pin!(poll_fn(|cx| tasks.poll_ended(cx))))).is_ready());
    }
}
