//! PWD: "This command causes the name of the current working directory to be returned in the reply" (RFC
//! 959, section 4.1.3).
//!
//! Invariant: programs can parse the reply; no byte of a name ends it early.

use plimsoll_wire::ftp::reply::quoted;

use crate::ftp::conversation::Conversation;
use crate::ftp::path::display;
use crate::ftp::reply::{CommandResult, Reply};

pub(super) fn execute(c: &Conversation<'_>) -> CommandResult {
    let mut text = quoted(display(&c.state.folder));
    text.extend_from_slice(b" is where you are.");
    Ok(Reply::formatted(257, text))
}
