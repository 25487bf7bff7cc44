//! PORT: "The argument is a HOST-PORT specification for the data port to be used in data connection" (RFC
//! 959, section 4.1.2).
//!
//! Invariant: the address is the client's own, and the port is not a privileged one.

use plimsoll_wire::ftp::address::parse_port;

use crate::ftp::connecting::check_active_address;
use crate::ftp::conversation::Conversation;
use crate::ftp::reply::{CommandResult, Reply};
use crate::ftp::state::DataMode;

pub(super) fn execute(c: &mut Conversation<'_>, argument: &[u8]) -> CommandResult {
    if c.state.only_epsv {
        return Err(Reply::new(501, "You said EPSV ALL."));
    }
    let at = parse_port(argument).map_err(|_| Reply::new(501, "Say PORT h1,h2,h3,h4,p1,p2."))?;
    check_active_address(at.into(), &c.peer)?;
    c.state.data_mode = DataMode::Active(at.into());
    Ok(Reply::new(200, "The next data connection is made there."))
}
