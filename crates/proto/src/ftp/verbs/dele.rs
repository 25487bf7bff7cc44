//! DELE: "This command causes the file specified in the pathname to be deleted at the server site" (RFC
//! 959, section 4.1.3).
//!
//! Folders are not deleted. If there is no file, interrupted uploads of that path are discarded.

use plimsoll_operations::Error;
use plimsoll_store::Error as StoreError;

use super::stor::resolve_in_account;
use crate::ftp::conversation::Conversation;
use crate::ftp::reply::{CommandResult, Reply};

pub(super) async fn execute(c: &mut Conversation<'_>, path: &[u8]) -> CommandResult {
    let place = resolve_in_account(c, path)?;
    c.state.sized = None;
    let (operations, caller) = c.caller().await?;
    match operations.remove_file(&caller, &place).await {
        Ok(_) => Ok(Reply::new(250, "The file is deleted.")),
        // An interrupted upload, which SIZE reports. It uses quota, and FTP has no other command to discard
        // it.
        Err(Error::Store(StoreError::NotFound)) if operations.discard_pending(&caller, &place).await? => {
            Ok(Reply::new(250, "The interrupted upload is discarded."))
        }
        Err(error) => Err(error.into()),
    }
}
