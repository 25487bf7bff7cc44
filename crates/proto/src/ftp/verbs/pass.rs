//! PASS: "The argument field is a Telnet string specifying the user's password" (RFC 959, section 4.1.1).
//!
//! Invariants: the reply does not reveal whether the name or the password was wrong. The connection ends
//! after [`LOGINS_MAX`] failed logins.

use plimsoll_auth::Secret;
use plimsoll_operations::{Caller, GUEST, Operation};

use crate::ftp::conversation::Conversation;
use crate::ftp::limits::LOGINS_MAX;
use crate::ftp::reply::{CommandResult, Reply};
use crate::ftp::state::Login;

pub(super) async fn execute(c: &mut Conversation<'_>, password: &[u8]) -> CommandResult {
    let Login::NameGiven(name) = &c.state.login else {
        return Err(Reply::new(503, "Say USER and a name first."));
    };
    let name = name.clone();
    c.state.login = Login::None;
    if is_guest(c, &name) {
        c.state.login = Login::Guest;
        c.shared.services.audit_log.begin(&c.visitor(), Operation::LogIn, GUEST, &"").done();
        return Ok(Reply::new(230, "Welcome. What is here can be looked at and downloaded."));
    }
    match log_in(c, &name, password).await {
        Ok(caller) => {
            let welcome = format!("Logged in as {}.", caller.identity.account.name);
            c.control.stream.slot().authenticate();
            c.state.login = Login::Account(Box::new(caller));
            Ok(Reply::formatted(230, welcome))
        }
        Err(refused) => {
            c.state.refused += 1;
            let is_last = c.state.refused >= LOGINS_MAX;
            Err(if is_last { refused.and_end() } else { refused })
        }
    }
}

async fn log_in(c: &Conversation<'_>, name: &[u8], password: &[u8]) -> Result<Caller, Reply> {
    const WRONG: Reply = Reply::new(530, "The name or the password is wrong.");
    let (operations, visitor) = (c.shared.services.operations.as_ref().ok_or(WRONG)?, c.visitor());
    let tried = String::from_utf8_lossy(name);
    let audit = c.shared.services.audit_log.begin(&visitor, Operation::LogIn, &tried, &"");
    let password = Secret::new(password.to_vec());
    let verified = operations.auth().by_password(&visitor.io, name, &password, &visitor.peer).await;
    Ok(Caller::new(visitor, audit.end(verified)?))
}

/// Whether `name` is the login name of guests.
pub(super) fn is_guest(c: &Conversation<'_>, name: &[u8]) -> bool {
    c.shared.settings.guests.is_some()
        && (name.eq_ignore_ascii_case(b"anonymous") || name.eq_ignore_ascii_case(b"ftp"))
}
