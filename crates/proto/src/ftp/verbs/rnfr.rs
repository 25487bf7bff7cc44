//! RNFR: "This command specifies the old pathname of the file which is to be renamed. This command must be
//! immediately followed by a "rename to" command" (RFC 959, section 4.1.3).

use super::stor::resolve_in_account;
use crate::ftp::conversation::Conversation;
use crate::ftp::reply::{CommandResult, Reply};

pub(super) async fn execute(c: &mut Conversation<'_>, path: &[u8]) -> CommandResult {
    let place = resolve_in_account(c, path)?;
    c.stat_of(path).await?;
    c.state.renaming = Some(place);
    Ok(Reply::new(350, "Now say RNTO and the new name."))
}
