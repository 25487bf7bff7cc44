//! Waiting for a server to take the bytes sent to it.
//!
//! It does not send. Invariant: the wait lasts only as long as the server takes some bytes in each period.

use std::io;
use std::time::Duration;

use plimsoll_io::{Deadline, Elapsed, Tx};

/// Waits until at most `below` bytes are unsent, for as long as some are taken in each `time`.
///
/// # Errors
/// [`Elapsed`] if nothing was taken in a `time`; within, the error that broke the connection.
pub(crate) async fn drain(
    tx: &mut Tx,
    below: u64,
    deadline: &Deadline,
    time: Duration,
) -> Result<io::Result<()>, Elapsed> {
    loop {
        let before = tx.unsent();
        deadline.after(time);
        match deadline.within(tx.drain(below)).await {
            Err(Elapsed) if tx.unsent() < before => {}
            ended => return ended,
        }
    }
}
