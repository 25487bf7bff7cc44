//! USER: "The argument field is a Telnet string identifying the user" (RFC 959, section 4.1.1).
//!
//! What must hold: who says a name is nobody until the password is there; whether there is such an account
//! is not told.

use crate::ftp::answer::{Answer, Obeyed};
use crate::ftp::conversation::Conversation;
use crate::ftp::state::Who;

pub(super) fn obey(c: &mut Conversation<'_>, name: &[u8]) -> Obeyed {
    if name.is_empty() {
        return Err(Answer::new(501, "Say USER and a name."));
    }
    c.state.reset();
    c.state.who = Who::Named(name.to_vec());
    if super::pass::is_guest(c, name) {
        return Ok(Answer::new(331, "Guests are welcome: send anything as the password."));
    }
    // Whether there is such an account is nobody's to know.
    Ok(Answer::new(331, "Send the password."))
}
