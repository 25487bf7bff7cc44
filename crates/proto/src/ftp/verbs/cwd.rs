//! CWD: "This command allows the user to work with a different directory [...] without altering his login"
//! (RFC 959, section 4.1.1). CDUP is CWD to the folder above.
//!
//! Invariant: the current folder is always one that the client may list.

use plimsoll_io::FileKind;

use crate::ftp::conversation::Conversation;
use crate::ftp::path::{PathTarget, absolute, display};
use crate::ftp::reply::{CommandResult, Reply};

pub(super) async fn execute(c: &mut Conversation<'_>, path: &[u8]) -> CommandResult {
    let target = c.state.resolve(path)?;
    if target == PathTarget::Sharers {
        c.caller().await?;
    } else {
        let readable = c.authorise_lookup(&target).await?;
        if c.stat(&readable).await?.kind != FileKind::Folder {
            return Err(Reply::new(550, "That is a file, not a folder."));
        }
    }
    c.state.folder = absolute(&c.state.folder, path);
    let mut text = b"You are in ".to_vec();
    text.extend_from_slice(display(&c.state.folder));
    Ok(Reply::formatted(250, text))
}
