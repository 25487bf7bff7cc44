//! The laboratory: a load generator and a benchmark for file servers, ours and others.
//!
//! [`load`] is the generator. The feature `bench`, which the server does not enable, runs it against
//! several servers in turn (`contender`), computes statistics (`stats`) and writes reports (`report`).
//!
//! It is not a test suite, and it serves nothing. Invariants: each reported figure was measured; anything
//! that could distort it (errors, wrong bytes, a saturated generator) is reported beside it.
#![forbid(unsafe_code)]

pub mod analysis;
#[cfg(feature = "bench")]
pub mod bench;
#[cfg(feature = "bench")]
pub mod contender;
pub mod load;
#[cfg(feature = "bench")]
pub mod report;
#[cfg(feature = "bench")]
pub mod stats;
