//! RETR: "This command causes the server-DTP to transfer a copy of the file, specified in the pathname, to
//! the server- or user-DTP at the other end of the data connection" (RFC 959, section 4.1.3).
//!
//! The audit entry ends when the client has received the file ([`Delivery`]). Invariant: bytes that were not
//! sent are not reported as sent.

use std::cell::Cell;
use std::ops::Range;

use plimsoll_content::Source;
use plimsoll_operations::{AuditEntry, Operation};
use plimsoll_tls::Direction;

use crate::ftp::conversation::Conversation;
use crate::ftp::delivery::Delivery;
use crate::ftp::reply::{CommandResult, Reply};

pub(super) async fn execute(c: &mut Conversation<'_>, path: &[u8]) -> CommandResult {
    let rest = c.state.take_rest();
    let target = c.state.resolve(path)?;
    let (readable, audit) = c.authorise_read(&target, Operation::Download).await?;
    let (stat, source) = match c.open(&readable, rest).await {
        Ok(opened) => opened,
        Err(error) => {
            return Err(audit.end::<(), _>(Err(error)).err().map_or(super::NOT_IMPLEMENTED, Reply::from));
        }
    };
    if rest > stat.size {
        audit.failed("bad request");
        return Err(Reply::formatted(
            554,
            format!("The file has {} bytes: begin with a REST within.", stat.size),
        ));
    }
    send(c, source, rest..stat.size, audit).await
}

async fn send(
    c: &mut Conversation<'_>,
    source: Source,
    range: Range<u64>,
    mut audit: AuditEntry,
) -> CommandResult {
    let data_mode = match c.take_data_mode() {
        Ok(data_mode) => data_mode,
        Err(refused) => {
            audit.failed("no data connection");
            return Err(refused);
        }
    };
    let (is_image, bytes) = (c.state.is_image, range.end - range.start);
    if !is_image {
        audit.in_ascii();
    }
    c.control.send_reply(&Reply::formatted(150, format!("Sending {bytes} bytes.")));
    let (transferred, start) = (Cell::new(0), c.shared.io.now());
    let data_mode = (data_mode, Direction::Download);
    let sent = c.transfer_keeping(data_mode, &transferred, audit.permit(), async |data, context| {
        context.send_file(data, source, range, is_image).await
    });
    let sent = sent.await;
    audit.moved(transferred.get());
    match sent {
        Ok(((), data)) => {
            c.delivery = Delivery::of(&c.shared.io, data, audit, start);
            Ok(Reply::new(226, "All of it was sent."))
        }
        Err(stopped) => Err(stopped.end(audit)),
    }
}
