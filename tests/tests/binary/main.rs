//! The real binary from outside: its command line, its signals, and the clients that people use.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    missing_docs,
    reason = "tests"
)]

mod browser;
mod command_line;
mod crowd;
mod curl;
mod descriptors;
mod environment;
mod full;
mod hostile;
mod pipelines;
mod signals;
mod stop_under_load;
mod wget;
