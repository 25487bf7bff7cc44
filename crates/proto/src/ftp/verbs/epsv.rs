//! EPSV: "The EPSV command requests that a server listen on a data port and wait for a connection" (RFC
//! 2428, section 3).
//!
//! Invariants: as for PASV. After EPSV ALL, no other command opens data connections.

use core::net::IpAddr;

use plimsoll_wire::ftp::address::{BadAddress, Epsv, epsv_text, parse_epsv};

use crate::ftp::answer::{Answer, Obeyed};
use crate::ftp::connecting::local_at;
use crate::ftp::conversation::Conversation;

pub(super) fn obey(c: &mut Conversation<'_>, argument: &[u8]) -> Obeyed {
    let is_v4 = matches!(local_at(&c.control.stream)?.ip(), IpAddr::V4(_));
    match parse_epsv(argument) {
        Ok(Epsv::All) => {
            c.state.only_epsv = true;
            return Ok(Answer::new(200, "From now on, data connections are opened by EPSV alone."));
        }
        Ok(Epsv::Same) => {}
        Ok(Epsv::V4) if is_v4 => {}
        Ok(Epsv::V6) if !is_v4 => {}
        Err(BadAddress::Form) => return Err(Answer::new(501, "Say EPSV, EPSV 1, EPSV 2 or EPSV ALL.")),
        _ => return Err(super::eprt::other_protocol(is_v4)),
    }
    let port = super::pasv::listen(c)?;
    Ok(Answer::made(229, epsv_text(port)))
}
