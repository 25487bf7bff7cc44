//! AUTH, PBSZ and PROT: "The argument field is a Telnet string identifying a supported mechanism" (RFC 2228,
//! section 3). No mechanism is supported yet.

use crate::ftp::answer::{Answer, Obeyed};

pub(super) fn obey() -> Obeyed {
    Err(Answer::new(502, "This server has no TLS over FTP."))
}
