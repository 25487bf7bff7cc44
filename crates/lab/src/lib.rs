//! The laboratory: puts load on a file server, ours or another, and says what it saw.
//!
//! [`load`] is the generator; `bench`, a feature that the server does not have, runs it against ours and
//! others' servers (`contender`) by turns, weighs what came of it (`stats`) and shows it (`report`).
//!
//! It is not a test suite, and it serves nothing. What must hold: a figure that is told was measured; what
//! could spoil it (errors, wrong bytes, a generator that is the limit itself) is told beside it.
#![forbid(unsafe_code)]

#[cfg(feature = "bench")]
pub mod bench;
#[cfg(feature = "bench")]
pub mod contender;
pub mod load;
#[cfg(feature = "bench")]
pub mod report;
#[cfg(feature = "bench")]
pub mod stats;
