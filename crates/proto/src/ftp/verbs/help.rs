//! HELP: "This command shall cause the server to send helpful information regarding its implementation
//! status over the control connection to the user" (RFC 959, section 4.1.3).
//!
//! It does not explain the commands: the reply to a rejected command does.

use plimsoll_wire::ftp::command::Verb;

use crate::ftp::reply::{CommandResult, Reply};

const VERBS_PER_LINE: usize = 8;

pub(super) fn execute() -> CommandResult {
    let line = |verbs: &[Verb]| verbs.iter().map(|verb| format!("{:<5}", verb.name())).collect::<String>();
    let lines = Verb::ALL.chunks(VERBS_PER_LINE).map(|verbs| line(verbs).trim_end().as_bytes().to_vec());
    Ok(Reply::lines(214, "The commands are:", lines.collect(), "FEAT tells what is beyond RFC 959."))
}
