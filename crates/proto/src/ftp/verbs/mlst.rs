//! MLST: "MLST provides data about exactly the object named on its command line, and no others. [...] if no
//! object is named, the current directory is assumed" (RFC 3659, section 7). It goes over the control
//! connection.

use plimsoll_wire::ftp::facts::mlst_line;

use crate::ftp::conversation::Conversation;
use crate::ftp::listing::wire_entry;
use crate::ftp::path::{absolute, display};
use crate::ftp::reply::{CommandResult, Reply};

pub(super) async fn execute(c: &mut Conversation<'_>, path: &[u8]) -> CommandResult {
    let (stat, rights) = c.stat_of(path).await?;
    let whole = absolute(&c.state.folder, path);
    let line = mlst_line(&wire_entry(display(&whole), &stat, rights), c.state.facts);
    Ok(Reply::lines(250, "What is known of it:", vec![line], "End"))
}
