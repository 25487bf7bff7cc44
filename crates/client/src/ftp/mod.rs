//! An FTP client: a session, and one transfer at a time.
//!
//! It does not include ASCII transfers, active mode, or a parser of listings. Invariants: a transfer is
//! complete only if its data connection ended and the server confirmed it. Data connections are made only to
//! the server of the control connection. Every wait ends.

mod connecting;
mod control;
mod download;
mod encryption;
mod error;
pub mod limits;
mod session;
mod upload;

pub use download::Download;
pub use encryption::{Encryption, TlsStart};
pub use error::{Command, Error, When};
pub use limits::Times;
pub use session::Session;
