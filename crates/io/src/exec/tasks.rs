//! The tasks of one thread and the queue of the ready ones.
//!
//! It does not choose the order in which ready tasks are polled (the simulator shuffles it), nor wait.
//! Invariants: polling and dropping a task are both under `catch_unwind`; a task may spawn and wake
//! others while it is polled.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Waker};

use super::wakers::{Entered, Local, Remote, TaskWaker};
use crate::engine::LocalFuture;
use crate::stop::Notify;

/// Identifies a task of one executor. Identifiers are reused after a task has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(usize);

/// The result of polling a task.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    /// No task has this identifier (any more).
    Absent,
    /// The task is pending.
    Waiting,
    /// The task has ended.
    Ended,
    /// The task panicked and was dropped. Holds the panic message.
    Panicked(String),
}

struct Task {
    future: LocalFuture,
    waker: Waker,
    handle: Arc<TaskWaker>,
}

enum Entry {
    Vacant,
    Polled,
    Waiting(Task),
}

/// Tasks that stay on one thread.
pub struct Executor {
    entries: RefCell<Vec<Entry>>,
    vacant: RefCell<Vec<usize>>,
    live: Cell<usize>,
    local: Local,
    remote: Arc<Remote>,
}

impl Executor {
    /// Creates an executor without tasks; `notify` ends the wait of its thread when another thread wakes
    /// a task.
    pub fn new(notify: Arc<dyn Notify>) -> Executor {
        Executor {
            entries: RefCell::default(),
            vacant: RefCell::default(),
            live: Cell::new(0),
            local: Local::default(),
            remote: Remote::new(notify),
        }
    }

    /// Makes this executor the current one of this thread until the guard is dropped.
    pub fn enter(&self) -> Entered {
        Entered::new(&self.remote, &self.local)
    }

    /// Adds a task, ready to be polled.
    pub fn spawn(&self, future: LocalFuture) -> TaskId {
        let index = self.vacant.borrow_mut().pop().unwrap_or_else(|| {
            self.entries.borrow_mut().push(Entry::Vacant);
            self.entries.borrow().len() - 1
        });
        let handle = TaskWaker::new(TaskId(index), &self.remote);
        let waker = Waker::from(Arc::clone(&handle));
        waker.wake_by_ref();
        self.entries.borrow_mut()[index] = Entry::Waiting(Task { future, waker, handle });
        self.live.set(self.live.get() + 1);
        TaskId(index)
    }

    /// Returns the number of tasks that have not ended.
    pub fn live(&self) -> usize {
        self.live.get()
    }

    /// Whether `task` has not ended.
    pub fn is_live(&self, task: TaskId) -> bool {
        !matches!(self.entries.borrow().get(task.0), None | Some(Entry::Vacant))
    }

    /// Whether a task is ready.
    pub fn any_ready(&self) -> bool {
        self.remote.take_into(&self.local);
        !self.local.borrow().is_empty()
    }

    /// Moves the tasks that are ready now into `batch`, in the order in which they were woken. Tasks
    /// that are woken while the batch is polled belong to the next batch, so that no task starves
    /// another.
    pub fn take_ready(&self, batch: &mut Vec<TaskId>) {
        self.remote.take_into(&self.local);
        batch.extend(self.local.borrow_mut().drain(..));
    }

    /// Polls one task.
    pub fn poll(&self, id: TaskId) -> Turn {
        let Some(mut task) = self.begin(id) else { return Turn::Absent };
        task.handle.polled();
        let mut cx = Context::from_waker(&task.waker);
        match catch_unwind(AssertUnwindSafe(|| task.future.as_mut().poll(&mut cx))) {
            Ok(std::task::Poll::Pending) => {
                self.entries.borrow_mut()[id.0] = Entry::Waiting(task);
                Turn::Waiting
            }
            Ok(std::task::Poll::Ready(())) => self.end(id, task).map_or(Turn::Ended, Turn::Panicked),
            Err(panic) => {
                let message = message_of(&*panic);
                self.end(id, task);
                Turn::Panicked(message)
            }
        }
    }

    /// Wakes every task. For a change of a condition that any task may wait for.
    pub fn wake_all(&self) {
        for entry in &*self.entries.borrow() {
            if let Entry::Waiting(task) = entry {
                task.waker.wake_by_ref();
            }
        }
    }

    /// Drops every task.
    pub fn clear(&self) {
        // `count` is read before the loop: in the loop's head, the borrow would last as long as the
        // loop.
        let count = self.entries.borrow().len();
        for index in 0..count {
            if let Some(task) = self.begin(TaskId(index)) {
                self.end(TaskId(index), task);
            }
        }
    }

    fn begin(&self, id: TaskId) -> Option<Task> {
        let mut entries = self.entries.borrow_mut();
        let entry = entries.get_mut(id.0)?;
        match std::mem::replace(entry, Entry::Polled) {
            Entry::Waiting(task) => Some(task),
            other => {
                *entry = other;
                None
            }
        }
    }

    /// Drops a task. Returns the panic message if its drop panics.
    fn end(&self, id: TaskId, task: Task) -> Option<String> {
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(task)));
        self.entries.borrow_mut()[id.0] = Entry::Vacant;
        self.vacant.borrow_mut().push(id.0);
        self.live.set(self.live.get() - 1);
        dropped.err().map(|panic| message_of(&*panic))
    }
}

pub(crate) fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.map(str::to_owned)
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}
