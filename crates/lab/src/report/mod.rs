//! The report of an experiment: an HTML page, Markdown and comma-separated values.
//!
//! It measures nothing, and follows from the results folder alone. Invariants: each figure stands with its
//! interval and number of samples, and a missing one is shown as missing. A file is replaced completely or
//! not at all.

mod cells;
mod chart;
mod charts;
mod conclusion;
mod content;
mod document;
mod html;
mod markdown;
mod open_loop;
mod profiles;
mod svg;
mod tables;
mod tools;
mod trials;

use std::path::Path;

use anyhow::Result;

use crate::analysis::{Curve, curves, paired_ratios, reference, sweep_axis};
use crate::results::{Machine, Results, replace};
use charts::Sweep;
use content::{Block, DataTable, Report, Section};

const OVERVIEW: &str = "Xmax is the largest mean throughput of all points, and so a little too large if \
                        several points are equal within their noise. N95 is the least number of users \
                        with 95 % of it. N* = (R(1) + Z) Xmax is where the asymptotes meet. The hint names \
                        resources that are at least 90 % busy at Xmax; it is not a measured verdict.";
const POINTS: &str = "Means of the repetitions that count; in brackets, the interval of 95 % by Student's t \
                      distribution; n is the number of samples. Repetitions that began on a busy machine \
                      do not count if two others began on an idle one. Percentiles of a closed loop leave \
                      out the waits of requests that its users would have sent meanwhile.";
const RATIOS: &str = "Geometric means of the ratios of two trials of the same repetition, with their \
                      interval of 95 %. Above 1 is better for throughput, below 1 for the others. One \
                      interval in twenty excludes 1 by chance. A star marks the ratios that differ \
                      from 1 with a correction for the number of all (Holm): one chance in twenty of \
                      any wrong star.";
const DEMANDS: &str = "By the utilisation law, D = U / X, at the smallest number of users. The delay is the \
                       rest of its response time: network, generator and waits without a queue.";
const MVA: &str = "The prediction of mean value analysis from these demands, and its error: positive where \
                   it is above the measured figure. It assumes exponential demands. One that misses a \
                   measured throughput by more than 25 % is not drawn: under load, the contender has other \
                   demands.";
const USL: &str = "The universal scalability law, X(N) = λ N / (1 + σ (N - 1) + κ N (N - 1)), fitted to all \
                   points.";

/// Writes `report.html`, `report.md` and `trials.csv` into a folder.
///
/// # Errors
/// The folder cannot be written.
pub fn write(folder: &Path, results: &Results) -> Result<()> {
    let report = contents(results);
    replace(&folder.join("report.html"), html::page(&report).as_bytes())?;
    replace(&folder.join("report.md"), markdown::markdown(&report).as_bytes())?;
    replace(&folder.join("trials.csv"), trials::csv(results).as_bytes())
}

/// Returns the summary for the terminal: maxima, ratios to the reference, and the number of failures.
pub fn summary(results: &Results) -> String {
    let curves = curves(results);
    let plain = |data: &DataTable| markdown::table(data, str::to_owned);
    let mut text = format!("{}\n{}\n\n", results.experiment.name, facts(results));
    let conclusion = conclusion::text(&curves, sweep_axis(results));
    if !conclusion.is_empty() {
        text += &format!("{conclusion}\n\n");
    }
    text += &plain(&tables::overview(&curves, sweep_axis(results)));
    if let Some(rates) = tools::table(results) {
        text += &format!("\nThe path by other tools\n{}", plain(&rates));
    }
    if let Some(name) = reference(results) {
        let ratios = tables::ratios(results, &paired_ratios(results, &curves, name));
        if !ratios.rows.is_empty() {
            text += &format!("\nRatios to {name}\n{}", plain(&ratios));
        }
    }
    let open_loops = open_loop::table(results);
    if !open_loops.rows.is_empty() {
        text += &format!("\nLatency in open loop\n{}", plain(&open_loops));
    }
    let failures = tables::failures(results);
    if !failures.rows.is_empty() {
        text += &format!("\nFailed trials\n{}", plain(&failures));
    }
    text + &profiles::failures(results)
}

fn contents(results: &Results) -> Report {
    let curves = curves(results);
    let axis = sweep_axis(results);
    let mut sections = Vec::new();
    if results.all().next().is_none() {
        sections.push(Section::new("Results", vec![Block::Text("No trial has finished.".to_owned())]));
    } else {
        sections.extend(document::sections(results, &curves));
    }
    if !curves.is_empty() {
        let mut blocks = vec![Block::Table(tables::overview(&curves, axis))];
        blocks.extend((axis == Some("users")).then(|| Block::Text(OVERVIEW.to_owned())));
        sections.push(Section::new("Overview", blocks));
    }
    sections.extend(tools::section(results));
    if !curves.is_empty() {
        sections.extend(charts::sections(&curves, Sweep { axis }));
    }
    sections.extend(ratio_section(results, &curves));
    if !curves.is_empty() {
        let table = Block::Table(tables::points(results, &curves));
        sections.push(Section::folded("All points", vec![table, Block::Text(POINTS.to_owned())]));
    }
    sections.extend(open_loop::section(results));
    sections.extend(model_section(&curves));
    sections.extend(profiles::section(results));
    let failures = tables::failures(results);
    if !failures.rows.is_empty() {
        sections.push(Section::new("Failed trials", vec![Block::Table(failures)]));
    }
    sections.push(run_section(results));
    Report {
        title: results.experiment.name.clone(),
        about: results.experiment.about.trim().to_owned(),
        conclusion: conclusion::text(&curves, axis),
        facts: facts(results),
        sections,
    }
}

/// Returns a line with the start of the run and the number of trials.
fn facts(results: &Results) -> String {
    let order = &results.experiment.order;
    let all = results.all().count();
    let failed = results.all().filter(|trial| trial.measured().is_none()).count();
    let planned = results.experiment.trials().len();
    let missing = if planned > all { format!(" of {planned} planned") } else { String::new() };
    format!(
        "Started {}; {all} trials{missing}, {failed} failed; {} repetitions, {} discarded; plimsoll {}",
        results.run.begun, order.repetitions, order.discarded, results.run.plimsoll
    )
}

fn ratio_section(results: &Results, curves: &[Curve]) -> Option<Section> {
    let name = reference(results)?;
    let table = tables::ratios(results, &paired_ratios(results, curves, name));
    let blocks = vec![Block::Table(table), Block::Text(RATIOS.to_owned())];
    let has_others = curves.iter().any(|curve| curve.contender != name);
    has_others.then(|| Section::new(&format!("Ratios to {name}"), blocks))
}

fn model_section(curves: &[Curve]) -> Option<Section> {
    let tables = [
        (tables::demands(curves), DEMANDS),
        (tables::predictions(curves), MVA),
        (tables::scalability(curves), USL),
    ];
    let filled = tables.into_iter().filter(|(table, _)| !table.rows.is_empty());
    let blocks: Vec<Block> =
        filled.flat_map(|(table, text)| [Block::Text(text.to_owned()), Block::Table(table)]).collect();
    (!blocks.is_empty()).then(|| Section::folded("Demands and models", blocks))
}

fn run_section(results: &Results) -> Section {
    let mut blocks = vec![
        Block::Text(format!("Generator: {}", machine_text(&results.run.machine))),
        Block::Table(tables::contenders(results)),
    ];
    if !results.run.notes.is_empty() {
        blocks.push(Block::List(results.run.notes.clone()));
    }
    blocks.extend([
        Block::Text("To run it again, with the text below as experiment.toml:".to_owned()),
        Block::Code("plimsoll lab run experiment.toml".to_owned()),
        Block::Code(results.text.clone()),
    ]);
    Section::folded("How it was run", blocks)
}

/// Describes a machine in one line, without properties that are unknown.
fn machine_text(machine: &Machine) -> String {
    let linux = if machine.kernel.is_empty() { String::new() } else { format!("Linux {}", machine.kernel) };
    let size = format!("{} cores, {} MiB", machine.cores, machine.memory_mib);
    let mut parts = vec![machine.cpu.clone(), size, machine.system.clone(), linux];
    let named = [
        ("congestion control", &machine.congestion),
        ("loopback MTU", &machine.loopback_mtu),
        ("somaxconn", &machine.somaxconn),
        ("ports", &machine.ports),
    ];
    parts.extend(
        named
            .into_iter()
            .filter(|(_, value)| !value.is_empty())
            .map(|(name, value)| format!("{name} {value}")),
    );
    parts.retain(|part| !part.is_empty());
    parts.join("; ")
}

#[cfg(test)]
mod tests;
