//! EPRT: "The EPRT command allows for the specification of an extended address for the data connection"
//! (RFC 2428, section 2).
//!
//! Invariant: the address must be the client's own, as for PORT.

use plimsoll_wire::ftp::address::{BadAddress, parse_eprt};

use crate::ftp::connecting::{check_active_address, local_address};
use crate::ftp::conversation::Conversation;
use crate::ftp::reply::{CommandResult, Reply};
use crate::ftp::state::DataMode;

pub(super) fn execute(c: &mut Conversation<'_>, argument: &[u8]) -> CommandResult {
    if c.state.only_epsv {
        return Err(Reply::new(501, "You said EPSV ALL."));
    }
    let is_v4 = local_address(&c.control.stream)?.ip().is_ipv4();
    let at = parse_eprt(argument).map_err(|bad| match bad {
        BadAddress::Protocol => other_protocol(is_v4),
        BadAddress::Form => Reply::new(501, "Say EPRT |1|ADDRESS|PORT| or EPRT |2|ADDRESS|PORT|."),
    })?;
    if at.is_ipv4() != is_v4 {
        return Err(other_protocol(is_v4));
    }
    check_active_address(at, &c.peer)?;
    c.state.data_mode = DataMode::Active(at);
    Ok(Reply::new(200, "The next data connection is made there."))
}

/// Returns the reply for another network protocol. Its text ends with the numbers of the supported protocols,
/// in parentheses (RFC 2428, section 2).
pub(super) fn other_protocol(is_v4: bool) -> Reply {
    let only = if is_v4 { "(1)" } else { "(2)" };
    Reply::formatted(522, format!("The control connection is of another protocol: use {only}"))
}
