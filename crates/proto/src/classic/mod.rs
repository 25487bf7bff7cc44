//! Classic: one connection for each request, as in the server that this one descends from.
//!
//! [`Classic`] is the handler for an engine. It creates accounts and sends files (`conversation.rs`)
//! through `plimsoll_operations`, as HTTP and FTP do. Invariants: no file is sent without a correct
//! password; every connection ends, for any input from the client.

mod conversation;
mod limits;
mod refusal;
mod serve;

pub use limits::{Limits, OVER_SHARE};
pub use serve::{Classic, Settings};
