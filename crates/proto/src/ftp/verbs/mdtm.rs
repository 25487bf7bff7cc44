//! MDTM: "The FTP command, MODIFICATION TIME (MDTM), can be used to determine when a file in the server NVFS
//! was last modified" (RFC 3659, section 3). Before MFMT existed, some clients passed a time too, to set it.
//! An argument is read that way only if no file has such a name.

use plimsoll_wire::ftp::options::parse_mfmt;
use plimsoll_wire::ftp::time::push_time;

use crate::ftp::conversation::Conversation;
use crate::ftp::reply::{CommandResult, Reply};

pub(super) async fn execute(c: &mut Conversation<'_>, path: &[u8]) -> CommandResult {
    match (c.stat_of(path).await, parse_mfmt(path)) {
        (Ok((stat, _)), _) => {
            let mut text = Vec::with_capacity(14);
            push_time(&mut text, stat.modified);
            Ok(Reply::formatted(213, text))
        }
        (Err(_), Ok((modified, path))) => super::mfmt::set(c, modified, path).await,
        (Err(refused), Err(_)) => Err(refused),
    }
}
