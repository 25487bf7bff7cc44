//! A run as Markdown, for documents and for the terminal.
//!
//! Invariant: warnings stand beside the figures that they concern, and the marks must be explained.

use std::fmt::Write as _;

use super::cells::{Cell, Summary};
use super::figures::{NONE, bytes, microseconds, rate, ratio};
use super::rounds;
use crate::bench::Results;
use crate::format::table::Table;

/// From this file size on, throughput is in bytes per second.
const BYTES_TOLD_FROM: usize = 1_000_000;
const MARKS: &str =
    "Marks: `g` the generator was the limit, so compare CPU times; `e` there were errors; `!` trials failed.";

/// Formats the whole report.
pub fn markdown(results: &Results, cells: &[Cell]) -> String {
    let mut text = format!("## The run of {}\n", results.begun);
    let mut part = |title: &str, body: String| {
        // Writing to a string does not fail.
        let _ = write!(text, "\n### {title}\n\n{body}");
    };
    part(
        "Throughput",
        throughput(results, cells)
            + "\nMedians of all rounds, answers per second; from 1 MB on, bytes.\n"
            + MARKS
            + "\n",
    );
    part(
        "CPU time",
        cpu(results, cells)
            + "\nMedians of all rounds: microseconds of CPU time of the server for each answer.\n",
    );
    part("Against the best peer", best(cells) + BEST);
    part("Against each peer", each(cells) + EACH);
    if !results.calls.is_empty() {
        part("System calls", calls(results) + "\nFor each answer, counted by strace under load.\n");
    }
    part("How it was run", how(results));
    text
}

/// Formats the terminal's summary: without the long table, and without facts that its user knows.
pub fn summary(results: &Results, cells: &[Cell]) -> String {
    let calls = if results.calls.is_empty() { String::new() } else { calls(results) + "\n" };
    let left_out: String = results.left_out.iter().map(|who| format!("left out: {who}\n")).collect();
    format!(
        "Answers per second; from 1 MB on, bytes\n{}{MARKS}\n\n\
         CPU time of the server for each answer, microseconds\n{}\n\
         Ours against the best peer of each cell: medians of paired ratios [95 %]\n{}\n{calls}{left_out}",
        throughput(results, cells),
        cpu(results, cells),
        best(cells)
    )
}

const BEST: &str = "
Ratios of the same round: the median and, in brackets, its bootstrap interval of 95 %, whose worse end is
the claim. For answers per second, above 1 is better; for CPU time, below 1. The best peer has the best
median of the cell.
";
const EACH: &str = "
As above. Others of ours are among them, to compare engines.
";

fn throughput(results: &Results, cells: &[Cell]) -> String {
    let is_large =
        |case: &str| results.cases.iter().any(|one| one.name == case && one.bytes >= BYTES_TOLD_FROM);
    let told = |cell: &Cell, one: &Summary| {
        let value = if is_large(&cell.case) { one.bytes } else { one.rate };
        let told =
            value.map(|value| if is_large(&cell.case) { bytes(value.median) } else { rate(value.median) });
        told.unwrap_or_else(|| NONE.to_owned()) + &marks(one)
    };
    by_contender(results, cells, told)
}

fn cpu(results: &Results, cells: &[Cell]) -> String {
    let told = |_: &Cell, one: &Summary| {
        one.cpu_us.map_or_else(|| NONE.to_owned(), |value| microseconds(value.median))
    };
    by_contender(results, cells, told)
}

fn by_contender(results: &Results, cells: &[Cell], told: impl Fn(&Cell, &Summary) -> String) -> String {
    let names = results.entrants.iter().map(|entrant| entrant.name.as_str());
    let mut table = Table::new(["case", "under"].into_iter().chain(names));
    for cell in cells {
        let figures = cell.summaries.iter().map(|one| told(cell, one));
        table.row([cell.case.clone(), cell.congestion.clone()].into_iter().chain(figures));
    }
    table.text()
}

fn marks(one: &Summary) -> String {
    let marks = [(one.generator_is_the_limit, 'g'), (one.errors > 0, 'e'), (one.failed > 0, '!')];
    let set: String = marks.iter().filter(|(is_set, _)| *is_set).map(|(_, mark)| *mark).collect();
    if set.is_empty() { set } else { format!(" {set}") }
}

fn best(cells: &[Cell]) -> String {
    let head =
        ["case", "under", "ours", "most answers", "answers, ours/theirs", "least CPU", "CPU, ours/theirs"];
    let mut table = Table::new(head);
    for cell in cells {
        for ours in cell.summaries.iter().filter(|one| one.ours) {
            let mut own = cell.ratios.iter().filter(|ratio| ratio.ours == ours.contender);
            let by_rate = own.clone().find(|ratio| ratio.best_rate);
            let by_cpu = own.find(|ratio| ratio.best_cpu);
            let (Some(by_rate), Some(by_cpu)) = (by_rate, by_cpu) else { continue };
            table.row([
                cell.case.clone(),
                cell.congestion.clone(),
                ours.contender.clone(),
                by_rate.theirs.clone(),
                ratio(by_rate.rate) + &marks(ours),
                by_cpu.theirs.clone(),
                ratio(by_cpu.cpu),
            ]);
        }
    }
    table.text()
}

fn each(cells: &[Cell]) -> String {
    let mut table = Table::new(["case", "under", "ours", "theirs", "answers", "CPU"]);
    for (cell, one) in cells.iter().flat_map(|cell| cell.ratios.iter().map(move |one| (cell, one))) {
        let names = [&cell.case, &cell.congestion, &one.ours, &one.theirs].map(Clone::clone);
        table.row(names.into_iter().chain([ratio(one.rate), ratio(one.cpu)]));
    }
    table.text()
}

fn calls(results: &Results) -> String {
    let mut table = Table::new(["case", "contender", "all", "most of them"]);
    for calls in &results.calls {
        let mut names: Vec<(&String, &f64)> = calls.by_name.iter().collect();
        names.sort_by(|a, b| b.1.total_cmp(a.1));
        let most: Vec<String> =
            names.iter().take(4).map(|(name, each)| format!("{name} {each:.2}")).collect();
        table.row([
            calls.case.clone(),
            calls.contender.clone(),
            format!("{:.2}", calls.per_request),
            most.join(", "),
        ]);
    }
    table.text()
}

fn how(results: &Results) -> String {
    let (machine, settings) = (&results.machine, &results.settings);
    let core =
        |core: Option<usize>| core.map_or_else(|| "any core".to_owned(), |core| format!("core {core}"));
    let trials = results.trials.len();
    let disturbed = results.trials.iter().filter_map(|trial| trial.measured.as_ref());
    let disturbed = disturbed.filter(|measured| !measured.settled).count();
    let mut text = format!(
        "* Begun {}, {:.0} s{}: {trials} trials, {disturbed} of which began on a busy machine.\n\
         * {} with {} cores, {} MiB; {}, Linux {}; loopback's MTU {}, somaxconn {}, ports {}; congestion \
         control of the machine {}.\n\
         * {} users; {} after {:.2} s to warm up, in an order by seed {}; servers on {}, generator on {}; \
         logs of requests {}.\n",
        results.begun,
        results.seconds,
        if results.stopped { ", stopped before its end" } else { "" },
        machine.cpu,
        machine.cores,
        machine.memory_mib,
        machine.system,
        machine.kernel,
        machine.loopback_mtu,
        machine.somaxconn,
        machine.ports,
        machine.congestion,
        settings.users,
        rounds(results),
        settings.warm_up_seconds,
        settings.seed,
        core(settings.server_core),
        core(settings.generator_core),
        if settings.logs { "on" } else { "off" },
    );
    text += "\n";
    let mut table = Table::new(["contender", "version", "what it is"]);
    for one in &results.entrants {
        table.row([&one.name, &one.version, &one.about].map(Clone::clone));
    }
    text += &table.text();
    let faults = results.trials.iter().filter_map(|trial| {
        let Some(fault) = &trial.fault else { return None };
        Some(format!("{} at {}, {}: {fault}", trial.contender, trial.case, trial.congestion))
    });
    let notes: Vec<String> =
        results.left_out.iter().map(|who| format!("left out: {who}")).chain(faults).collect();
    notes.iter().fold(text, |text, note| format!("{text}\n* {note}"))
}
