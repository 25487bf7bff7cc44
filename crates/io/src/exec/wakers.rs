//! Wakers: they queue a task in its executor, from the executor's thread or from another.
//!
//! This is not a scheduler. Invariants: a task is queued at most once however often it is woken; a
//! wakeup from its own thread takes no lock and makes no system call.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake;

use super::tasks::TaskId;
use crate::stop::Notify;

/// The queue of ready tasks that only the executor's own thread uses.
pub(super) type Local = Rc<RefCell<VecDeque<TaskId>>>;

thread_local! {
    /// The executor that is entered on this thread, by number, and its queue.
    static ENTERED: RefCell<Option<(u64, Local)>> = const { RefCell::new(None) };
}

static EXECUTORS: AtomicU64 = AtomicU64::new(0);

/// The tasks that other threads have woken.
pub(super) struct Remote {
    executor: u64,
    woken: Mutex<Vec<TaskId>>,
    any: AtomicBool,
    notify: Arc<dyn Notify>,
}

impl Remote {
    pub(super) fn new(notify: Arc<dyn Notify>) -> Arc<Remote> {
        let executor = EXECUTORS.fetch_add(1, Ordering::Relaxed);
        Arc::new(Remote { executor, woken: Mutex::default(), any: AtomicBool::new(false), notify })
    }

    /// Moves the tasks woken by other threads into the executor's own queue.
    pub(super) fn take_into(&self, local: &Local) {
        if self.any.swap(false, Ordering::Acquire) {
            let mut woken = self.woken.lock().unwrap_or_else(PoisonError::into_inner);
            local.borrow_mut().extend(woken.drain(..));
        }
    }

    fn push(&self, task: TaskId) {
        self.woken.lock().unwrap_or_else(PoisonError::into_inner).push(task);
        self.any.store(true, Ordering::Release);
        self.notify.notify();
    }
}

/// The data behind a [`std::task::Waker`] of this executor.
pub(super) struct TaskWaker {
    task: TaskId,
    queued: AtomicBool,
    remote: Arc<Remote>,
}

impl TaskWaker {
    pub(super) fn new(task: TaskId, remote: &Arc<Remote>) -> Arc<TaskWaker> {
        Arc::new(TaskWaker { task, queued: AtomicBool::new(false), remote: Arc::clone(remote) })
    }

    /// Marks the task as about to be polled: from now on it may be queued again.
    pub(super) fn polled(&self) {
        self.queued.store(false, Ordering::Release);
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.queued.swap(true, Ordering::AcqRel) {
            return;
        }
        let here = ENTERED.try_with(|entered| match &*entered.borrow() {
            Some((executor, local)) if *executor == self.remote.executor => {
                local.borrow_mut().push_back(self.task);
                true
            }
            _ => false,
        });
        if here != Ok(true) {
            self.remote.push(self.task);
        }
    }
}

/// Guard of an entered executor: wakeups from this thread go straight into its queue.
pub struct Entered {
    before: Option<(u64, Local)>,
}

impl Entered {
    pub(super) fn new(remote: &Remote, local: &Local) -> Entered {
        let this = Some((remote.executor, Rc::clone(local)));
        Entered { before: ENTERED.with(|entered| entered.replace(this)) }
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        ENTERED.with(|entered| entered.replace(self.before.take()));
    }
}
