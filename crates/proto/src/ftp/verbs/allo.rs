//! ALLO: "This command may be required by some servers to reserve sufficient storage to accommodate the new
//! file to be transferred" (RFC 959, section 4.1.3). This server reserves nothing. It takes the number as a
//! hint of the file's size: an upload of so many bytes is complete.

use plimsoll_wire::ftp::options::parse_allo;

use crate::ftp::conversation::Conversation;
use crate::ftp::reply::{CommandResult, Reply};

pub(super) fn execute(c: &mut Conversation<'_>, argument: &[u8]) -> CommandResult {
    let bytes =
        parse_allo(argument).map_err(|bad| Reply::new(bad.code(), "Say ALLO and a number of bytes."))?;
    c.state.announcement.room = Some(bytes);
    Ok(Reply::new(200, "An upload of so many bytes will count as complete."))
}
