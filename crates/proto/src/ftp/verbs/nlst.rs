//! NLST: "This command causes a directory listing to be sent from server to user site. [...] The data
//! returned [...] MUST contain only a simple list of legal pathnames, such that the server can use them
//! directly as the arguments of subsequent data transfer commands" (RFC 959, section 4.1.3; RFC 1123,
//! section 4.1.2.7).

use plimsoll_wire::ftp::flags::list_argument;

use crate::ftp::conversation::Conversation;
use crate::ftp::listing::{ListingFormat, ListingRequest};
use crate::ftp::reply::CommandResult;

pub(super) async fn execute(c: &mut Conversation<'_>, argument: &[u8]) -> CommandResult {
    let (flags, path) = list_argument(argument);
    let request = ListingRequest {
        path,
        expands_patterns: true,
        lists_folder_itself: flags.itself,
        finds_hidden: flags.all,
    };
    let listing = c.listing(request, ListingFormat::Names { folder: Vec::new() }).await?;
    c.send_listing(listing).await
}
