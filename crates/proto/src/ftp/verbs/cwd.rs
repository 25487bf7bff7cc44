//! CWD: "This command allows the user to work with a different directory [...] without altering his login"
//! (RFC 959, section 4.1.1). CDUP is CWD to the folder above.
//!
//! Invariant: the current folder is always one that the client may list.

use plimsoll_io::FileKind;

use crate::ftp::answer::{Answer, Obeyed};
use crate::ftp::conversation::Conversation;
use crate::ftp::place::{Spot, absolute, shown};

pub(super) async fn obey(c: &mut Conversation<'_>, path: &[u8]) -> Obeyed {
    let spot = c.state.spot(path)?;
    if spot == Spot::Owners {
        c.caller().await?;
    } else {
        let readable = c.look(&spot).await?;
        if c.stat(readable).await?.kind != FileKind::Folder {
            return Err(Answer::new(550, "That is a file, not a folder."));
        }
    }
    c.state.folder = absolute(&c.state.folder, path);
    let mut text = b"You are in ".to_vec();
    text.extend_from_slice(shown(&c.state.folder));
    Ok(Answer::made(250, text))
}
