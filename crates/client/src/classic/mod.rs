//! A client of classic: one connection for each request.
//!
//! It does not manage accounts. Invariant: a file is complete only if all announced bytes arrived, and the
//! connection then ended.

mod error;
mod limits;
mod request;

pub use error::{Error, When};
pub use limits::Times;
pub use request::{Download, get, sign_up};
