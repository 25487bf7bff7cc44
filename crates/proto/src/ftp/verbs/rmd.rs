//! RMD: "This command causes the directory specified in the pathname to be removed as a directory" (RFC 959,
//! section 4.1.3). Only an empty folder is removed.

use super::stor::place_of;
use crate::ftp::answer::{Answer, Obeyed};
use crate::ftp::conversation::Conversation;

pub(super) async fn obey(c: &mut Conversation<'_>, path: &[u8]) -> Obeyed {
    let place = place_of(c, path)?;
    let (operations, caller) = c.caller().await?;
    operations.remove_folder(&caller, &place).await?;
    Ok(Answer::new(250, "The folder is removed."))
}
