//! LIST: "This command causes a list to be sent from the server to the passive DTP. If the pathname
//! specifies a directory [...], the server should transfer a list of files in the specified directory. If
//! the pathname specifies a file then the server should send current information on the file" (RFC 959,
//! section 4.1.3).
//!
//! Names that begin with a dot are listed even without `-a`: otherwise a client that mirrors would miss them.

use plimsoll_wire::ftp::flags::list_argument;

use crate::ftp::answer::Obeyed;
use crate::ftp::conversation::Conversation;
use crate::ftp::listing::Asked;

pub(super) async fn obey(c: &mut Conversation<'_>, argument: &[u8]) -> Obeyed {
    let (flags, path) = list_argument(argument);
    let form = c.long_form(path);
    let asked = Asked { path, is_loose: true, is_itself: flags.itself, finds_hidden: flags.all };
    let listing = c.listing(asked, form).await?;
    c.send_listing(listing).await
}
