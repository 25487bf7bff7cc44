//! MODE: "The argument is a single Telnet character code specifying the data transfer modes" (RFC 959,
//! section 4.1.2).
//!
//! Invariant: an unsupported mode is refused and changes nothing.

use plimsoll_wire::ftp::options::parse_mode;

use crate::ftp::reply::{CommandResult, Reply};

pub(super) fn execute(argument: &[u8]) -> CommandResult {
    match parse_mode(argument) {
        Ok(()) => Ok(Reply::new(200, "Files go as a stream.")),
        Err(bad) => Err(Reply::new(bad.code(), "There is MODE S and no other.")),
    }
}
