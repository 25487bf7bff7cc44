//! What people do with files and accounts, whatever the protocol: the one permission check, the one line in
//! the transfer log, and the one count for the metrics of each operation.
//!
//! It is not a protocol, it keeps no accounts (`auth` does) and no bytes (`store` does). A protocol makes a
//! [`Caller`] of a connection and a credential, and calls [`Operations`].
//!
//! What must hold: no file of an account is reached but through here; each operation, also one that is
//! refused or broken off, writes exactly one line and is counted exactly once.
#![forbid(unsafe_code)]

mod accounts;
mod caller;
mod digests;
mod error;
mod files;
mod held;
pub mod limits;
mod meter;
mod operation;
mod permit;
mod place;
mod record;
mod sharing;
mod uploads;
mod xferlog;

use std::sync::Arc;

use plimsoll_auth::Auth;
use plimsoll_store::Store;

pub use accounts::WhoAmI;
pub use caller::{Caller, Protocol, Visitor};
pub use error::Error;
pub use files::{Looked, Reading, Shown};
pub use held::Permit;
pub use meter::Meter;
pub use operation::Operation;
pub use place::Place;
pub use record::{GUEST, LineSink, Recorder, Transfer};
pub use uploads::{Arriving, Kept, Landed};

/// Everything that can be done. Clones are the same.
#[derive(Clone)]
pub struct Operations(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) auth: Auth,
    pub(crate) store: Store,
    pub(crate) recorder: Recorder,
    pub(crate) digests: plimsoll_store::DigestSlots,
}

impl Operations {
    /// Joins the tiers; what is done is recorded by `recorder`.
    pub fn new(auth: Auth, store: Store, recorder: Recorder) -> Operations {
        let digests = plimsoll_store::DigestSlots::default();
        Operations(Arc::new(Inner { auth, store, recorder, digests }))
    }

    /// The auth tier, for what is no operation: settings and readiness.
    pub fn auth(&self) -> &Auth {
        &self.0.auth
    }

    /// The store, for what is no operation: readiness.
    pub fn store(&self) -> &Store {
        &self.0.store
    }

    /// Where operations are recorded.
    pub fn recorder(&self) -> &Recorder {
        &self.0.recorder
    }
}
