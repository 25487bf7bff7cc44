//! RMD: "This command causes the directory specified in the pathname to be removed as a directory" (RFC 959,
//! section 4.1.3). Only an empty folder is removed.

use super::stor::resolve_in_account;
use crate::ftp::conversation::Conversation;
use crate::ftp::reply::{CommandResult, Reply};

pub(super) async fn execute(c: &mut Conversation<'_>, path: &[u8]) -> CommandResult {
    let place = resolve_in_account(c, path)?;
    let (operations, caller) = c.caller().await?;
    operations.remove_folder(&caller, &place).await?;
    Ok(Reply::new(250, "The folder is removed."))
}
