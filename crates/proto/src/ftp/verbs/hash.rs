//! HASH: "a new FTP command to be used by clients to request cryptographic hashes of files"
//! (draft-bryan-ftpext-hash-02). It hashes the whole file, by the algorithm that OPTS HASH has chosen.
//!
//! It takes as long as reading the file. ABOR and the end of the control connection abort it. Invariant: the
//! number of hashes in progress is bounded for each account.

use std::cell::Cell;

use crate::ftp::announcement::algorithm;
use crate::ftp::conversation::Conversation;
use crate::ftp::reply::{CommandResult, Reply};
use crate::ftp::transfer::{TransferError, serve_control_during};

pub(super) async fn execute(c: &mut Conversation<'_>, path: &[u8]) -> CommandResult {
    let target = c.state.resolve(path)?;
    let readable = c.authorise_lookup(&target).await?;
    let (_, caller) = c.caller().await?;
    let (location, io) = (c.location_of_file(&readable).await?, caller.io().clone());
    let named = c.state.digest;
    let making = async {
        location.digest(&io, algorithm(named)).await.map_err(|error| TransferError::File(error.into()))
    };
    let bytes_max = c.shared.limits().line_bytes_max;
    match serve_control_during(&mut c.control, bytes_max, &Cell::new(0), making).await {
        Ok((stat, digest)) => {
            // The permission to read may have ended while the file was read.
            c.authorise_lookup(&target).await?;
            Ok(Reply::formatted(213, named.reply_text(stat.size, &digest, path)))
        }
        Err(TransferError::File(error)) => Err(error.into()),
        Err(stopped) => Err(stopped.reply()),
    }
}
