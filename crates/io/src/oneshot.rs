//! A channel for one value from one thread to a task of another.
//!
//! It is not a queue. Invariants: dropping the sender ends the wait, so that the receiver never hangs;
//! the sender can check whether the receiver still waits.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The shared cell of both ends.
struct State<T> {
    value: Option<T>,
    /// Whether the sender was dropped: no value will follow.
    is_over: bool,
    /// Whether the receiver was dropped.
    is_unwanted: bool,
    waker: Option<Waker>,
}

type Shared<T> = Arc<Mutex<State<T>>>;

fn lock<T>(shared: &Shared<T>) -> MutexGuard<'_, State<T>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The sending end.
pub struct Sender<T>(Shared<T>);

/// The receiving end: ready with the value, or with `None` if the sender was dropped without sending.
pub struct Receiver<T>(Shared<T>);

/// Creates a channel for one value.
#[must_use]
pub fn oneshot<T>() -> (Sender<T>, Receiver<T>) {
    let shared = State { value: None, is_over: false, is_unwanted: false, waker: None };
    let shared = Arc::new(Mutex::new(shared));
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

impl<T> Sender<T> {
    /// Sends the value.
    pub fn send(self, value: T) {
        lock(&self.0).value = Some(value);
        // Dropping `self` wakes the receiver.
    }

    /// Whether the receiver still waits for the value.
    pub fn is_wanted(&self) -> bool {
        !lock(&self.0).is_unwanted
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut shared = lock(&self.0);
        shared.is_over = true;
        let waker = shared.waker.take();
        drop(shared);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl<T> Future for Receiver<T> {
    type Output = Option<T>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let mut shared = lock(&self.0);
        if shared.is_over {
            return Poll::Ready(shared.value.take());
        }
        shared.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        lock(&self.0).is_unwanted = true;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    fn poll<T>(receiver: &mut Receiver<T>) -> Poll<Option<T>> {
        pin!(receiver).poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_sent_value_arrives_once() {
        let (sender, mut receiver) = oneshot();
        assert_eq!(poll(&mut receiver), Poll::Pending);
        sender.send(7);
        assert_eq!(poll(&mut receiver), Poll::Ready(Some(7)));
    }

    #[test]
    fn a_sender_that_is_dropped_ends_the_wait() {
        let (sender, mut receiver) = oneshot::<()>();
        drop(sender);
        assert_eq!(poll(&mut receiver), Poll::Ready(None));
    }

    #[test]
    fn the_sender_knows_that_the_receiver_is_gone() {
        let (sender, receiver) = oneshot::<()>();
        assert!(sender.is_wanted());
        drop(receiver);
        assert!(!sender.is_wanted());
    }
}
