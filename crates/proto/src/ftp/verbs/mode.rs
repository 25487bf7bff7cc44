//! MODE: "The argument is a single Telnet character code specifying the data transfer modes" (RFC 959,
//! section 4.1.2).
//!
//! Invariant: an unsupported mode is refused and changes nothing.

use plimsoll_wire::ftp::options::parse_mode;

use crate::ftp::answer::{Answer, Obeyed};

pub(super) fn obey(argument: &[u8]) -> Obeyed {
    match parse_mode(argument) {
        Ok(()) => Ok(Answer::new(200, "Files go as a stream.")),
        Err(bad) => Err(Answer::new(bad.code(), "There is MODE S and no other.")),
    }
}
