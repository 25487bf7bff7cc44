//! STRU: "The argument is a single Telnet character code specifying file structure" (RFC 959, section
//! 4.1.2).
//!
//! Invariant: an unsupported structure is refused and changes nothing.

use plimsoll_wire::ftp::options::parse_structure;

use crate::ftp::reply::{CommandResult, Reply};

pub(super) fn execute(argument: &[u8]) -> CommandResult {
    match parse_structure(argument) {
        Ok(()) => Ok(Reply::new(200, "Files are bytes without records.")),
        Err(bad) => Err(Reply::new(bad.code(), "There is STRU F and no other.")),
    }
}
