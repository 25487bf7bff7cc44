//! MFMT: "the ability for a FTP Client to modify the last modification time" of a file
//! (draft-somers-ftp-mfxx-04), or of a folder.
//!
//! Invariant: only the modification time is changed.

use std::time::Duration;

use plimsoll_wire::ftp::options::parse_mfmt;
use plimsoll_wire::ftp::time::push_time;

use super::stor::place_of;
use crate::ftp::answer::{Answer, Obeyed};
use crate::ftp::conversation::Conversation;

pub(super) async fn obey(c: &mut Conversation<'_>, argument: &[u8]) -> Obeyed {
    let (modified, path) =
        parse_mfmt(argument).map_err(|_| Answer::new(501, "Say MFMT YYYYMMDDHHMMSS PATH, in UTC."))?;
    set(c, modified, path).await
}

/// Sets the modification time of the file or folder at `path`.
pub(super) async fn set(c: &mut Conversation<'_>, modified: Duration, path: &[u8]) -> Obeyed {
    let place = place_of(c, path)?;
    let (operations, caller) = c.caller().await?;
    operations.set_modified(&caller, &place, modified).await?;
    let mut text = b"Modify=".to_vec();
    push_time(&mut text, modified);
    text.extend_from_slice(b"; ");
    text.extend_from_slice(path);
    Ok(Answer::made(213, text))
}
