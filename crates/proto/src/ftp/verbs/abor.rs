//! ABOR: "This command tells the server to abort the previous FTP service command and any associated transfer
//! of data" (RFC 959, section 4.1.3). A transfer in progress has been aborted, and has sent its reply, before
//! this is executed.
//!
//! Invariant: a prepared data connection is discarded.

use crate::ftp::conversation::Conversation;
use crate::ftp::reply::{CommandResult, Reply};
use crate::ftp::state::DataMode;

pub(super) fn execute(c: &mut Conversation<'_>) -> CommandResult {
    c.state.data_mode = DataMode::Unset;
    Ok(Reply::new(226, "Nothing is being transferred now."))
}
