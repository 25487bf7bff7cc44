//! APPE: "If the file specified in the pathname exists at the server site, then the data shall be appended
//! to that file; otherwise the file specified in the pathname shall be created at the server site" (RFC
//! 959, section 4.1.3). Where an upload of that path was broken off, it goes on with that.
//!
//! What must hold: what SIZE tells is where it goes on; after REST "it MUST act identically to STOR" (RFC
//! 3659, section 5.3).

use plimsoll_store::Begin;

use super::stor::{place_of, upload};
use crate::ftp::answer::{Answer, Obeyed};
use crate::ftp::conversation::Conversation;

pub(super) async fn obey(c: &mut Conversation<'_>, path: &[u8]) -> Obeyed {
    let begin = match c.state.take_rest() {
        0 => Begin::End,
        offset => Begin::Offset(offset),
    };
    let place = place_of(c, path)?;
    upload(c, &place, begin, Answer::new(150, "Send what comes behind what is there.")).await
}
