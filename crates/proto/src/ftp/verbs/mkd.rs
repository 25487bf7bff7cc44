//! MKD: "This command causes the directory specified in the pathname to be created as a directory" (RFC 959,
//! section 4.1.3). The reply has the folder's path in quotes (appendix II).
//!
//! Missing parent folders are not created.

use plimsoll_wire::ftp::answer::quoted;

use super::stor::place_of;
use crate::ftp::answer::{Answer, Obeyed};
use crate::ftp::conversation::Conversation;
use crate::ftp::place::absolute;

pub(super) async fn obey(c: &mut Conversation<'_>, path: &[u8]) -> Obeyed {
    let place = place_of(c, path)?;
    let (operations, caller) = c.caller().await?;
    operations.make_folder(&caller, &place).await?;
    let mut text = quoted(&absolute(&c.state.folder, path));
    text.extend_from_slice(b" is made.");
    Ok(Answer::made(257, text))
}
