//! FTP (RFC 959 and what came after it): one control connection's conversation, and the data connections
//! that it opens.
//!
//! [`Ftp`] is what an engine serves. A session reads commands (`control.rs`), obeys them (`verbs/`, a file
//! each) and moves files over data connections (`connecting.rs`, `transfer.rs`). Accounts' files are reached
//! by `plimsoll_operations` alone, a site's by `reading.rs`.
//!
//! What must hold: before log-in there is nothing but log-in; a data connection goes to or comes from the
//! peer of the control connection and nobody else; an upload that did not arrive whole is not there.

mod answer;
mod connecting;
mod control;
mod conversation;

mod hold;
pub mod limits;
mod listing;
mod place;
mod ports;
mod reading;
mod refusal;
mod serve;
mod state;
mod transfer;
mod verbs;

pub use hold::Hold;
pub use limits::{Limits, OVER_SHARE};
pub use ports::Ports;
pub use serve::{Ftp, Served, Settings};
