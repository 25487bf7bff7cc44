//! PWD: "This command causes the name of the current working directory to be returned in the reply" (RFC
//! 959, section 4.1.3).
//!
//! Invariant: programs can parse the reply; no byte of a name ends it early.

use plimsoll_wire::ftp::answer::quoted;

use crate::ftp::answer::{Answer, Obeyed};
use crate::ftp::conversation::Conversation;
use crate::ftp::place::shown;

pub(super) fn obey(c: &Conversation<'_>) -> Obeyed {
    let mut text = quoted(shown(&c.state.folder));
    text.extend_from_slice(b" is where you are.");
    Ok(Answer::made(257, text))
}
