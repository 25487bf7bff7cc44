//! Runs transfers in parallel: large files one after the other on one connection, small ones on several.
//!
//! It knows nothing of the transfers themselves. Invariant: after an error that concerns all transfers, no
//! connection starts another file.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use crate::api_client::ApiClient;

/// The queues of job numbers that are not started yet.
pub(crate) struct TransferQueues {
    large: RefCell<VecDeque<usize>>,
    small: RefCell<VecDeque<usize>>,
}

impl TransferQueues {
    /// Puts each job into a queue; `sizes` are their bytes, and those above `small_bytes_max` are large.
    pub(crate) fn new(sizes: impl Iterator<Item = (usize, u64)>, small_bytes_max: u64) -> TransferQueues {
        let (large, small): (Vec<_>, Vec<_>) = sizes.partition(|(_, bytes)| *bytes > small_bytes_max);
        let numbers = |jobs: Vec<(usize, u64)>| RefCell::new(jobs.into_iter().map(|(job, _)| job).collect());
        TransferQueues { large: numbers(large), small: numbers(small) }
    }

    fn next(&self, takes_large: bool) -> Option<usize> {
        let large = || self.large.borrow_mut().pop_front();
        takes_large.then(large).flatten().or_else(|| self.small.borrow_mut().pop_front())
    }
}

/// Runs `transfer` for every job, on at most so many connections.
///
/// # Errors
///
/// # Errors
/// The first error of a transfer; jobs that have not begun are then skipped.
pub(crate) async fn transfer_all(
    server: &mut ApiClient,
    (queues, connections): (&TransferQueues, usize),
    transfer: &impl AsyncFn(&mut ApiClient, usize) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let connections = connections.min(queues.small.borrow().len());
    let mut servers: Vec<ApiClient> = (1..connections).map(|_| server.new_connection()).collect();
    let first_error = RefCell::new(None);
    let work = async |server: &mut ApiClient, takes_large: bool| {
        while first_error.borrow().is_none()
            && let Some(job) = queues.next(takes_large)
        {
            if let Err(error) = transfer(server, job).await {
                first_error.borrow_mut().get_or_insert(error);
            }
        }
    };
    let work = &work;
    let mut workers: Vec<Pin<Box<dyn Future<Output = ()> + '_>>> = Vec::new();
    for other in &mut servers {
        workers.push(Box::pin(work(other, false)));
    }
    workers.push(Box::pin(work(server, true)));
    until_all_end(workers).await;
    first_error.take().map_or(Ok(()), Err)
}

/// Waits until all futures have ended.
async fn until_all_end(mut futures: Vec<Pin<Box<dyn Future<Output = ()> + '_>>>) {
    poll_fn(|cx| {
        futures.retain_mut(|future| future.as_mut().poll(cx).is_pending());
        if futures.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
