//! Cells of the report's tables: figures with their interval and number of samples, and remarks.
//!
//! It computes nothing. Invariant: a figure of repeated trials stands with its number of samples.

use super::content::Cell;
use crate::analysis::{LoadPoint, PointFigures};
use crate::experiment::template::Values;
use crate::format::figures::NONE;
use crate::results::BEGAN_BUSY;
use crate::stats::MeanInterval;

/// The deviation of Little's law from 1 that a remark reports.
const LITTLES_DEVIATION: f64 = 0.05;

/// Returns the cell of a mean.
pub(super) fn mean(value: Option<MeanInterval>, format: impl Fn(f64) -> String) -> Cell {
    let detail = value.map_or_else(String::new, |value| detail(&value, &format));
    Cell { detail, ..Cell::figure(value.map(|value| value.mean), format) }
}

/// Formats an interval and a number of samples, such as `[14.9k, 15.6k] n=5`. No figure can be below 0,
/// so that the interval ends there.
pub(super) fn detail(value: &MeanInterval, format: &impl Fn(f64) -> String) -> String {
    match value.interval {
        Some([low, high]) => format!("[{}, {}] n={}", format(low.max(0.0)), format(high), value.count),
        None => format!("n={}", value.count),
    }
}

/// Formats a mean in one line, such as `15.2k [14.9k, 15.6k] n=5`.
pub(super) fn mean_line(value: &MeanInterval, format: &impl Fn(f64) -> String) -> String {
    format!("{} {}", format(value.mean), detail(value, format))
}

/// Formats the values of variables, such as `size=1K users=8`.
pub(super) fn values_text(values: &Values) -> String {
    let pairs: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.join(" ")
}

/// Returns the cells of a point's variables; one that does not concern the contender is missing.
pub(super) fn variables(names: &[&str], values: &Values) -> Vec<Cell> {
    let cell = |name: &&str| {
        let text = values.get(*name).map_or(NONE, String::as_str);
        Cell { order: text.parse().ok(), is_figure: text.parse::<f64>().is_ok(), ..Cell::words(text) }
    };
    names.iter().map(cell).collect()
}

/// Returns everything that may distort the figures of a point, in words.
pub(super) fn remarks(point: &LoadPoint) -> String {
    let mut remarks: Vec<String> = Vec::new();
    if point.failed > 0 {
        remarks.push(format!("{} failed", point.failed));
    }
    if point.left_out > 0 {
        remarks.push(format!("{} left out: {BEGAN_BUSY}", point.left_out));
    }
    remarks.extend(point.figures.as_ref().map(figure_remarks).unwrap_or_default());
    remarks.join("; ")
}

fn figure_remarks(figures: &PointFigures) -> Vec<String> {
    let trials = figures.throughput.count;
    let mark = |(mark, count): &(String, usize)| format!("{mark} ({count} of {trials})");
    let mut remarks: Vec<String> = figures.marks.iter().map(mark).collect();
    if figures.errors > 0 {
        remarks.push(format!("{} errors", figures.errors));
    }
    if figures.missed_starts > 0 {
        remarks.push(format!("{} planned starts missed", figures.missed_starts));
    }
    // A trial that has such a sign by itself has it among its marks.
    let is_marked = |word: &str| figures.marks.iter().any(|(mark, _)| mark.contains(word));
    if figures.is_limited_by_generator && !is_marked("generator") {
        remarks.push("the generator may be the limit".to_owned());
    }
    let is_off = (figures.littles_ratio - 1.0).abs() > LITTLES_DEVIATION && figures.littles_ratio > 0.0;
    if is_off && !is_marked("Little's law") {
        remarks.push(format!("X (R + Z) / N is {:.2}, not 1", figures.littles_ratio));
    }
    remarks
}
