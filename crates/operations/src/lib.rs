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
mod audit;
mod caller;
mod error;
mod failures;
mod files;
mod home_path;
pub mod limits;
mod link_uploads;
mod linking;
mod locking;
mod meter;
mod operating;
mod operation;
mod permit;
mod sharing;
mod transfer_permit;
mod trash;
mod uploads;
mod xferlog;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plimsoll_auth::Auth;
use plimsoll_store::Store;

use self::link_uploads::LinkUploads;

pub use accounts::WhoAmI;
pub use audit::{AuditEntry, AuditLog, GUEST, LineSink};
pub use caller::{Caller, Protocol, Visitor};
pub use error::Error;
pub use failures::Failure;
pub use files::{ReadAccess, VisibleEntries};
pub use home_path::HomePath;
pub use linking::LinkVisitor;
pub use locking::{LockRequest, LockState};
pub use meter::{Meter, OperationFigures};
pub use operation::Operation;
pub use permit::Parents;
pub use transfer_permit::Permit;
pub use uploads::{IncomingUpload, PartOutcome, ReceiveError};

/// The entry point to all operations. Clones share their state.
#[derive(Clone)]
pub struct Operations(Arc<Inner>);

pub(crate) struct Inner {
    /// Whether clients may present passwords on every connection.
    pub(crate) allows_plain_passwords: AtomicBool,
    pub(crate) auth: Auth,
    pub(crate) store: Store,
    pub(crate) audit_log: AuditLog,
    pub(crate) link_uploads: LinkUploads,
}

impl Operations {
    /// Joins the tiers. `audit_log` gets an entry for each operation.
    pub fn new(auth: Auth, store: Store, audit_log: AuditLog) -> Operations {
        let allows_plain_passwords = AtomicBool::new(true);
        let link_uploads = LinkUploads::default();
        Operations(Arc::new(Inner { allows_plain_passwords, auth, store, audit_log, link_uploads }))
    }

    /// Sets whether clients may present passwords on connections that others could read.
    /// They may until this is called.
    pub fn allow_plain_passwords(&self, allowed: bool) {
        self.0.allows_plain_passwords.store(allowed, Ordering::Relaxed);
    }

    /// Checks that the client may present a password on its connection: no third party can read it, or the
    /// operator allows it.
    ///
    /// # Errors
    /// [`Error::PlainPassword`]
    pub fn check_password_channel(&self, visitor: &Visitor) -> Result<(), Error> {
        let is_allowed = self.0.allows_plain_passwords.load(Ordering::Relaxed);
        if is_allowed || visitor.is_protected { Ok(()) } else { Err(Error::PlainPassword) }
    }

    /// The auth tier, for uses that are not operations: settings and readiness.
    pub fn auth(&self) -> &Auth {
        &self.0.auth
    }

    /// The store, for uses that are not operations: readiness and status.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// The audit log of operations.
    pub fn audit_log(&self) -> &AuditLog {
        &self.0.audit_log
    }
}
