//! MFMT: "the ability for a FTP Client to modify the last modification time" of a file
//! (draft-somers-ftp-mfxx-04), or of a folder.
//!
//! Invariants: only the modification time is changed. The reply has the time that the file got: the nearest
//! one that the server and its file system can store.

use std::time::Duration;

use plimsoll_wire::ftp::options::parse_mfmt;
use plimsoll_wire::ftp::time::push_time;

use super::stor::resolve_in_account;
use crate::ftp::conversation::Conversation;
use crate::ftp::reply::{CommandResult, Reply};

pub(super) async fn execute(c: &mut Conversation<'_>, argument: &[u8]) -> CommandResult {
    let (modified, path) =
        parse_mfmt(argument).map_err(|_| Reply::new(501, "Say MFMT YYYYMMDDHHMMSS PATH, in UTC."))?;
    set(c, modified, path).await
}

/// Sets the modification time of the file or folder at `path`.
pub(super) async fn set(c: &mut Conversation<'_>, modified: Duration, path: &[u8]) -> CommandResult {
    let place = resolve_in_account(c, path)?;
    let (operations, caller) = c.caller().await?;
    let modified = operations.set_modified(&caller, &place, modified).await?;
    let mut text = b"Modify=".to_vec();
    push_time(&mut text, modified);
    text.extend_from_slice(b"; ");
    text.extend_from_slice(path);
    Ok(Reply::formatted(213, text))
}
