//! The load generator: emulated users that send requests to a server, and the resulting figures.
//!
//! A [`Workload`] specifies the requests, the number of users and the pace; [`run`] runs one trial of it,
//! and its [`Outcome`] holds the figures.
//!
//! It is not the laboratory, which runs many trials of many servers. Invariants: only requests measured from
//! start to end count; a body that is not verified is not copied; all users start together.
#![forbid(unsafe_code)]

mod barrier;
mod checking;
mod classic;
mod course;
pub mod cpu;
mod crowd;
mod driver;
mod failure;
mod files;
mod format;
mod ftp;
mod histogram;
mod http;
mod keeping;
pub mod limits;
mod measure;
mod outcome;
mod plan;
mod progress;
mod target;
mod ten;
mod test_file;
mod user;
mod workload;

pub use crowd::Crowd;
pub use driver::{NotRun, Trial, run};
pub use files::{BadFiles, Files, Pick};
pub use format::{CSV_HEAD, size, time};
pub use measure::UserTime;
pub use outcome::{Generator, LittlesLaw, Outcome, Spread, Window};
pub use progress::{Progress, ProgressReporter};
pub use target::{BadPlace, Scheme, Target, check_url};
pub use ten::{BadMix, Mix, Request};
pub use test_file::{BadTestFile, FileTest};
pub use workload::{Checked, Connections, End, Login, Pace, Requests, Workload};
