//! OPTS: "The OPTS (options) command allows a user-PI to specify the desired behavior of a server-FTP
//! process when another FTP command (the target command) is later issued" (RFC 2389, section 4).
//!
//! Invariant: an option that is not understood changes nothing.

use plimsoll_wire::ftp::options::{Opts, parse_opts};

use crate::ftp::conversation::Conversation;
use crate::ftp::reply::{CommandResult, Reply};

pub(super) fn execute(c: &mut Conversation<'_>, argument: &[u8]) -> CommandResult {
    let bad =
        |_| Reply::new(501, "OPTS takes UTF8 ON, MLST and facts, HASH and a name, STOR SIZE and bytes.");
    match parse_opts(argument).map_err(bad)? {
        Opts::Utf8(true) => Ok(Reply::new(200, "Names are UTF-8.")),
        Opts::Utf8(false) => Err(Reply::new(504, "Names are always UTF-8 here.")),
        Opts::Mlst(facts) => {
            c.state.facts = facts;
            Ok(Reply::formatted(200, facts.opts_text()))
        }
        Opts::Hash(chosen) => {
            c.state.digest = chosen.unwrap_or(c.state.digest);
            Ok(Reply::new(200, c.state.digest.name()))
        }
        Opts::Stor(announced) => {
            c.state.announcement.add(announced);
            Ok(Reply::new(200, "The next upload is stored only if it matches."))
        }
    }
}
