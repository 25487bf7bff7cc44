//! STOU: "This command behaves like STOR except that the resultant file is to be created in the current
//! directory under a name unique to that directory" (RFC 959, section 4.1.3). The name is in the first reply:
//! `150 FILE: name` (RFC 1123, section 4.1.2.9).
//!
//! Invariant: no existing file is replaced. The name is random, and drawn again if it exists.

use plimsoll_store::Begin;

use super::stor::{resolve_in_account, upload};
use crate::ftp::conversation::Conversation;
use crate::ftp::limits::NAME_LETTERS;
use crate::ftp::reply::{CommandResult, Reply};

pub(super) async fn execute(c: &mut Conversation<'_>, _: &[u8]) -> CommandResult {
    c.state.rest = 0;
    let mut name = draw(c);
    while c.stat_of(name.as_bytes()).await.is_ok() {
        name = draw(c);
    }
    let place = resolve_in_account(c, name.as_bytes())?;
    upload(c, &place, Begin::Start, Reply::formatted(150, format!("FILE: {name}"))).await
}

/// Returns an unpredictable name of letters.
fn draw(c: &Conversation<'_>) -> String {
    let mut bytes = [0; NAME_LETTERS];
    c.shared.io.entropy(&mut bytes);
    bytes.map(|byte| char::from(b'a' + byte % 26)).iter().collect()
}
