//! STOR: "This command causes the server-DTP to accept the data transferred via the data connection and to
//! store the data as a file at the server site" (RFC 959, section 4.1.3).
//!
//! An upload is not visible until it is complete; then it replaces the existing file atomically. The received
//! bytes of an interrupted upload are kept for its owner, who resumes it by REST and STOR or by APPE.

use std::cell::Cell;
use std::pin::pin;

use plimsoll_io::EndProbe;
use plimsoll_operations::{Error, HomePath, IncomingUpload};
use plimsoll_store::{Algorithm, Begin, Error as StoreError};
use plimsoll_tls::Direction;
use plimsoll_wire::ftp::ascii::FromNetwork;

use crate::ftp::announcement::{Announcement, Completeness};
use crate::ftp::confirming::Unconfirmed;
use crate::ftp::conversation::Conversation;
use crate::ftp::path::PathTarget;
use crate::ftp::reply::{CommandResult, Reply};
use crate::ftp::state::DataMode;
use crate::ftp::transfer::{TransferError, serve_control_during};

pub(super) async fn execute(c: &mut Conversation<'_>, path: &[u8]) -> CommandResult {
    let (offset, place) = (c.state.take_rest(), resolve_in_account(c, path)?);
    let begin = if offset > 0 { resumed(c, &place, offset) } else { Begin::Start };
    upload(c, &place, begin, Reply::new(150, "Send it.")).await
}

/// Returns the start of an upload that resumes at `offset`. A client that resumes at the size that SIZE
/// reported means the object that had that size.
pub(super) fn resumed(c: &Conversation<'_>, place: &HomePath, offset: u64) -> Begin {
    if c.state.size_of(place) == Some(offset) { Begin::EndAt(offset) } else { Begin::Offset(offset) }
}

/// Resolves the path of a file or folder that is to be changed.
pub(super) fn resolve_in_account(c: &Conversation<'_>, path: &[u8]) -> Result<HomePath, Reply> {
    match c.state.resolve(path)? {
        PathTarget::Home(place) => Ok(place),
        PathTarget::Sharers => {
            Err(Reply::new(553, "/shared itself cannot be changed. Name a path in it: /shared/OWNER/PATH."))
        }
        PathTarget::Site(_) => Err(Reply::new(550, "Guests can look and download, and nothing else.")),
    }
}

/// Receives a file and stores it.
pub(super) async fn upload(
    c: &mut Conversation<'_>,
    place: &HomePath,
    begin: Begin,
    ready: Reply,
) -> CommandResult {
    let data_mode = c.take_data_mode()?;
    if !c.state.is_image && matches!(begin, Begin::Offset(1..) | Begin::EndAt(1..)) {
        // A text has another size on the network than on disk, so the client's offset is not the length of
        // the stored text.
        return Err(Reply::new(504, "A text cannot be resumed: say TYPE I first."));
    }
    let announcement = std::mem::take(&mut c.state.announcement);
    let mut upload = start(c, place, begin).await?;
    c.state.sized = None;
    let text = (!c.state.is_image).then(FromNetwork::default);
    // The size of a text on the network is not that of the file.
    let announcement = if text.is_none() { announcement } else { Announcement::default() };
    if text.is_some() {
        upload.in_ascii();
    }
    c.control.send_reply(&ready);
    c.control.end_aborts = c.shared.settings.unconfirmed == Unconfirmed::Abort;
    let received = receive(c, data_mode, upload, text, announcement).await;
    c.control.end_aborts = true;
    received
}

/// Starts an upload. Commands are received meanwhile: the start of a large file may have to be copied first.
async fn start(c: &mut Conversation<'_>, place: &HomePath, begin: Begin) -> Result<IncomingUpload, Reply> {
    let (operations, caller) = c.caller().await?;
    let (operations, bytes_max) = (operations.clone(), c.shared.limits().line_bytes_max);
    let beginning =
        async { operations.upload_from(&caller, place, begin).await.map_err(TransferError::File) };
    let started = serve_control_during(&mut c.control, bytes_max, &Cell::new(0), beginning).await;
    started.map_err(|stopped| match stopped {
        TransferError::File(error) => error.into(),
        stopped => stopped.reply(),
    })
}

/// Receives an upload to its end, and commits it if the client has sent all of it.
async fn receive(
    c: &mut Conversation<'_>,
    data_mode: DataMode,
    mut upload: IncomingUpload,
    text: Option<FromNetwork>,
    announcement: Announcement,
) -> CommandResult {
    let transferred = Cell::new(0);
    let received = c
        .transfer((data_mode, Direction::Upload), &transferred, None, async |data, context| {
            context.receive(data, &mut upload, text).await
        })
        .await;
    let (whole, sent) = (upload.bytes(), transferred.get());
    let received = match received {
        // The cut was behind the last byte.
        Err(TransferError::Cut) if announcement.is_size_reached(whole, sent) => Ok(()),
        received => received,
    };
    let confirmed = match received {
        Ok(()) => match announcement.completeness(whole, sent) {
            Completeness::Wrong(size) => Err(TransferError::WrongSize(size)),
            completeness => c.confirm(&mut upload, completeness).await,
        },
        Err(stopped) => Err(stopped),
    };
    match confirmed {
        Ok(client) => commit_upload(c, upload, announcement.into_digests(), client).await,
        Err(TransferError::File(error)) => Err(upload.fail(error).into()),
        Err(stopped) => Err(abort_upload(upload, &stopped).await),
    }
}

/// Commits the upload, unless the client aborts it before the rename.
async fn commit_upload(
    c: &mut Conversation<'_>,
    mut upload: IncomingUpload,
    digests: Vec<(Algorithm, Vec<u8>)>,
    client: Option<EndProbe>,
) -> CommandResult {
    let (bytes, cancel) = (upload.bytes(), upload.cancel_handle(client));
    let transferred = Cell::new(bytes - upload.start_offset());
    let mut commit = pin!(upload.commit_whole(digests));
    let (committing, bytes_max) = (async { Ok(commit.as_mut().await) }, c.shared.limits().line_bytes_max);
    let input = serve_control_during(&mut c.control, bytes_max, &transferred, committing).await;
    let committed = match input {
        Ok(committed) => committed,
        Err(stopped) => {
            cancel.cancel();
            match commit.await {
                Err(Error::Store(StoreError::Cancelled)) => return Err(stopped.reply()),
                committed => committed,
            }
        }
    };
    match committed {
        // The control connection has ended, and the session with it.
        Err(Error::Store(StoreError::Cancelled)) => Err(TransferError::ControlClosed.reply()),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(Reply::formatted(226, format!("The file is stored and has {bytes} bytes."))),
    }
}

/// Aborts the upload. The received bytes stay in staging for its owner to resume. They are on disk before the
/// reply is sent, so that a later SIZE reports all of them.
async fn abort_upload(upload: IncomingUpload, stopped: &TransferError) -> Reply {
    upload.abort().await;
    stopped.reply()
}
