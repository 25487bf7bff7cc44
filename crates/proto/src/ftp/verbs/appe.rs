//! APPE: "If the file specified in the pathname exists at the server site, then the data shall be appended to
//! that file; otherwise the file specified in the pathname shall be created at the server site" (RFC 959,
//! section 4.1.3). After SIZE, the data is appended to the object that had that size: the file or, if there
//! is no file, the interrupted upload of that path.
//!
//! Invariants: data is never appended to an object of another size than SIZE reported in this session. After
//! REST, "it MUST act identically to STOR" (RFC 3659, section 5.3).

use plimsoll_store::Begin;

use super::stor::{resolve_in_account, resumed, upload};
use crate::ftp::conversation::Conversation;
use crate::ftp::reply::{CommandResult, Reply};

pub(super) async fn execute(c: &mut Conversation<'_>, path: &[u8]) -> CommandResult {
    let (offset, place) = (c.state.take_rest(), resolve_in_account(c, path)?);
    let begin = match c.state.size_of(&place) {
        _ if offset > 0 => resumed(c, &place, offset),
        Some(size) => Begin::EndAt(size),
        None => Begin::End,
    };
    upload(c, &place, begin, Reply::new(150, "Send what comes behind what is there.")).await
}
