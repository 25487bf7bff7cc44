//! REIN: "This command terminates a USER, flushing all I/O and account information, except to allow any
//! transfer in progress to be completed" (RFC 959, section 4.1.1).
//!
//! Invariant: no state of the previous login remains.

use crate::ftp::conversation::Conversation;
use crate::ftp::reply::{CommandResult, Reply};

pub(super) fn execute(c: &mut Conversation<'_>) -> CommandResult {
    c.state.reset();
    Ok(Reply::new(220, "Logged out; say USER to log in again."))
}
