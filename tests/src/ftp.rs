//! FTP for behaviours: what a server of it is made of, and a client that writes its lines by hand.
//!
//! Nothing here is the server's: the client reads answers and makes data connections by itself. What must
//! hold: nobody waits without a bound; how a transfer is broken off is said, not left to a drop.

mod client;
mod server;
mod way;

pub use client::{FtpAnswer, FtpClient};
pub use server::Ftp;
pub(crate) use server::ftp;
pub use way::{Data, Way};
