//! The state that both directions of an exchange share.
//!
//! It decides nothing. Invariant: once a byte of a final response was pushed, the exchange counts as
//! answered.

use std::cell::Cell;

use plimsoll_wire::http::status::Status;

use super::{Outcome, OutcomeEnding};

/// The state that both directions share.
#[derive(Default)]
pub(crate) struct Signals {
    upload: Cell<UploadState>,
    status: Cell<Option<Status>>,
    body_bytes: Cell<u64>,
}

/// The progress of a request's way to the origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum UploadState {
    /// No byte of the body was received; the client may wait for a 100 (Continue).
    #[default]
    Begun,
    /// The body is being received.
    Sending,
    /// The whole request was pushed.
    Done,
}

impl Signals {
    /// Resets the state for another attempt.
    pub(super) fn begin(&self) {
        self.upload.set(UploadState::Begun);
    }

    pub(super) fn upload(&self) -> UploadState {
        self.upload.get()
    }

    pub(super) fn set_upload(&self, state: UploadState) {
        self.upload.set(state);
    }

    /// Whether the whole request was pushed to the origin.
    pub(super) fn is_uploaded(&self) -> bool {
        self.upload.get() == UploadState::Done
    }

    /// Whether a final response, or the change of the protocol, was begun.
    pub(super) fn is_answered(&self) -> bool {
        self.status.get().is_some()
    }

    pub(crate) fn answer(&self, status: Status) {
        self.status.set(Some(status));
    }

    /// Counts bytes of the body that were pushed to the client.
    pub(crate) fn count(&self, bytes: u64) {
        self.body_bytes.set(self.body_bytes.get() + bytes);
    }

    /// Counts less, because pushed bytes were dropped before they were sent.
    pub(crate) fn uncount(&self, bytes: u64) {
        self.body_bytes.set(self.body_bytes.get().saturating_sub(bytes));
    }

    /// Returns the number of these bytes.
    pub(crate) fn counted(&self) -> u64 {
        self.body_bytes.get()
    }

    pub(crate) fn outcome(&self, ending: OutcomeEnding) -> Outcome {
        Outcome { ending, status: self.status.get(), body_bytes: self.body_bytes.get() }
    }
}
