//! RNTO: "This command specifies the new pathname of the file specified in the immediately preceding
//! "rename from" command" (RFC 959, section 4.1.3).
//!
//! A file replaces an existing file atomically, as rename(2) does. A folder is never replaced. A path that
//! did not exist when it was checked is not replaced if it appears meanwhile.

use plimsoll_io::{Existing, FileKind};

use super::stor::resolve_in_account;
use crate::ftp::conversation::Conversation;
use crate::ftp::path::PathTarget;
use crate::ftp::reply::{CommandResult, Reply};

pub(super) async fn execute(c: &mut Conversation<'_>, path: &[u8]) -> CommandResult {
    let from = c.state.renaming.take().ok_or(Reply::new(503, "Say RNFR and what is to be renamed first."))?;
    let to = resolve_in_account(c, path)?;
    if from == to {
        return Ok(RENAMED);
    }
    let there = c.stat_of(path).await.ok().map(|(stat, _)| stat.kind);
    let existing = match there {
        None => Existing::Kept,
        Some(FileKind::Folder) => return Err(Reply::new(550, "There is a folder of that name.")),
        Some(_) => {
            let readable = c.authorise_lookup(&PathTarget::Home(from.clone())).await?;
            if c.stat(&readable).await?.kind == FileKind::Folder {
                return Err(Reply::new(550, "There is a file of that name; a folder does not replace it."));
            }
            Existing::Replaced
        }
    };
    c.state.sized = None;
    let (operations, caller) = c.caller().await?;
    operations.rename(&caller, &from, &to, existing).await?;
    Ok(RENAMED)
}

const RENAMED: Reply = Reply::new(250, "Renamed.");
