//! Transfers over a data connection, while the control connection is served.
//!
//! This module opens no files. Invariants: memory stays bounded however slowly the client sends or receives.
//! ABOR, and the end of the control connection, abort a transfer at once. STAT is answered during a transfer.

use std::cell::Cell;
use std::io;
use std::ops::Range;
use std::pin::pin;
use std::rc::Rc;

use plimsoll_content::Source;
use plimsoll_io::{Deadline, Either, Io, Lease, Rx, Segment, Slot, Stream, Want, select};
use plimsoll_operations::{AuditEntry, IncomingUpload, Permit, ReceiveError};
use plimsoll_store::{ReceivePipe, ReceivedBytes};
use plimsoll_tls::{Direction, HandshakeError};
use plimsoll_wire::ftp::ascii::{FromNetwork, ToNetwork};
use plimsoll_wire::ftp::command::{Verb, parse};

use super::control::{Control, ControlInput};
use super::conversation::Conversation;
use super::encryption::{end_refused, reply_to};
use super::limits::{Limits, UPLOAD_RECEIVE_BYTES};
use super::reply::Reply;
use super::state::DataMode;
use crate::body_sender::{BodySender, SendError, drain, while_permitted};
use crate::upload_pipe::{PipedReceive, receive_piped};

/// The reason why a transfer was aborted.
#[derive(Debug)]
pub(super) enum TransferError {
    /// The client sent ABOR.
    Aborted,
    /// The control connection has ended.
    ControlClosed,
    /// No data connection was established.
    NoDataConnection(io::Error),
    /// The TLS handshake of the data connection failed.
    NotEncrypted(HandshakeError),
    /// The data connection did not resume the TLS session of the control connection.
    NotResumed,
    /// The data connection broke.
    Broken(io::Error),
    /// The encrypted data connection ended without TLS's own end, so it may have been cut.
    Cut,
    /// The upload exceeds the limit on a file's size.
    TooLarge,
    /// The upload is not of the size that the client announced, this.
    WrongSize(u64),
    /// The file could not be written, or read.
    File(plimsoll_operations::Error),
}

/// The context of a transfer.
pub(super) struct TransferContext<'a> {
    pub(super) io: &'a Io,
    pub(super) limits: &'a Limits,
    deadline: Deadline,
    /// Bytes of the file that were transferred.
    transferred: &'a Cell<u64>,
    /// The slot of the control connection: a transfer that makes progress keeps it.
    slot: Rc<dyn Slot>,
}

impl Conversation<'_> {
    /// Opens the data connection and runs `work` over it. Commands received meanwhile are queued, except
    /// those about the transfer. `transferred` counts the file's bytes. The transfer ends when the right of
    /// `permit` does; an upload checks its own.
    pub(super) async fn transfer<T>(
        &mut self,
        data_mode: (DataMode, Direction),
        transferred: &Cell<u64>,
        permit: Option<&mut Permit>,
        work: impl AsyncFnOnce(&mut Stream, &TransferContext<'_>) -> Result<T, TransferError>,
    ) -> Result<T, TransferError> {
        Ok(self.transfer_keeping(data_mode, transferred, permit, work).await?.0)
    }

    /// As [`Conversation::transfer`], and returns the data connection too.
    pub(super) async fn transfer_keeping<T>(
        &mut self,
        (data_mode, direction): (DataMode, Direction),
        transferred: &Cell<u64>,
        permit: Option<&mut Permit>,
        work: impl AsyncFnOnce(&mut Stream, &TransferContext<'_>) -> Result<T, TransferError>,
    ) -> Result<(T, Stream), TransferError> {
        let (shared, peer) = (self.shared, &self.peer);
        let (io, limits) = (&shared.io, shared.limits());
        let slot = Rc::clone(self.control.stream.slot());
        let context = TransferContext { io, limits, deadline: io.deadline(), transferred, slot };
        let secure = self.secure.as_deref_mut().filter(|secure| secure.is_data_private);
        let working = async {
            context.deadline.after(limits.connect_time);
            let mut data =
                data_mode.open(io, peer, &context.deadline).await.map_err(TransferError::NoDataConnection)?;
            if let Some(secure) = secure {
                // Boxed: plain data connections need no memory for it.
                let encrypting = Box::pin(secure.encrypt(shared, &mut data, direction));
                let late = |_| Err(TransferError::NotEncrypted(HandshakeError::Late));
                if !context.deadline.within(encrypting).await.unwrap_or_else(late)? {
                    end_refused(io, limits, &mut data, direction).await;
                    return Err(TransferError::NotResumed);
                }
            }
            if let Some(barrier) = &shared.services.start_barrier {
                barrier.wait(io).await;
            }
            Ok((work(&mut data, &context).await?, data))
        };
        let working = while_permitted(permit, working);
        serve_control_during(&mut self.control, limits.line_bytes_max, transferred, working).await
    }
}

/// Runs `work` and serves the control connection meanwhile. Input that arrives first is handled first.
pub(super) async fn serve_control_during<T>(
    control: &mut Control,
    bytes_max: usize,
    transferred: &Cell<u64>,
    work: impl Future<Output = Result<T, TransferError>>,
) -> Result<T, TransferError> {
    let mut work = pin!(work);
    loop {
        // Also for input that was queued during an earlier transfer.
        if let Some(stopped) = abort_reason(control) {
            return Err(stopped);
        }
        if control.has_ended() {
            // With `ftp_unconfirmed = keep`, the transfer continues after the control connection has ended.
            return work.await;
        }
        match select(control.line(bytes_max), work.as_mut()).await {
            Either::Left(input) => handle_input(control, input, transferred),
            Either::Right(done) => return done,
        }
    }
}

/// Returns the reason to abort a transfer, if queued input is one.
fn abort_reason(control: &Control) -> Option<TransferError> {
    if control.has_ended() && control.end_aborts || control.is_overrun() {
        return Some(TransferError::ControlClosed);
    }
    control.has_queued(is_abort).then_some(TransferError::Aborted)
}

fn is_abort(input: &ControlInput) -> bool {
    matches!(input, ControlInput::Line(line) if parse(line).is_ok_and(|command| command.verb == Verb::Abor))
}

/// Answers STAT without a path, and queues everything else. NOOP is queued too: its reply would be taken for
/// that of the transfer.
fn handle_input(control: &mut Control, input: ControlInput, transferred: &Cell<u64>) {
    let command = match &input {
        ControlInput::Line(line) => parse(line).ok(),
        _ => None,
    };
    match command.map(|command| (command.verb, command.argument)) {
        Some((Verb::Stat, b"")) => {
            control.send_reply(&Reply::formatted(213, format!("{} bytes so far.", transferred.get())))
        }
        _ => control.queue(input),
    }
}

impl TransferContext<'_> {
    /// Sends the body that `push` pushes, and the end.
    async fn send(
        &self,
        data: &mut Stream,
        push: impl AsyncFnOnce(&mut BodySender<'_>) -> Result<(), SendError>,
    ) -> Result<(), TransferError> {
        let sender = BodySender::new(self.io, &mut data.tx, &self.deadline, self.limits.send_time);
        let mut sender = sender.observed_by(Rc::clone(&self.slot), self.transferred);
        push(&mut sender).await?;
        Ok(sender.finish().await?)
    }

    /// Sends a range of a file, as it is or as text, and the end.
    pub(super) async fn send_file(
        &self,
        data: &mut Stream,
        source: Source,
        range: Range<u64>,
        is_image: bool,
    ) -> Result<(), TransferError> {
        let mut text = ToNetwork::default();
        self.send(data, async |sender| match is_image {
            true => sender.push_source(source, range).await,
            false => sender.push_source_as(source, range, |bytes| to_text(&mut text, bytes)).await,
        })
        .await
    }

    /// Sends generated bytes, and the end.
    pub(super) async fn send_bytes(&self, data: &mut Stream, bytes: Vec<u8>) -> Result<(), TransferError> {
        self.send(data, async |sender| sender.push_whole(Segment::Owned(bytes)).await).await
    }

    /// Receives an upload until the client ends the data connection.
    pub(super) async fn receive(
        &self,
        data: &mut Stream,
        upload: &mut IncomingUpload,
        mut text: Option<FromNetwork>,
    ) -> Result<(), TransferError> {
        let (rx, start_offset) = (&mut data.rx, upload.start_offset());
        let received = upload.receive(async |pipe| {
            self.deadline.after(self.limits.receive_time);
            let next = self.deadline.within(receive_next(rx, pipe, text.as_mut())).await;
            let next = next.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
            let next = next.map_err(|error| match error.kind() {
                io::ErrorKind::UnexpectedEof => TransferError::Cut,
                _ => TransferError::Broken(error),
            })?;
            self.count_received(start_offset, next.as_ref().map_or(0, ReceivedBytes::len))?;
            Ok(next)
        });
        received.await.map_err(|error| match error {
            ReceiveError::Upload(error) => TransferError::File(error),
            ReceiveError::Connection(error) => error,
        })?;
        data.tx.finish();
        // The end of TLS. The whole file was received, so an error does not matter.
        let _: io::Result<()> = drain(&mut data.tx, 0, &self.deadline, self.limits.send_time).await;
        Ok(())
    }

    /// Counts received bytes of a file that had `start_offset` bytes before.
    fn count_received(&self, start_offset: u64, more: u64) -> Result<(), TransferError> {
        let transferred = self.transferred.get() + more;
        self.transferred.set(transferred);
        if start_offset + transferred > self.limits.file_bytes_max {
            return Err(TransferError::TooLarge);
        }
        Ok(())
    }
}

/// Receives the next bytes of an upload, into the pipe or into memory; `None` at the client's end. A `text`
/// is received into memory, and converted.
async fn receive_next(
    rx: &mut Rx,
    pipe: Option<ReceivePipe>,
    text: Option<&mut FromNetwork>,
) -> io::Result<Option<ReceivedBytes>> {
    if let Some(pipe) = pipe.filter(|_| text.is_none()) {
        match receive_piped(rx, &pipe, u64::MAX).await? {
            PipedReceive::Bytes(received) => return Ok(Some(received)),
            PipedReceive::End => return Ok(None),
            PipedReceive::Refused => {}
        }
    }
    let pieces = rx.recv_available(Want::Body, UPLOAD_RECEIVE_BYTES).await?;
    let pieces = match text {
        Some(text) => from_text(text, &pieces),
        None => pieces,
    };
    Ok((!pieces.is_empty()).then_some(ReceivedBytes::Memory(pieces)))
}

/// Converts received text. No pieces are the end of the text, and so is no piece in the result.
fn from_text(text: &mut FromNetwork, pieces: &[Lease]) -> Vec<Lease> {
    let mut converted = Vec::new();
    pieces.iter().for_each(|piece| text.convert(piece, &mut converted));
    if pieces.is_empty() {
        std::mem::take(text).finish(&mut converted);
        if converted.is_empty() {
            return Vec::new();
        }
    }
    vec![Lease::owned(converted)]
}

fn to_text(text: &mut ToNetwork, bytes: &[u8]) -> Vec<u8> {
    let mut converted = Vec::with_capacity(bytes.len() + bytes.len() / 16);
    text.convert(bytes, &mut converted);
    converted
}

impl From<SendError> for TransferError {
    fn from(error: SendError) -> TransferError {
        match error {
            SendError::Source(error) => TransferError::File(error),
            SendError::Connection(error) => TransferError::Broken(error),
        }
    }
}

impl TransferError {
    /// Returns the reply.
    pub(super) fn reply(&self) -> Reply {
        match self {
            TransferError::Aborted => Reply::new(426, "The transfer was stopped, as you asked."),
            TransferError::ControlClosed => Reply::new(426, "The transfer was stopped.").and_end(),
            TransferError::NoDataConnection(error) if error.kind() == io::ErrorKind::TimedOut => {
                Reply::new(425, "No data connection came in time.")
            }
            TransferError::NotEncrypted(_) | TransferError::NotResumed => reply_to(self),
            TransferError::Cut => Reply::new(
                426,
                "The data connection ended without TLS's close_notify, so the file may be incomplete: it was \
                 not stored.",
            ),
            TransferError::NoDataConnection(_) => Reply::new(425, "The data connection could not be opened."),
            TransferError::Broken(error) if error.kind() == io::ErrorKind::TimedOut => {
                Reply::new(426, "Nothing moved on the data connection for too long; it was closed.")
            }
            TransferError::Broken(_) => Reply::new(426, "The data connection broke."),
            TransferError::WrongSize(size) => {
                Reply::formatted(426, format!("The file is not of the {size} bytes that you announced."))
            }
            TransferError::TooLarge => Reply::new(552, "The file is larger than this server takes."),
            TransferError::File(_) => Reply::new(451, "The file could not be read to its end."),
        }
    }

    /// Ends the audit entry of an aborted transfer; returns the reply.
    pub(super) fn end(self, audit: AuditEntry) -> Reply {
        match self {
            TransferError::File(error) => match audit.end::<(), _>(Err(error)) {
                Err(error) => error.into(),
                Ok(()) => super::path::NOT_FOUND,
            },
            stopped => {
                let reply = stopped.reply();
                audit.failed("broken off");
                reply
            }
        }
    }
}
