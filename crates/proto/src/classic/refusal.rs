//! The text of a refusal to the client.
//!
//! Invariants: the kernel's error messages go to the log, not to the client. A file that the caller may
//! not know about is "not found", as if it did not exist.

use plimsoll_auth::Error as AuthError;
use plimsoll_operations::Error;
use plimsoll_store::Error as StoreError;

/// The protocol's word for a missing file.
const NOT_FOUND: &str = "not found";

/// Returns the reason why an operation failed.
pub(super) fn reason(error: &Error) -> String {
    match error {
        Error::Auth(AuthError::NotFound) => NOT_FOUND.to_owned(),
        Error::Auth(AuthError::NoSession) => "the account or its password has changed".to_owned(),
        Error::Auth(error) => error.detail(),
        Error::Store(error) => store_reason(error).to_owned(),
        Error::PlainPassword => {
            "no passwords over an unencrypted connection; use HTTPS, or ask the server's \
                                 operator for --plain-passwords allow"
                .to_owned()
        }
        Error::NotPermitted(what) => format!("this account may not {what}"),
        Error::ReadOnlyShare | Error::SharedItself | Error::ShareEnded | Error::NotShared => {
            NOT_FOUND.to_owned()
        }
    }
}

fn store_reason(error: &StoreError) -> &'static str {
    match error {
        StoreError::IsFolder => "that is a folder, not a file",
        StoreError::Away => "the files cannot be reached just now; try again later",
        StoreError::Busy => "too much is going on; try again shortly",
        StoreError::Denied(error) => {
            tracing::error!(%error, "the kernel denies the server an account's operation");
            "the server may not read this; its operator can change that"
        }
        StoreError::Failed(error) => {
            tracing::error!(%error, "a file operation failed");
            "the server's disk failed; its log says why"
        }
        _ => NOT_FOUND,
    }
}
