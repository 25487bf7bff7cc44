//! The classic protocol, that of the server which preceded this one: one connection per request, in lines
//! that end in LF.
//!
//! ```text
//! new:NAME:PASSWORD          ok                  an account is made
//! get:NAME:PASSWORD          ok                  the password is right
//! FILE                       ok SIZE, and bytes  a file is sent
//!                            error: REASON       in the place of any answer
//! ```
//!
//! Not here: accounts, files, connections. Invariants: no byte of a name or a password can begin or end a
//! line or a part of one; the reading of the input does not depend on how it is split.

mod answer;
mod line;
mod request;

pub use answer::{Answer, BadAnswer};
pub use line::{LineBuffer, TooLong, WipedLine};
pub use request::{BadRequest, Credentials, Request, Unwritable};
