//! Classic: one connection for each request, as the first server that this one comes from had it.
//!
//! [`Classic`] is what an engine serves. Accounts are made and files are sent (`conversation.rs`) through
//! `plimsoll_operations`, as over HTTP and FTP. What must hold: a file is sent to nobody whose password was
//! not right; whatever a client sends or does not, its connection ends.

mod conversation;
mod limits;
mod refusal;
mod serve;

pub use limits::{Limits, OVER_SHARE};
pub use serve::{Classic, Settings};
