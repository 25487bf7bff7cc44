//! SIZE: "The FTP command, SIZE OF FILE (SIZE), is used to obtain the transfer size of a file from the
//! server-FTP process. [...] the exact number of octets [...] that would be transmitted over the data
//! connection should that file be transmitted. This value will change depending on the current STRUcture,
//! MODE, and TYPE" (RFC 3659, section 4).
//!
//! For TYPE A it is refused: the stored size would tell a client that its text has come
//! whole too early or never, and the exact one, which takes reading the file, would mislead those who never
//! said a type and go on to download with TYPE I.
//!
//! Where there is no file but an upload that was broken off, its size is where to go on with it.

use plimsoll_io::FileKind;
use plimsoll_operations::Error;
use plimsoll_store::Error as StoreError;

use crate::ftp::answer::{Answer, Obeyed};
use crate::ftp::conversation::Conversation;
use crate::ftp::place::Spot;

pub(super) async fn obey(c: &mut Conversation<'_>, path: &[u8]) -> Obeyed {
    if !c.state.is_image {
        return Err(Answer::new(550, "The size of a file as text is not known: say TYPE I first."));
    }
    let spot = c.state.spot(path)?;
    let readable = c.look(&spot).await?;
    match c.stat(readable).await {
        Ok(stat) if stat.kind == FileKind::File => Ok(Answer::made(213, stat.size.to_string())),
        Ok(_) => Err(Answer::new(550, "That is a folder, not a file.")),
        Err(error @ Error::Store(StoreError::NotFound)) => pending(c, spot, error.into()).await,
        Err(error) => Err(error.into()),
    }
}

/// The size of an upload that was broken off; else what was said of the file.
async fn pending(c: &mut Conversation<'_>, spot: Spot, said: Answer) -> Obeyed {
    let Spot::Place(place) = spot else { return Err(said) };
    let (operations, caller) = c.caller().await?;
    // Who may not upload has none.
    match operations.pending_size(&caller, &place).await {
        Ok(Some(bytes)) => Ok(Answer::made(213, bytes.to_string())),
        Ok(None) | Err(_) => Err(said),
    }
}
