//! HASH: "a new FTP command to be used by clients to request cryptographic hashes of files"
//! (draft-bryan-ftpext-hash-02): of all of a file, by the algorithm that OPTS HASH has chosen.
//!
//! It takes as long as reading the file; ABOR ends it, and so does the end of the control connection. What
//! must hold: an account has a bounded number of them under way.

use std::cell::Cell;

use plimsoll_store::Algorithm;
use plimsoll_wire::ftp::hash::Algorithm as Named;

use crate::ftp::answer::{Answer, Obeyed};
use crate::ftp::conversation::Conversation;
use crate::ftp::transfer::{Stopped, listen_during};

pub(super) async fn obey(c: &mut Conversation<'_>, path: &[u8]) -> Obeyed {
    let spot = c.state.spot(path)?;
    let readable = c.look(&spot).await?;
    let (file, stat) = c.open(readable).await?;
    let (operations, caller) = c.caller().await?;
    let operations = operations.clone();
    let named = c.state.digest;
    let making = async { operations.digest(&caller, file, algorithm(named)).await.map_err(Stopped::File) };
    let bytes_max = c.shared.limits().line_bytes_max;
    match listen_during(&mut c.control, bytes_max, &Cell::new(0), making).await {
        Ok(digest) => Ok(Answer::made(213, named.answer_text(stat.size, &digest, path))),
        Err(Stopped::File(error)) => Err(error.into()),
        Err(stopped) => Err(stopped.answer()),
    }
}

fn algorithm(named: Named) -> Algorithm {
    match named {
        Named::Sha256 => Algorithm::Sha256,
        Named::Sha1 => Algorithm::Sha1,
        Named::Md5 => Algorithm::Md5,
    }
}
