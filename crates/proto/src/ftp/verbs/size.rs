//! SIZE: "The FTP command, SIZE OF FILE (SIZE), is used to obtain the transfer size of a file from the
//! server-FTP process. [...] the exact number of octets [...] that would be transmitted over the data
//! connection should that file be transmitted. This value will change depending on the current STRUcture,
//! MODE, and TYPE" (RFC 3659, section 4).
//!
//! The reply is the size that TYPE I transfers, whatever the current type is, as in vsftpd and pure-ftpd:
//! clients send SIZE before they send TYPE I, and after a listing, for which they sent TYPE A. The size of
//! the text as transferred would require reading the file. A text transfer is never resumed by it: REST and
//! APPE refuse that.
//!
//! If there is no file but one interrupted upload of it, the size is the offset at which that resumes.
//! Invariant: if RETR sends anything, the reply is the number of bytes that it sends.

use plimsoll_io::FileKind;
use plimsoll_operations::Error;
use plimsoll_store::Error as StoreError;

use crate::ftp::conversation::Conversation;
use crate::ftp::path::PathTarget;
use crate::ftp::reply::{CommandResult, Reply};

pub(super) async fn execute(c: &mut Conversation<'_>, path: &[u8]) -> CommandResult {
    c.state.sized = None;
    let target = c.state.resolve(path)?;
    let readable = c.authorise_lookup(&target).await?;
    let size = match c.stat(&readable).await {
        Ok(stat) if stat.kind == FileKind::File => stat.size,
        Ok(_) => return Err(Reply::new(550, "That is a folder, not a file.")),
        Err(error @ Error::Store(StoreError::NotFound)) => pending(c, &target, error.into()).await?,
        Err(error) => return Err(error.into()),
    };
    if let PathTarget::Home(place) = target {
        c.state.sized = Some((place, size));
    }
    Ok(Reply::formatted(213, size.to_string()))
}

/// Returns the size of an interrupted upload; without one, the error `missing`.
async fn pending(c: &mut Conversation<'_>, target: &PathTarget, missing: Reply) -> Result<u64, Reply> {
    let PathTarget::Home(place) = target else { return Err(missing) };
    let (operations, caller) = c.caller().await?;
    // An account without the permission to upload has none.
    operations.pending_size(&caller, place).await.ok().flatten().ok_or(missing)
}
