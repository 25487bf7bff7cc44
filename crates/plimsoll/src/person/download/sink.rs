//! Where the bytes of a download go.
//!
//! It does not check them. What must hold: a reader of standard output that is gone ends the program quietly.

use std::io::{self, Write as _};

use super::super::failure::Failure;
use super::super::shown::end_if_nobody_reads;
use super::part::Part;

/// Where the bytes go.
pub(super) enum Sink {
    Part(Box<Part>),
    StandardOutput,
}

impl Sink {
    /// Empties it, for a file that has this tag.
    pub(super) fn begin(&mut self, etag: Option<&str>) -> Result<(), Failure> {
        match self {
            Sink::Part(part) => part.begin(etag),
            Sink::StandardOutput => Ok(()),
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        match self {
            Sink::Part(part) => part.write(bytes),
            Sink::StandardOutput => io::stdout().lock().write_all(bytes).map_err(|error| {
                end_if_nobody_reads(&error);
                Failure::here("cannot write to standard output", &error)
            }),
        }
    }
}
