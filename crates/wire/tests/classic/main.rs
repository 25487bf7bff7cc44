//! The classic protocol's wire format, as a specification.
// Clippy recognises tests by their attribute, and so not the helper functions.
#![allow(clippy::unwrap_used)]

mod answer;
mod line;
mod request;
