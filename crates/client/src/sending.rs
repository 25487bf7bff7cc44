//! Waiting for a server to take what is sent to it.
//!
//! Not here: what is sent. What must hold: a server that takes something is waited for, one that takes
//! nothing is not.

use std::io;
use std::time::Duration;

use plimsoll_io::{Deadline, Elapsed, Tx};

/// Waits until at most `below` bytes are unsent, for as long as some are taken in each `time`.
///
/// # Errors
/// [`Elapsed`] if nothing was taken in a `time`; within, what broke the connection.
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
