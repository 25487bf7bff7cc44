//! Errors that decide how the program ends.
//!
//! The reason of a failed request is not here ([`crate::failure`]).

/// An error of arguments that are each valid, but not together.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongUsage(pub String);

/// An error that has been reported already, on standard error and, with `--json`, on standard output.
#[derive(Debug, thiserror::Error)]
#[error("reported above")]
pub struct AlreadyReported;
