//! FTP for behaviour tests: a server, and a client that writes its lines by hand.
//!
//! It uses no code of the server: the client parses answers and opens data connections itself. Every wait
//! must have a bound. A transfer is aborted by an explicit call, never by an implicit drop.

mod client;
mod data_connection;
mod server;

pub use client::{FtpAnswer, FtpClient};
pub use data_connection::{Data, DataMode};
pub(crate) use server::ftp;
pub use server::{Ftp, FtpTls};
