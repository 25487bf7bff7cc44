//! The laboratory: puts load on a file server, ours or another, and says what it saw.
//!
//! A [`Workload`] says what is asked, by how many users and how fast; [`run`] is one trial of it, and its
//! [`Outcome`] has the figures.
//!
//! It is not a test suite, and it serves nothing. What must hold: a figure that is told was measured; what
//! could spoil it (errors, wrong bytes, a generator that is the limit itself) is told beside it.
#![forbid(unsafe_code)]

mod barrier;
#[cfg(feature = "bench")]
pub mod bench;
mod checking;
#[cfg(feature = "bench")]
pub mod contender;
mod course;
mod cpu;
mod crowd;
mod driver;
mod failure;
mod files;
mod ftp;
mod histogram;
mod http;
mod keeping;
pub mod limits;
mod measure;
mod noted;
mod outcome;
mod place;
mod plan;
#[cfg(feature = "bench")]
pub mod report;
mod shown;
#[cfg(feature = "bench")]
pub mod stats;
mod ten;
mod user;
mod workload;

pub use crowd::Crowd;
pub use driver::{NotRun, Trial, run};
pub use files::{BadFiles, Files, Pick};
pub use noted::{Look, Noted};
pub use outcome::{Generator, LittlesLaw, Outcome, Spread};
pub use place::{BadPlace, Place, Scheme};
pub use shown::{CSV_HEAD, size, time};
pub use ten::{BadMix, Mix, Request};
pub use workload::{Ask, Checked, Connections, End, Login, Pace, Workload};
