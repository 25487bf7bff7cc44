//! QUIT: "This command terminates a USER and if file transfer is not in progress, the server closes the
//! control connection" (RFC 959, section 4.1.1). During a transfer, it is queued and executed after it.

use crate::ftp::reply::{CommandResult, Reply};

pub(super) fn execute() -> CommandResult {
    Ok(Reply::new(221, "Goodbye.").and_end())
}
