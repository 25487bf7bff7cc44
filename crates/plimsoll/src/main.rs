//! plimsoll, a file server that knows its load line: the program.
//!
//! It is not where anything is done: commands are in [`cli`], and [`assemble`] joins engine, protocol and
//! tiers. What must hold: an error says what was wrong and what to do next; exit codes are 0 done, 1
//! failed, 2 wrong usage.
#![forbid(unsafe_code)]

mod access;
mod assemble;
mod cli;
mod config;
mod directory_name;
mod doctor;
mod exposure;
mod forked;
mod homes;
mod hot;
mod line_writer;
mod listening;
mod log_file;
mod open_files;
mod operator_log;
mod person;
mod readiness;
mod records;
mod reloading;
mod resolve;
mod service_manager;
mod sites;
mod stopping;
mod tiers;

use std::process::ExitCode;

fn main() -> ExitCode {
    plimsoll_engine::bound_heap();
    let command = cli::Plimsoll::typed();
    let json = command.prints_json();
    match command.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            cli::complain(&error, json);
            cli::exit_code(&error)
        }
    }
}
