//! NLST: "This command causes a directory listing to be sent from server to user site. [...] The data
//! returned [...] MUST contain only a simple list of legal pathnames, such that the server can use them
//! directly as the arguments of subsequent data transfer commands" (RFC 959, section 4.1.3; RFC 1123,
//! section 4.1.2.7).

use plimsoll_wire::ftp::flags::list_argument;

use crate::ftp::answer::Obeyed;
use crate::ftp::conversation::Conversation;
use crate::ftp::listing::{Asked, Form};

pub(super) async fn obey(c: &mut Conversation<'_>, argument: &[u8]) -> Obeyed {
    let (flags, path) = list_argument(argument);
    let asked = Asked { path, is_loose: true, is_itself: flags.itself, finds_hidden: flags.all };
    let listing = c.listing(asked, Form::Names { folder: Vec::new() }).await?;
    c.send_listing(listing).await
}
