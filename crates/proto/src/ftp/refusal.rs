//! The replies to refused and failed operations.
//!
//! Invariant: the kernel's error messages go to the log, not to the client.

use plimsoll_auth::Error as AuthError;
use plimsoll_operations::Error;
use plimsoll_store::{Error as StoreError, NotResumable};

use super::path::NOT_FOUND;
use super::reply::Reply;

impl From<Error> for Reply {
    fn from(error: Error) -> Reply {
        match error {
            Error::Auth(error) => reply_to_auth_error(&error),
            Error::Store(error) => reply_to_store_error(error),
            Error::PlainPassword => Reply::new(
                530,
                "Passwords need an encrypted connection: set \"explicit TLS\" in your program (AUTH TLS). If \
                 there is none, the operator gives --certificate and --key, or --plain-passwords allow.",
            ),
            Error::NotPermitted(what) => Reply::formatted(550, format!("This account may not {what}.")),
            Error::ReadOnlyShare => Reply::new(550, "This is shared with you for reading only."),
            Error::SharedItself => Reply::new(
                550,
                "Only its owner can remove or rename the shared file or folder itself; change what is in it.",
            ),
            Error::ShareEnded => Reply::new(550, "The share has ended, or lets you do less; ask its owner."),
            Error::NotShared => {
                Reply::new(550, "Nothing can be changed here: only what lies below is shared with you.")
            }
        }
    }
}

impl From<StoreError> for Reply {
    fn from(error: StoreError) -> Reply {
        reply_to_store_error(error)
    }
}

fn reply_to_auth_error(error: &AuthError) -> Reply {
    match error {
        AuthError::NotFound => NOT_FOUND,
        AuthError::Locked { .. } => Reply::formatted(450, error.detail()),
        AuthError::Full => Reply::formatted(452, error.detail()),
        AuthError::Busy { .. } => Reply::formatted(421, error.detail()).and_end(),
        AuthError::Unavailable => {
            Reply::new(421, "Accounts cannot be looked up just now; try again later.").and_end()
        }
        AuthError::NoSession => {
            Reply::new(421, "This login has ended: the account or its password has changed.").and_end()
        }
        _ => Reply::formatted(530, error.detail()),
    }
}

fn reply_to_store_error(error: StoreError) -> Reply {
    use StoreError as E;
    let (code, text) = match error {
        E::NotFound => return NOT_FOUND,
        E::NoFolder => (550, "There is no such folder to put it in; make it with MKD first."),
        E::AlreadyExists => (550, "There is something of that name already."),
        E::IsFolder => (550, "That is a folder, not a file."),
        E::NotFolder => (550, "That is a file, not a folder."),
        E::NotEmpty => (
            550,
            "The folder is not empty; remove its contents first. Names with a line end are listed over HTTP \
             alone.",
        ),
        E::Home => (550, "The home itself cannot be replaced, moved or removed."),
        E::IntoItself => (553, "Nothing can be moved onto or into itself."),
        E::LeadsOut => (553, "A link in it leads to a folder outside it."),
        E::OtherDisk => (
            553,
            "It cannot move to another file system or be a mount point: upload it there, then delete it.",
        ),
        E::Path(bad) => return Reply::formatted(553, format!("The path is invalid: {bad}.")),
        E::Precondition => (550, "The file was changed meanwhile; look at it and try again."),
        E::Digest | E::Length => (551, "The received bytes are not those that were announced."),
        E::Quota => (552, "That is more than the account may store: delete files or interrupted uploads."),
        E::Full => (452, "The server's disk is full; existing files are unchanged."),
        E::TooManyUploads => {
            (452, "Too many uploads are in progress or resumable; wait for one, or discard one.")
        }
        E::Offset(bytes) => {
            return Reply::formatted(
                554,
                format!("There are {bytes} bytes and no more: begin there with REST {bytes}."),
            );
        }
        E::NotResumable(why) => return not_resumable(why),
        E::TooManyEntries => (450, "The folder has too many entries to be listed; move some elsewhere."),
        E::Away => (450, "The files cannot be reached just now; look before you try again."),
        E::InUse => (450, "Another connection is writing to it; try again when it has finished."),
        E::Cancelled => (426, "The transfer was stopped."),
        E::Busy => (450, "The server is busy; try again shortly."),
        E::ReadOnlyDisk => {
            tracing::error!("the disk is read-only: nothing can be stored or changed");
            (450, "The server's disk is read-only just now; its operator has to fix it. Try again later.")
        }
        E::Denied(error) => {
            tracing::error!(%error, "the kernel denies the server an account's operation");
            (550, "The server may not do this; its operator can change that.")
        }
        E::Failed(error) => {
            tracing::error!(%error, "a file operation failed");
            (
                451,
                "The server's disk failed; its log says why. Before you repeat a change, look whether it has \
                 happened.",
            )
        }
    };
    Reply::new(code, text)
}

/// Returns the reply to an upload whose start is ambiguous. It names the commands that resolve it.
fn not_resumable(why: NotResumable) -> Reply {
    match why {
        NotResumable::FileAndUpload { file, upload: Some(upload) } => Reply::formatted(
            554,
            format!(
                "A file of {file} bytes is there, and an upload to replace it was interrupted at {upload}: \
                 say REST {upload} and STOR to resume that, or STOR alone to send the whole file."
            ),
        ),
        NotResumable::FileAndUpload { file, upload: None } => Reply::formatted(
            554,
            format!(
                "A file of {file} bytes is there, and an upload to the same name was interrupted: it is not \
                 certain which of them you resume. Say STOR alone to send the whole file, or discard the \
                 upload."
            ),
        ),
        NotResumable::Unannounced(upload) => Reply::formatted(
            554,
            format!(
                "No file is there, but an upload of it that was interrupted at {upload}: ask for SIZE before \
                 you resume that, say STOR to send the whole file, or DELE to discard the received bytes."
            ),
        ),
        NotResumable::SeveralUploads => Reply::new(
            554,
            "Several uploads of this file are unfinished: say STOR alone to send the whole file, or DELE to \
             discard them where no file is.",
        ),
        NotResumable::Changed(size) => Reply::formatted(
            450,
            format!("There are {size} bytes now, not as many as SIZE reported: send SIZE again."),
        ),
    }
}
