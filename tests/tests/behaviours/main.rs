//! The conformance suite: what a server does, a behaviour a test, under every engine and in the simulator.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests")]

mod contract;
mod requests;
