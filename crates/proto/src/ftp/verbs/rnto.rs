//! RNTO: "This command specifies the new pathname of the file specified in the immediately preceding
//! "rename from" command" (RFC 959, section 4.1.3).
//!
//! A file replaces an existing file atomically, as rename(2) does. A folder is never replaced. A path that
//! did not exist when it was checked is not replaced if it appears meanwhile.

use plimsoll_io::{Existing, FileKind};

use super::stor::place_of;
use crate::ftp::answer::{Answer, Obeyed};
use crate::ftp::conversation::Conversation;
use crate::ftp::place::Spot;

pub(super) async fn obey(c: &mut Conversation<'_>, path: &[u8]) -> Obeyed {
    let from =
        c.state.renaming.take().ok_or(Answer::new(503, "Say RNFR and what is to be renamed first."))?;
    let to = place_of(c, path)?;
    if from == to {
        return Ok(RENAMED);
    }
    let there = c.stat_of(path).await.ok().map(|(stat, _)| stat.kind);
    let existing = match there {
        None => Existing::Kept,
        Some(FileKind::Folder) => return Err(Answer::new(550, "There is a folder of that name.")),
        Some(_) => {
            let readable = c.look(&Spot::Place(from.clone())).await?;
            if c.stat(readable).await?.kind == FileKind::Folder {
                return Err(Answer::new(550, "There is a file of that name; a folder does not replace it."));
            }
            Existing::Replaced
        }
    };
    c.state.sized = None;
    let (operations, caller) = c.caller().await?;
    operations.rename(&caller, &from, &to, existing).await?;
    Ok(RENAMED)
}

const RENAMED: Answer = Answer::new(250, "Renamed.");
