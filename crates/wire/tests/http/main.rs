//! HTTP/1.1's wire format, as a specification: one file for each module.
// Clippy recognises tests by their attribute, and so not the helper functions. A list of one range is
// intended.
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

mod answer;
mod body;
mod chunked;
mod conditional;
mod credentials;
mod date;
mod dav;
mod dav_bodies;
mod dav_locks;
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
