//! A client of classic: one connection for each request.
//!
//! Not here: whose account it is. What must hold: a file is whole only if all the bytes came that were
//! announced, and the connection then ended.

mod error;
mod limits;
mod request;

pub use error::{Error, When};
pub use limits::Times;
pub use request::{Download, get, sign_up};
