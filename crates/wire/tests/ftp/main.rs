//! FTP's wire format, as a specification: one file for each module.
// Clippy recognises tests by their attribute, and so not the helper functions.
#![allow(clippy::unwrap_used)]

mod address;
mod ascii;
mod command;
mod facts;
mod flags;
mod glob;
mod hash;
mod line;
mod listing;
mod options;
mod reply;
mod reply_parser;
mod time;
