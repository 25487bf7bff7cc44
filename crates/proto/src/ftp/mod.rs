//! FTP (RFC 959 and its extensions): the control connection, and the data connections that it opens.
//!
//! [`Ftp`] is the handler for an engine. A control connection reads commands (`control.rs`) and executes
//! them (`verbs/`, one file each). Files move over data connections (`connecting.rs`, `transfer.rs`). An
//! upload is committed once its client has confirmed it (`announcement.rs`, `confirming.rs`). Both
//! connections may be encrypted (`encryption.rs`).
//! Accounts' files are reached only through `plimsoll_operations`, a site's through `reading.rs`.
//!
//! Invariants: before login, only the login commands do anything. The other end of a data connection is
//! the peer of the control connection. An upload that did not arrive completely is not visible.
//!
//! Design: docs/design/ftp.md.

mod announcement;
mod confirming;
mod connecting;
mod control;
mod conversation;
mod delivery;
mod encryption;
mod reply;

pub mod limits;
mod listing;
mod path;
mod port_shares;
mod ports;
mod reading;
mod refusal;
mod serve;
mod start_barrier;
mod state;
mod transfer;
mod verbs;

pub use confirming::Unconfirmed;
pub use encryption::{Encryption, TlsReuse};
pub use limits::{Limits, OVER_SHARE};
pub use port_shares::PortShares;
pub use ports::Ports;
pub use serve::{Ftp, Services, Settings};
pub use start_barrier::StartBarrier;
