//! STAT: "This command shall cause a status response to be sent over the control connection in the form of
//! a reply." With a path, "the command is analogous to the "list" command except that data shall be
//! transferred over the control connection" (RFC 959, section 4.1.3).
//!
//! During a transfer, STAT without a path is answered at once, by the transfer. Invariant: the reply has a
//! bounded number of lines.

use plimsoll_wire::ftp::flags::list_argument;

use crate::ftp::answer::{Answer, Obeyed};
use crate::ftp::conversation::Conversation;
use crate::ftp::limits::STATUS_ENTRIES_MAX;
use crate::ftp::listing::Asked;
use crate::ftp::state::{Way, Who};

pub(super) async fn obey(c: &mut Conversation<'_>, argument: &[u8]) -> Obeyed {
    if argument.is_empty() {
        return Ok(Answer::lines(211, "How things stand:", status(c), "End"));
    }
    let (flags, path) = list_argument(argument);
    let form = c.long_form(path);
    let asked = Asked { path, is_loose: true, is_itself: flags.itself, finds_hidden: flags.all };
    let listing = c.listing(asked, form).await?;
    listing.record.done();
    let mut lines = listing.bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let first = lines.by_ref().take(STATUS_ENTRIES_MAX);
    let first = first.map(|line| line.strip_suffix(b"\r").unwrap_or(line).to_vec()).collect();
    let last = if lines.next().is_none() { "End" } else { "There is more: say MLSD or LIST for all of it." };
    Ok(Answer::lines(213, "What is there:", first, last))
}

fn status(c: &Conversation<'_>) -> Vec<Vec<u8>> {
    let who = match &c.state.who {
        Who::Person(caller) => format!("Logged in as {}", caller.identity.account.name),
        Who::Guest => "Logged in as a guest".to_owned(),
        Who::Nobody | Who::Named(_) => "Not logged in".to_owned(),
    };
    let kind = if c.state.is_image { "TYPE I" } else { "TYPE A N" };
    let way = match c.state.way {
        Way::Unset => "No data connection is prepared",
        Way::Passive(..) => "Waiting for a data connection",
        Way::Active(_) => "Ready to open a data connection",
    };
    let rest = match c.state.rest {
        0 => None,
        offset => Some(format!("The next transfer begins at byte {offset}")),
    };
    let lines = [
        format!("plimsoll, connected from {}", c.peer),
        who,
        format!("{kind}, STRU F, MODE S"),
        way.to_owned(),
    ];
    lines.into_iter().chain(rest).map(String::into_bytes).collect()
}
