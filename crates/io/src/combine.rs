//! Two waits at once, within one task.
//!
//! This does not spawn: the combined futures end with the future that combines them, so a connection
//! owns everything it started. Invariant: the loser of a race is dropped, which loses nothing by the
//! contract's first rule.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

/// The output of the future that was ready first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Either<A, B> {
    /// The first one.
    Left(A),
    /// The second one.
    Right(B),
}

// Types instead of async functions: an async function stores its arguments twice, as captured and as
// polled. These futures are nested in every connection's memory.
pin_project! {
    /// The future of [`select`].
    #[must_use = "futures do nothing unless polled"]
    pub struct Select<A, B> {
        #[pin]
        left: A,
        #[pin]
        right: B,
    }
}

impl<A: Future, B: Future> Future for Select<A, B> {
    type Output = Either<A::Output, B::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if let Poll::Ready(output) = this.left.poll(cx) {
            return Poll::Ready(Either::Left(output));
        }
        this.right.poll(cx).map(Either::Right)
    }
}

/// Waits until one of two futures is ready; `left` wins if both are.
pub fn select<A: Future, B: Future>(left: A, right: B) -> Select<A, B> {
    Select { left, right }
}

pin_project! {
    /// The future of [`join`].
    #[must_use = "futures do nothing unless polled"]
    pub struct Join<A: Future, B: Future> {
        #[pin]
        left: A,
        #[pin]
        right: B,
        left_output: Option<A::Output>,
        right_output: Option<B::Output>,
    }
}

impl<A: Future, B: Future> Future for Join<A, B> {
    type Output = (A::Output, B::Output);

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        if this.left_output.is_none()
            && let Poll::Ready(output) = this.left.poll(cx)
        {
            *this.left_output = Some(output);
        }
        if this.right_output.is_none()
            && let Poll::Ready(output) = this.right.poll(cx)
        {
            *this.right_output = Some(output);
        }
        match (this.left_output.take(), this.right_output.take()) {
            (Some(left), Some(right)) => Poll::Ready((left, right)),
            (left, right) => {
                (*this.left_output, *this.right_output) = (left, right);
                Poll::Pending
            }
        }
    }
}

/// Waits for both futures.
pub fn join<A: Future, B: Future>(left: A, right: B) -> Join<A, B> {
    Join { left, right, left_output: None, right_output: None }
}
