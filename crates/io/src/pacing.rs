//! Waits for a peer that receives slowly.
//!
//! A peer is stalled if the kernel accepted no byte for it within a stall time. A slow peer is not
//! stalled. Invariant: every wait ends, at most one check late.

use std::io;
use std::time::Duration;

use crate::deadline::{Deadline, Elapsed};
use crate::limits::PROGRESS_CHECK_TIME;
use crate::stream::{Stream, Tx};
use crate::time::Instant;

/// Waits until at most `below` bytes are unsent. Calls `report` at each check that finds progress.
///
/// # Errors
/// [`Elapsed`] if no byte was sent within `stall_time`; inside, the error that broke the connection.
pub async fn drain(
    tx: &mut Tx,
    below: u64,
    deadline: &Deadline,
    stall_time: Duration,
    report: impl FnMut(&Tx, Instant),
) -> Result<io::Result<()>, Elapsed> {
    let wait = async |tx: &mut Tx| tx.drain(below).await;
    let times = Times { stall: stall_time, check: stall_time.min(PROGRESS_CHECK_TIME) };
    until_stalled(tx, Tx::unsent, deadline, times, wait, report).await
}

/// Sends the pushed bytes and the end, and reads until the peer ends its side: see [`Stream::finish`].
///
/// # Errors
/// As [`drain`]; [`Elapsed`] also if the peer does not end its side within `stall_time`.
pub async fn finish(
    stream: &mut Stream,
    deadline: &Deadline,
    stall_time: Duration,
) -> Result<io::Result<()>, Elapsed> {
    let wait = async |stream: &mut Stream| stream.finish().await;
    // No checks in between: each would restart the count of the bytes that are read and dropped.
    let times = Times { stall: stall_time, check: stall_time };
    until_stalled(stream, |stream| stream.tx.unsent(), deadline, times, wait, |_, _| {}).await
}

/// The time without progress after which a peer is stalled, and the time between two checks.
struct Times {
    stall: Duration,
    check: Duration,
}

/// Repeats `wait` until it is ready, or `unsent` has not decreased for the stall time.
async fn until_stalled<S, T>(
    sending: &mut S,
    unsent: impl Fn(&S) -> u64,
    deadline: &Deadline,
    times: Times,
    mut wait: impl AsyncFnMut(&mut S) -> T,
    mut report: impl FnMut(&S, Instant),
) -> Result<T, Elapsed> {
    let (mut before, mut progressed) = (unsent(sending), deadline.now());
    loop {
        deadline.after(times.check);
        if let Ok(ended) = deadline.within(wait(sending)).await {
            return Ok(ended);
        }
        let now = deadline.now();
        if unsent(sending) < before {
            (before, progressed) = (unsent(sending), now);
            report(sending, now);
        } else if now - progressed >= times.stall {
            return Err(Elapsed);
        }
    }
}
