//! LIST: "This command causes a list to be sent from the server to the passive DTP. If the pathname
//! specifies a directory [...], the server should transfer a list of files in the specified directory. If
//! the pathname specifies a file then the server should send current information on the file" (RFC 959,
//! section 4.1.3).
//!
//! Names that begin with a dot are listed even without `-a`: otherwise a client that mirrors would miss them.

use plimsoll_wire::ftp::flags::list_argument;

use crate::ftp::conversation::Conversation;
use crate::ftp::listing::ListingRequest;
use crate::ftp::reply::CommandResult;

pub(super) async fn execute(c: &mut Conversation<'_>, argument: &[u8]) -> CommandResult {
    let (flags, path) = list_argument(argument);
    let format = c.long_form(path);
    let request = ListingRequest {
        path,
        expands_patterns: true,
        lists_folder_itself: flags.itself,
        finds_hidden: flags.all,
    };
    let listing = c.listing(request, format).await?;
    c.send_listing(listing).await
}
