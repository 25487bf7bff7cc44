//! Two waits at once, within one task.
//!
//! It is not a way to spawn: what is combined here ends with the future that combines it, so a connection
//! owns everything it started. What must hold: the loser of a race is dropped, and by the contract's first
//! rule that loses nothing.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// Which of two came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Either<A, B> {
    /// The first one.
    Left(A),
    /// The second one.
    Right(B),
}

/// Waits for whichever is ready first; `left` if both are.
pub async fn select<A: Future, B: Future>(left: A, right: B) -> Either<A::Output, B::Output> {
    let (mut left, mut right) = (pin!(left), pin!(right));
    poll_fn(|cx| {
        if let Poll::Ready(output) = left.as_mut().poll(cx) {
            return Poll::Ready(Either::Left(output));
        }
        right.as_mut().poll(cx).map(Either::Right)
    })
    .await
}

/// Waits for both.
pub async fn join<A: Future, B: Future>(left: A, right: B) -> (A::Output, B::Output) {
    let (mut left, mut right) = (pin!(left), pin!(right));
    let (mut left_output, mut right_output) = (None, None);
    poll_fn(|cx| {
        if left_output.is_none()
            && let Poll::Ready(output) = left.as_mut().poll(cx)
        {
            left_output = Some(output);
        }
        if right_output.is_none()
            && let Poll::Ready(output) = right.as_mut().poll(cx)
        {
            right_output = Some(output);
        }
        match (left_output.take(), right_output.take()) {
            (Some(left), Some(right)) => Poll::Ready((left, right)),
            (left, right) => {
                (left_output, right_output) = (left, right);
                Poll::Pending
            }
        }
    })
    .await
}
