//! AUTH, PBSZ and PROT: "The argument field is a Telnet string identifying a supported mechanism" (RFC 2228,
//! section 3). No mechanism is supported yet.

use crate::ftp::reply::{CommandResult, Reply};

pub(super) fn execute() -> CommandResult {
    Err(Reply::new(502, "This server has no TLS over FTP."))
}
