//! REIN: "This command terminates a USER, flushing all I/O and account information, except to allow any
//! transfer in progress to be completed" (RFC 959, section 4.1.1).
//!
//! Over TLS it is refused: "the TLS session(s) MUST be cleared" (RFC 4217, section 11), and the session would
//! continue in clear. USER logs out, too. Invariant: no state of the previous login remains.

use crate::ftp::conversation::Conversation;
use crate::ftp::reply::{CommandResult, Reply};

pub(super) fn execute(c: &mut Conversation<'_>) -> CommandResult {
    if c.secure.is_some() {
        return Err(Reply::new(502, "This session stays encrypted: say USER to log in again."));
    }
    c.state.reset();
    Ok(Reply::new(220, "Logged out; say USER to log in again."))
}
