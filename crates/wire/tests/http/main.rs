//! HTTP/1.1 on the wire, as a specification: one file for each module.
// Clippy knows tests by their attribute, and so not the functions that they share; a list of one range is
// meant.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

mod answer;
mod chunked;
mod conditional;
mod credentials;
mod date;
mod dav;
mod digest;
mod form;
mod forwarded;
mod head;
mod multipart;
mod negotiate;
mod range;
mod response;
mod smuggling;
mod target;
mod tus;
