//! MLSD: "MLSD [...] lists the contents of a directory if a directory is named, otherwise a 501 reply is
//! returned. In either case, if no object is named, the current directory is assumed" (RFC 3659, section
//! 7). A name is never a pattern here.

use crate::ftp::conversation::Conversation;
use crate::ftp::listing::{ListingFormat, ListingRequest};
use crate::ftp::reply::{CommandResult, Reply};
use plimsoll_io::FileKind;

pub(super) async fn execute(c: &mut Conversation<'_>, path: &[u8]) -> CommandResult {
    let (stat, _) = c.stat_of(path).await?;
    if stat.kind != FileKind::Folder {
        return Err(Reply::new(501, "That is a file: say MLST for what is known of it."));
    }
    let format = ListingFormat::Facts(c.state.facts);
    let request =
        ListingRequest { path, expands_patterns: false, lists_folder_itself: false, finds_hidden: true };
    let listing = c.listing(request, format).await?;
    c.send_listing(listing).await
}
