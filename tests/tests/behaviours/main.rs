//! The conformance suite: what a server does, a behaviour a test, under every engine and in the simulator.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs, reason = "tests")]

mod access_log;
mod accounts;
mod api;
mod bodies;
mod classic;
mod conditionals;
mod contract;
mod digests;
mod downloads;
mod draining;
mod encodings;
mod fairness;
mod files;
mod folders;
mod forms;
mod ftp;
mod holding_back;
mod hot;
mod isolation;
mod limits;
mod listings;
mod names;
mod paging;
mod proxies;
mod quota;
mod ranges;
mod refused;
mod requests;
mod revoked_rights;
mod routes;
mod sessions;
mod sharing;
mod transfers;
mod tus;
mod uploads;
