//! SYST: "This command is used to find out the type of operating system at the server" (RFC 959, section
//! 4.1.3). Clients derive the format of LIST from it.
//!
//! Invariant: the reply is one that clients recognise.

use crate::ftp::reply::{CommandResult, Reply};

pub(super) fn execute() -> CommandResult {
    Ok(Reply::new(215, "UNIX Type: L8"))
}
