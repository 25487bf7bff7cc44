//! EPRT: "The EPRT command allows for the specification of an extended address for the data connection"
//! (RFC 2428, section 2).
//!
//! Invariant: the address must be the client's own, as for PORT.

use plimsoll_wire::ftp::address::{BadAddress, parse_eprt};

use crate::ftp::answer::{Answer, Obeyed};
use crate::ftp::connecting::{check_active, local_at};
use crate::ftp::conversation::Conversation;
use crate::ftp::state::Way;

pub(super) fn obey(c: &mut Conversation<'_>, argument: &[u8]) -> Obeyed {
    if c.state.only_epsv {
        return Err(Answer::new(501, "You said EPSV ALL."));
    }
    let is_v4 = local_at(&c.control.stream)?.ip().is_ipv4();
    let at = parse_eprt(argument).map_err(|bad| match bad {
        BadAddress::Protocol => other_protocol(is_v4),
        BadAddress::Form => Answer::new(501, "Say EPRT |1|ADDRESS|PORT| or EPRT |2|ADDRESS|PORT|."),
    })?;
    if at.is_ipv4() != is_v4 {
        return Err(other_protocol(is_v4));
    }
    check_active(at, &c.peer)?;
    c.state.way = Way::Active(at);
    Ok(Answer::new(200, "The next data connection is made there."))
}

/// Returns the reply for another network protocol. Its text ends with the numbers of the supported protocols,
/// in parentheses (RFC 2428, section 2).
pub(super) fn other_protocol(is_v4: bool) -> Answer {
    let only = if is_v4 { "(1)" } else { "(2)" };
    Answer::made(522, format!("The control connection is of another protocol: use {only}"))
}
