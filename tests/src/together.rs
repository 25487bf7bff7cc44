//! Several futures at once on one thread.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

/// Polls all futures concurrently, and returns their results in order.
pub async fn together<T>(futures: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut running: Vec<_> = futures.into_iter().map(|future| Some(Box::pin(future))).collect();
    let mut done: Vec<Option<T>> = running.iter().map(|_| None).collect();
    poll_fn(|cx| {
        for (future_cell, result) in running.iter_mut().zip(&mut done) {
            let Some(future) = future_cell else { continue };
            if let Poll::Ready(value) = Pin::as_mut(future).poll(cx) {
                (*result, *future_cell) = (Some(value), None);
            }
        }
        if running.iter().all(Option::is_none) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}
