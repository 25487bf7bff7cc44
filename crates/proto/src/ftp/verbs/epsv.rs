//! EPSV: "The EPSV command requests that a server listen on a data port and wait for a connection" (RFC
//! 2428, section 3).
//!
//! Invariants: as for PASV. After EPSV ALL, no other command opens data connections.

use core::net::IpAddr;

use plimsoll_wire::ftp::address::{BadAddress, Epsv, epsv_text, parse_epsv};

use crate::ftp::connecting::local_address;
use crate::ftp::conversation::Conversation;
use crate::ftp::reply::{CommandResult, Reply};

pub(super) fn execute(c: &mut Conversation<'_>, argument: &[u8]) -> CommandResult {
    let is_v4 = matches!(local_address(&c.control.stream)?.ip(), IpAddr::V4(_));
    match parse_epsv(argument) {
        Ok(Epsv::All) => {
            c.state.only_epsv = true;
            return Ok(Reply::new(200, "From now on, data connections are opened by EPSV alone."));
        }
        Ok(Epsv::Same) => {}
        Ok(Epsv::V4) if is_v4 => {}
        Ok(Epsv::V6) if !is_v4 => {}
        Err(BadAddress::Form) => {
            return Err(Reply::new(501, "Say EPSV, EPSV 1, EPSV 2 or EPSV ALL."));
        }
        _ => return Err(super::eprt::other_protocol(is_v4)),
    }
    let port = super::pasv::listen(c)?;
    Ok(Reply::formatted(229, epsv_text(port)))
}
