//! REIN: "This command terminates a USER, flushing all I/O and account information, except to allow any
//! transfer in progress to be completed" (RFC 959, section 4.1.1).
//!
//! Invariant: no state of the previous login remains.

use crate::ftp::answer::{Answer, Obeyed};
use crate::ftp::conversation::Conversation;

pub(super) fn obey(c: &mut Conversation<'_>) -> Obeyed {
    c.state.reset();
    Ok(Answer::new(220, "Logged out; say USER to log in again."))
}
