//! plimsoll, a file server that knows its load line: the program.
//!
//! It is not where anything is done: commands are in [`cli`], and [`assemble`] joins engine, protocol and
//! tiers. What must hold: an error says what was wrong and what to do next; exit codes are 0 done, 1
//! failed, 2 wrong usage.
#![forbid(unsafe_code)]

mod access_log;
mod assemble;
mod cli;
mod line_writer;
mod open_files;
mod stopping;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let command = cli::Plimsoll::parse();
    match command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            cli::complain(&error);
            cli::exit_code(&error)
        }
    }
}
