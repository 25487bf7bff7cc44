//! STRU: "The argument is a single Telnet character code specifying file structure" (RFC 959, section
//! 4.1.2).
//!
//! Invariant: an unsupported structure is refused and changes nothing.

use plimsoll_wire::ftp::options::parse_structure;

use crate::ftp::answer::{Answer, Obeyed};

pub(super) fn obey(argument: &[u8]) -> Obeyed {
    match parse_structure(argument) {
        Ok(()) => Ok(Answer::new(200, "Files are bytes without records.")),
        Err(bad) => Err(Answer::new(bad.code(), "There is STRU F and no other.")),
    }
}
