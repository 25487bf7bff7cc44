//! The conformance suite: what a server does, a behaviour a test, under every engine and in the simulator.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests")]

mod access_log;
mod bodies;
mod conditionals;
mod contract;
mod draining;
mod encodings;
mod files;
mod isolation;
mod limits;
mod listings;
mod names;
mod ranges;
mod refused;
mod requests;
mod routes;
mod transfers;
