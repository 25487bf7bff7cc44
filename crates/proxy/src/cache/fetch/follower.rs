//! The side of a fetch that sends to a client what another request receives.
//!
//! It does no input or output. Invariant: it never gets bytes that were not published, and learns whether
//! the end of what was published is the end of the body.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use super::spool::Available;
use super::table::{Fetch, Phase, State};
use crate::cache::policy::StoredHead;
use crate::cache::store::Object;

/// A reader of a fetch.
#[derive(Debug)]
pub struct Follower(Arc<Fetch>);

/// The head of a fetch that a request follows.
#[derive(Clone, Debug)]
pub enum FollowedHead {
    /// A cacheable response, and the length of its body if it is known. The request must check that the
    /// response answers it.
    Open(Arc<StoredHead>, Option<u64>),
    /// A whole response, in a file that the origin has passed. The request must check that it answers it.
    Passed(Arc<Object>),
    /// The response is not cacheable: the request proceeds alone.
    Uncacheable,
    /// The fetch failed, or found the object stored: the request starts from the lookup.
    Failed,
}

impl Follower {
    pub(super) fn new(fetch: Arc<Fetch>) -> Follower {
        Follower(fetch)
    }

    /// Waits for the head.
    pub async fn head(&self) -> FollowedHead {
        poll_fn(|cx| {
            self.poll(cx, |state| match &state.phase {
                Phase::Waiting => None,
                Phase::Open(head) => Some(FollowedHead::Open(Arc::clone(head), state.length)),
                Phase::Complete(head) => {
                    Some(FollowedHead::Open(Arc::clone(head), Some(state.spool.received())))
                }
                Phase::Passed(object) => Some(FollowedHead::Passed(Arc::clone(object))),
                Phase::Uncacheable => Some(FollowedHead::Uncacheable),
                Phase::Failed => Some(FollowedHead::Failed),
            })
        })
        .await
    }

    /// Waits for bytes behind `offset`. Returns at most `bytes_max` of them.
    pub async fn read(&self, offset: u64, bytes_max: u64) -> Available {
        poll_fn(|cx| {
            self.poll(cx, |state| {
                state.spool.available(offset, bytes_max).or(match state.phase {
                    Phase::Complete(_) => Some(Available::End),
                    // No byte was published of a passed file.
                    Phase::Passed(_) | Phase::Uncacheable | Phase::Failed => Some(Available::Failed),
                    Phase::Waiting | Phase::Open(_) => None,
                })
            })
        })
        .await
    }

    /// Voids the fetch because its recording cannot be read: the response is not stored. Returns whether it
    /// was not void before.
    #[must_use]
    pub fn void(&self) -> bool {
        !std::mem::replace(&mut self.0.lock().is_void, true)
    }

    fn poll<T>(&self, cx: &mut Context<'_>, ready: impl FnOnce(&State) -> Option<T>) -> Poll<T> {
        let mut state = self.0.lock();
        if let Some(value) = ready(&state) {
            return Poll::Ready(value);
        }
        // One waker for each waiting task: their number is that of the connections.
        if !state.wakers.iter().any(|waker| waker.will_wake(cx.waker())) {
            state.wakers.push(cx.waker().clone());
        }
        Poll::Pending
    }
}
