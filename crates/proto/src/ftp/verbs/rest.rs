//! REST: "The argument field represents the server marker at which file transfer is to be restarted" (RFC
//! 959, section 4.1.3); in the stream mode, "the number of octets" (RFC 3659, section 5.3).
//!
//! Invariant: the offset applies to the next transfer only.

use plimsoll_wire::ftp::options::parse_rest;

use crate::ftp::conversation::Conversation;
use crate::ftp::reply::{CommandResult, Reply};

pub(super) fn execute(c: &mut Conversation<'_>, argument: &[u8]) -> CommandResult {
    let offset =
        parse_rest(argument).map_err(|bad| Reply::new(bad.code(), "Say REST and a number of bytes."))?;
    if offset > 0 && !c.state.is_image {
        return Err(Reply::new(504, "A text transfer cannot be resumed: send TYPE I first."));
    }
    c.state.rest = offset;
    Ok(Reply::formatted(350, format!("The next transfer begins at byte {offset}.")))
}
