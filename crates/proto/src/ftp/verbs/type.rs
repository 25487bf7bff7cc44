//! TYPE: "The argument specifies the representation type" (RFC 959, section 4.1.2): text or image.
//!
//! Invariant: an unsupported type is refused and changes nothing.

use plimsoll_wire::ftp::options::{Type, parse_type};

use crate::ftp::conversation::Conversation;
use crate::ftp::reply::{CommandResult, Reply};

pub(super) fn execute(c: &mut Conversation<'_>, argument: &[u8]) -> CommandResult {
    match parse_type(argument) {
        Ok(Type::Ascii) => {
            c.state.is_image = false;
            Ok(Reply::new(200, "Files go as text, with CR LF at the end of lines."))
        }
        Ok(Type::Image) => {
            c.state.is_image = true;
            Ok(Reply::new(200, "Files go as they are."))
        }
        Err(bad) => Err(Reply::new(bad.code(), "There are TYPE I (as it is) and TYPE A (text).")),
    }
}
