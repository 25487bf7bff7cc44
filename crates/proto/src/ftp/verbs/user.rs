//! USER: "The argument field is a Telnet string identifying the user" (RFC 959, section 4.1.1).
//!
//! A client that may not send its password is refused here, before it sends it.
//!
//! Invariants: the client is not logged in until the password is verified. The reply does not reveal whether
//! the account exists.

use crate::ftp::conversation::Conversation;
use crate::ftp::encryption::AUTH_FIRST;
use crate::ftp::reply::{CommandResult, Reply};
use crate::ftp::state::Login;

pub(super) fn execute(c: &mut Conversation<'_>, name: &[u8]) -> CommandResult {
    if name.is_empty() {
        return Err(Reply::new(501, "Say USER and a name."));
    }
    if c.secure.is_none() && c.shared.settings.tls.as_ref().is_some_and(|tls| tls.is_required) {
        return Err(AUTH_FIRST);
    }
    c.state.reset();
    let is_guest = super::pass::is_guest(c, name);
    if let Some(operations) = c.shared.services.operations.as_ref().filter(|_| !is_guest) {
        operations.check_password_channel(&c.visitor())?;
    }
    c.state.login = Login::NameGiven(name.to_vec());
    if is_guest {
        return Ok(Reply::new(331, "Guests are welcome: send anything as the password."));
    }
    // The same reply for every name, so that it does not reveal which accounts exist.
    Ok(Reply::new(331, "Send the password."))
}
