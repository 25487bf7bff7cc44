//! MLSD: "MLSD [...] lists the contents of a directory if a directory is named, otherwise a 501 reply is
//! returned. In either case, if no object is named, the current directory is assumed" (RFC 3659, section
//! 7). A name is never a pattern here.

use crate::ftp::answer::{Answer, Obeyed};
use crate::ftp::conversation::Conversation;
use crate::ftp::listing::{Asked, Form};
use plimsoll_io::FileKind;

pub(super) async fn obey(c: &mut Conversation<'_>, path: &[u8]) -> Obeyed {
    let (stat, _) = c.stat_of(path).await?;
    if stat.kind != FileKind::Folder {
        return Err(Answer::new(501, "That is a file: say MLST for what is known of it."));
    }
    let form = Form::Facts(c.state.facts);
    let asked = Asked { path, is_loose: false, is_itself: false, finds_hidden: true };
    let listing = c.listing(asked, form).await?;
    c.send_listing(listing).await
}
