//! The section of the profiles: the functions that cost the most.
//!
//! It computes nothing. Invariant: a profile that failed is shown with its reason.

use super::cells::values_text;
use super::content::{Block, Cell, DataTable, Section};
use crate::format::figures::percent;
use crate::profile::Profiler;
use crate::results::{FinishedProfile, ProcessProfile, ProfileResult, Results};

/// The number of functions in a table.
const SHOWN: usize = 25;
const TEXT: &str = "Each profile is of an additional trial that counts for no figure, from the start to the \
                    end of the processes. A function's own share is the cost of its own code; its inclusive \
                    share has that of the functions that it calls, too.";
const CALLGRIND: &str = "Callgrind counts instructions, not time: the kernel, waits and cache misses are not \
                         in it. It runs one thread at a time. KCachegrind shows its files, which are in the \
                         folder profiles.";
const PERF: &str = "Perf samples the CPU time, with that in the kernel. Callers of code without frame \
                    pointers are unknown, so that inclusive shares can be too small. \
                    `perf report --input FILE` shows its files, which are in the folder profiles.";

/// Returns the section; none without profiles.
pub(super) fn section(results: &Results) -> Option<Section> {
    if results.profiles.is_empty() {
        return None;
    }
    let mut blocks = vec![Block::Text(TEXT.to_owned())];
    for (profiler, text) in [(Profiler::Callgrind, CALLGRIND), (Profiler::Perf, PERF)] {
        let is_used = results.profiles.iter().any(|one| one.profiler == profiler && !one.is_failed());
        blocks.extend(is_used.then(|| Block::Text(text.to_owned())));
    }
    blocks.extend(results.profiles.iter().flat_map(blocks_of));
    Some(Section::folded("Profiles", blocks))
}

/// Returns a line for each profile that failed.
pub(super) fn failures(results: &Results) -> String {
    results.profiles.iter().filter_map(failure).map(|line| format!("\n{line}\n")).collect()
}

fn failure(done: &FinishedProfile) -> Option<String> {
    let ProfileResult::Failed(reason) = &done.result else { return None };
    let reason = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(format!("{}: no profile by {}: {reason}", place(done), done.profiler.name()))
}

/// Returns the contender and the point.
fn place(done: &FinishedProfile) -> String {
    let at = [done.contender.clone(), values_text(&done.point)];
    at.into_iter().filter(|text| !text.is_empty()).collect::<Vec<String>>().join(" at ")
}

fn blocks_of(done: &FinishedProfile) -> Vec<Block> {
    let (at, profiler) = (place(done), done.profiler.name());
    match &done.result {
        ProfileResult::Failed(_) => failure(done).map(Block::Text).into_iter().collect(),
        ProfileResult::Profiled { requests, processes } => {
            let blocks = processes.iter().flat_map(|process| {
                let text = format!("{at}, by {profiler}: {}", summary(done.profiler, process, *requests));
                [Block::Text(text), Block::Table(table(process))]
            });
            blocks.collect()
        }
    }
}

fn summary(profiler: Profiler, process: &ProcessProfile, requests: u64) -> String {
    let (total, unit) = (process.profile.total, profiler.unit());
    let files = process.files.join(", ");
    let name = &process.name;
    format!("process {name}, {total} {unit}; {requests} responses in the measured time; {files}")
}

fn table(process: &ProcessProfile) -> DataTable {
    let columns = ["function", "of", "own share", "inclusive share"].map(str::to_owned).to_vec();
    let rows = process.profile.functions.iter().take(SHOWN).map(|function| {
        vec![
            Cell::words(&function.name),
            Cell::words(&function.object),
            Cell::figure(Some(function.own), percent),
            Cell::figure(Some(function.inclusive), percent),
        ]
    });
    DataTable { columns, rows: rows.collect(), ..DataTable::default() }
}
