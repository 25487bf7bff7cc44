//! FTP on the wire, as a specification: one file for each module.
// Clippy knows tests by their attribute, and so not the functions that they share.
#![allow(clippy::unwrap_used)]

mod address;
mod answer;
mod answers;
mod ascii;
mod command;
mod facts;
mod flags;
mod glob;
mod hash;
mod line;
mod listing;
mod options;
mod time;
