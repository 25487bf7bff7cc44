//! Classic on the wire, as a specification.
// Clippy knows tests by their attribute, and so not the functions that they share.
#![allow(clippy::unwrap_used)]

mod answer;
mod line;
mod request;
