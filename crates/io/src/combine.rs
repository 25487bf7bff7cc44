//! Two waits at once, within one task.
//!
//! It is not a way to spawn: what is combined here ends with the future that combines it, so a connection
//! owns everything it started. What must hold: the loser of a race is dropped, and by the contract's first
//! rule that loses nothing.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;

/// Which of two came first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Either<A, B> {
    /// The first one.
    Left(A),
    /// The second one.
    Right(B),
}

// A function that is async keeps what it is given twice: as it came, and where it is polled. These waits are
// in every connection's memory, one in the other, so they are types.
pin_project! {
    /// What [`select`] waits by.
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

/// Waits for whichever is ready first; `left` if both are.
pub fn select<A: Future, B: Future>(left: A, right: B) -> Select<A, B> {
    Select { left, right }
}

pin_project! {
    /// What [`join`] waits by.
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

/// Waits for both.
pub fn join<A: Future, B: Future>(left: A, right: B) -> Join<A, B> {
    Join { left, right, left_output: None, right_output: None }
}
