//! The executor of all engines: the tasks of one thread, their wakers, their timers.
//!
//! It does not wait and reads no clock: its driver (an engine, the simulator) takes the ready tasks,
//! polls them, and decides how to wait. Invariants: a panic ends the task it happened in and no other; a
//! waker may be called from any thread at any time, also after its task has ended.

mod tasks;
mod timers;
mod wakers;

pub(crate) use tasks::message_of;
pub use tasks::{Executor, TaskId, Turn};
pub use timers::{TimerId, Timers};
pub use wakers::Entered;
