//! Operations on files and accounts, for all protocols. Each operation gets one permission check, one line
//! in the transfer log, and one count in the metrics.
//!
//! This crate speaks no protocol. It stores neither accounts (`auth` does) nor bytes (`store` does). A
//! protocol builds a [`Caller`] from a connection and a credential, and calls [`Operations`].
//!
//! Invariants: protocols reach an account's files only through this crate. Each operation, also a
//! refused or aborted one, writes exactly one line and is counted exactly once.
#![forbid(unsafe_code)]

mod accounts;
mod caller;
mod error;
mod files;
mod home_path;
pub mod limits;
mod meter;
mod operation;
mod permit;
mod record;
mod sharing;
mod transfer_permit;
mod uploads;
mod xferlog;

use std::sync::Arc;

use plimsoll_auth::Auth;
use plimsoll_store::Store;

pub use accounts::WhoAmI;
pub use caller::{Caller, Protocol, Visitor};
pub use error::Error;
pub use files::{ReadAccess, VisibleEntries};
pub use home_path::HomePath;
pub use meter::Meter;
pub use operation::Operation;
pub use permit::Parents;
pub use record::{GUEST, LineSink, OperationRecord, Recorder};
pub use transfer_permit::Permit;
pub use uploads::{IncomingUpload, PartOutcome, ReceiveError};

/// The entry point to all operations. Clones share their state.
#[derive(Clone)]
pub struct Operations(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) auth: Auth,
    pub(crate) store: Store,
    pub(crate) recorder: Recorder,
}

impl Operations {
    /// Joins the tiers. `recorder` records the operations.
    pub fn new(auth: Auth, store: Store, recorder: Recorder) -> Operations {
        Operations(Arc::new(Inner { auth, store, recorder }))
    }

    /// The auth tier, for uses that are not operations: settings and readiness.
    pub fn auth(&self) -> &Auth {
        &self.0.auth
    }

    /// The store, for uses that are not operations: readiness.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// The recorder of operations.
    pub fn recorder(&self) -> &Recorder {
        &self.0.recorder
    }
}
