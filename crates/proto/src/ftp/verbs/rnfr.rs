//! RNFR: "This command specifies the old pathname of the file which is to be renamed. This command must be
//! immediately followed by a "rename to" command" (RFC 959, section 4.1.3).

use super::stor::place_of;
use crate::ftp::answer::{Answer, Obeyed};
use crate::ftp::conversation::Conversation;

pub(super) async fn obey(c: &mut Conversation<'_>, path: &[u8]) -> Obeyed {
    let place = place_of(c, path)?;
    c.stat_of(path).await?;
    c.state.renaming = Some(place);
    Ok(Answer::new(350, "Now say RNTO and the new name."))
}
