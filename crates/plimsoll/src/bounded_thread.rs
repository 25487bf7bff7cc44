//! A thread whose end can be waited for with a timeout, which the standard library's handle cannot.
//!
//! It stops no thread. Invariant: the end is noticed at once, also if the thread panics.

use std::convert::Infallible;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// A handle of a thread that returns a `T`.
pub(crate) struct BoundedThread<T> {
    handle: JoinHandle<T>,
    /// Disconnected when the thread ends.
    ended: Receiver<Infallible>,
}

impl<T: Send + 'static> BoundedThread<T> {
    /// Starts `body` on a thread of this name.
    pub(crate) fn spawn(
        name: &str,
        body: impl FnOnce() -> T + Send + 'static,
    ) -> io::Result<BoundedThread<T>> {
        let (alive, ended) = sync_channel(0);
        let handle = thread::Builder::new().name(name.to_owned()).spawn(move || {
            let _alive = alive;
            body()
        })?;
        Ok(BoundedThread { handle, ended })
    }

    /// Waits for the thread's end. Returns its result, or `None` if it still runs after `time`.
    pub(crate) fn join_within(self, time: Duration) -> Option<thread::Result<T>> {
        match self.ended.recv_timeout(time) {
            Err(RecvTimeoutError::Disconnected) => Some(self.handle.join()),
            Err(RecvTimeoutError::Timeout) => None,
            Ok(never) => match never {},
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// Longer than any machine needs.
    const PATIENCE: Duration = Duration::from_secs(120);

    #[test]
    fn a_thread_that_ends_is_joined_with_its_result_even_if_it_panics() {
        let thread = BoundedThread::spawn("ends", || 7).unwrap();
        assert_eq!(thread.join_within(PATIENCE).unwrap().unwrap(), 7);
        let thread = BoundedThread::spawn("panics", || panic!("as the test intends")).unwrap();
        assert!(thread.join_within(PATIENCE).unwrap().is_err());
    }

    #[test]
    fn a_thread_that_does_not_end_is_left_after_the_timeout() {
        let (release, wait) = channel::<()>();
        let thread = BoundedThread::spawn("waits", move || {
            let _ = wait.recv();
        })
        .unwrap();
        assert!(thread.join_within(Duration::from_millis(20)).is_none());
        drop(release);
    }
}
