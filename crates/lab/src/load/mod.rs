//! The load generator: users who ask a server for something, and figures of what they got.
//!
//! A [`Workload`] says what is asked, by how many users and how fast; [`run`] is one trial of it, and its
//! [`Outcome`] has the figures.
//!
//! It is not the benchmark, which has many trials of many servers. What must hold: nothing counts that was
//! not measured from beginning to end; a body that nobody verifies is not copied; a start for all.

mod barrier;
mod checking;
mod classic;
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
mod shown;
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
