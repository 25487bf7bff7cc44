//! PORT: "The argument is a HOST-PORT specification for the data port to be used in data connection" (RFC
//! 959, section 4.1.2).
//!
//! Invariant: the address is the client's own, and the port is not a privileged one.

use plimsoll_wire::ftp::address::parse_port;

use crate::ftp::answer::{Answer, Obeyed};
use crate::ftp::connecting::check_active;
use crate::ftp::conversation::Conversation;
use crate::ftp::state::Way;

pub(super) fn obey(c: &mut Conversation<'_>, argument: &[u8]) -> Obeyed {
    if c.state.only_epsv {
        return Err(Answer::new(501, "You said EPSV ALL."));
    }
    let at = parse_port(argument).map_err(|_| Answer::new(501, "Say PORT h1,h2,h3,h4,p1,p2."))?;
    check_active(at.into(), &c.peer)?;
    c.state.way = Way::Active(at.into());
    Ok(Answer::new(200, "The next data connection is made there."))
}
