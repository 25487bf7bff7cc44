//! The laboratory: experiments with file servers, ours and others.
//!
//! An [`experiment`] says which contenders get which load; [`conditions`] are set for its trials,
//! [`results`] are what these measured, and [`analysis`] what follows from them. A [`report`] shows the
//! results of a run with its [`profile`]s; [`compare`] finds the figures in which two runs differ.
//! [`transfer_log`] computes document 001's tables from the log of a server.
//!
//! Charts and statistics are our own: charts have the colours of the page's theme and a title on each mark,
//! which plotters does not draw, and of statrs only Student's distribution would be used, eighty lines here.
//!
//! It is not a test suite. It serves no file; [`model_server`] serves known demands, to check its analysis.
//! Invariants: each reported figure was measured; anything that could distort it (errors, wrong bytes, a
//! saturated generator) is reported beside it.
#![forbid(unsafe_code)]

pub mod agent;
pub mod analysis;
pub mod compare;
pub mod conditions;
pub mod experiment;
mod format;
pub mod machine;
pub mod model_server;
pub mod own_path;
pub mod profile;
pub mod report;
pub mod results;
pub mod run;
pub mod stats;
pub mod transfer_log;
