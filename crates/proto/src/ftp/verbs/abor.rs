//! ABOR: "This command tells the server to abort the previous FTP service command and any associated transfer
//! of data" (RFC 959, section 4.1.3). A transfer in progress has been aborted, and has sent its reply, before
//! this is executed.
//!
//! Invariant: a prepared data connection is discarded.

use crate::ftp::answer::{Answer, Obeyed};
use crate::ftp::conversation::Conversation;
use crate::ftp::state::Way;

pub(super) fn obey(c: &mut Conversation<'_>) -> Obeyed {
    c.state.way = Way::Unset;
    Ok(Answer::new(226, "Nothing is being transferred now."))
}
