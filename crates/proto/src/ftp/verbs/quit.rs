//! QUIT: "This command terminates a USER and if file transfer is not in progress, the server closes the
//! control connection" (RFC 959, section 4.1.1). During a transfer, it is queued and executed after it.

use crate::ftp::answer::{Answer, Obeyed};

pub(super) fn obey() -> Obeyed {
    Ok(Answer::new(221, "Goodbye.").and_end())
}
