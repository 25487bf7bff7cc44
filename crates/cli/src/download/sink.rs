//! The destination of a download's bytes.
//!
//! It does not check them. Invariant: a closed standard output ends the program without a message.

use std::io::{self, Write as _};

use super::part::Part;
use crate::failure::Failure;
use crate::output::exit_on_broken_pipe;

/// The destination of a download's bytes.
pub(super) enum Sink {
    Part(Box<Part>),
    StandardOutput,
}

impl Sink {
    /// Empties the destination, for a file with this entity tag.
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
                exit_on_broken_pipe(&error);
                Failure::local("cannot write to standard output", &error)
            }),
        }
    }
}
