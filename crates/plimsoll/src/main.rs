//! plimsoll, a file server that knows its load line: the program.
//!
//! It has no logic of its own: commands are in [`cli`], and [`assemble`] joins engine, protocol and tiers.
//! Invariants: an error says what was wrong and what to do next. Exit codes are 0 for success, 1 for
//! failure, 2 for wrong usage.
#![forbid(unsafe_code)]

mod access;
mod assemble;
mod backup;
mod bounded_thread;
mod channels;
mod cli;
mod common_cells;
mod config;
mod directory_name;
mod directory_rows;
mod doctor;
mod encryption;
mod exposure;
mod forked;
mod homes;
mod hot;
mod limits;
mod line_writer;
mod listening;
mod locked_folder;
mod log_file;
mod log_sinks;
mod open_files;
mod operator_log;
mod proxying;
mod readiness;
mod reloading;
mod resolve;
mod service_manager;
mod sites;
mod stopping;
mod tiers;
mod trusted_certificates;

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
