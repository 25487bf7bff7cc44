//! The laboratory: puts load on a file server, ours or another, and says what it saw.
//!
//! It is not a test suite, and it serves nothing. What must hold: a figure that is told was measured; what
//! could spoil it (errors, wrong bytes, a generator that is the limit itself) is told beside it.
#![forbid(unsafe_code)]

#[cfg(feature = "bench")]
pub mod bench;
#[cfg(feature = "bench")]
pub mod contender;
#[cfg(feature = "bench")]
pub mod report;
#[cfg(feature = "bench")]
pub mod stats;
