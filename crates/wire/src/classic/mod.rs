//! The protocol of the first server that this one comes from, which we call classic: one connection for each
//! request, in lines that end in LF.
//!
//! ```text
//! new:NAME:PASSWORD          ok                  an account is made
//! get:NAME:PASSWORD          ok                  the password is right
//! FILE                       ok SIZE, and bytes  a file is sent
//!                            error: REASON       in the place of any answer
//! ```
//!
//! Not here: accounts, files, connections. What must hold: no byte of a name or a password can begin or end a
//! line or another part of one; what a peer sends is understood in one way, whatever pieces it comes in.

mod answer;
mod line;
mod request;

pub use answer::{Answer, BadAnswer};
pub use line::{Line, TooLong, Wiped};
pub use request::{BadRequest, Credentials, Request, Unwritable};

/// Bytes of the longest line, its LF not counted.
pub const LINE_BYTES_MAX: usize = 4096;
