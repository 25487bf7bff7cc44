//! FTP as a client speaks it: a session, and one transfer at a time.
//!
//! Not here: TLS, ASCII transfers, connections that the server makes, reading listings. What must hold: a
//! transfer is whole only if its data connection ended and the server said so; data connections are made to
//! the server that was connected to and to nobody else; every wait ends.

mod connecting;
mod control;
mod download;
mod error;
pub mod limits;
mod session;
mod upload;

pub use download::Download;
pub use error::{Asked, Error, When};
pub use limits::Times;
pub use session::Session;
