//! STAT: "This command shall cause a status response to be sent over the control connection in the form of
//! a reply." With a path, "the command is analogous to the "list" command except that data shall be
//! transferred over the control connection" (RFC 959, section 4.1.3).
//!
//! During a transfer, STAT without a path is answered at once, by the transfer. Invariant: the reply has a
//! bounded number of lines.

use plimsoll_wire::ftp::flags::list_argument;

use crate::ftp::conversation::Conversation;
use crate::ftp::limits::STATUS_ENTRIES_MAX;
use crate::ftp::listing::ListingRequest;
use crate::ftp::reply::{CommandResult, Reply};
use crate::ftp::state::{DataMode, Login};

pub(super) async fn execute(c: &mut Conversation<'_>, argument: &[u8]) -> CommandResult {
    if argument.is_empty() {
        return Ok(Reply::lines(211, "How things stand:", status(c), "End"));
    }
    let (flags, path) = list_argument(argument);
    let format = c.long_form(path);
    let request = ListingRequest {
        path,
        expands_patterns: true,
        lists_folder_itself: flags.itself,
        finds_hidden: flags.all,
    };
    let listing = c.listing(request, format).await?;
    listing.audit.done();
    let mut lines = listing.bytes.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    let first = lines.by_ref().take(STATUS_ENTRIES_MAX);
    let first = first.map(|line| line.strip_suffix(b"\r").unwrap_or(line).to_vec()).collect();
    let last = if lines.next().is_none() { "End" } else { "There is more: say MLSD or LIST for all of it." };
    Ok(Reply::lines(213, "What is there:", first, last))
}

fn status(c: &Conversation<'_>) -> Vec<Vec<u8>> {
    let login = match &c.state.login {
        Login::Account(caller) => format!("Logged in as {}", caller.identity.account.name),
        Login::Guest => "Logged in as a guest".to_owned(),
        Login::None | Login::NameGiven(_) => "Not logged in".to_owned(),
    };
    let kind = if c.state.is_image { "TYPE I" } else { "TYPE A N" };
    let data_mode = match c.state.data_mode {
        DataMode::Unset => "No data connection is prepared",
        DataMode::Passive(..) => "Waiting for a data connection",
        DataMode::Active(_) => "Ready to open a data connection",
    };
    let tls = match &c.secure {
        None => "In clear",
        Some(secure) if secure.is_data_private => "Encrypted by TLS, data connections too",
        Some(_) => "Encrypted by TLS, data connections in clear",
    };
    let rest = match c.state.rest {
        0 => None,
        offset => Some(format!("The next transfer begins at byte {offset}")),
    };
    let lines = [
        format!("plimsoll, connected from {}", c.peer),
        login,
        format!("{kind}, STRU F, MODE S"),
        tls.to_owned(),
        data_mode.to_owned(),
    ];
    lines.into_iter().chain(rest).map(String::into_bytes).collect()
}
