//! MKD: "This command causes the directory specified in the pathname to be created as a directory" (RFC 959,
//! section 4.1.3). The reply has the folder's path in quotes (appendix II).
//!
//! Missing parent folders are created if the account is permitted that.

use plimsoll_operations::Parents;
use plimsoll_wire::ftp::reply::quoted;

use super::stor::resolve_in_account;
use crate::ftp::conversation::Conversation;
use crate::ftp::path::absolute;
use crate::ftp::reply::{CommandResult, Reply};

pub(super) async fn execute(c: &mut Conversation<'_>, path: &[u8]) -> CommandResult {
    let place = resolve_in_account(c, path)?;
    let (operations, caller) = c.caller().await?;
    operations.make_folder(&caller, &place, Parents::AsPermitted).await?;
    let mut text = quoted(&absolute(&c.state.folder, path));
    text.extend_from_slice(b" is made.");
    Ok(Reply::formatted(257, text))
}
