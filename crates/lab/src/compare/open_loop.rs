//! The comparison of open-loop trials at a share of the maximum throughput.
//!
//! It tests no latency. Each run has its own maximum and so its own rates, and near saturation a small
//! difference of the rate is a large one of the latency: equal runs would differ. Invariant: latencies are
//! shown with the rates at which they were measured.

use serde::Serialize;

use super::{CellTest, ComparedFigure, MissingCell, cells, test, values_text};
use crate::analysis::{OpenLoopPoint, open_loop_points};
use crate::experiment::template::Values;
use crate::format::figures::{percent, small_rate, time};
use crate::format::table::Table;
use crate::results::Results;

/// The latencies of a contender at a share of its maximum throughput, in both runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OpenLoopPair {
    /// The name of the contender.
    pub contender: String,
    /// The values of the variables, without the number of users.
    pub case: Values,
    /// The rate in percent of the maximum throughput.
    pub percent: u32,
    /// The rates in requests a second, in the first and in the second run.
    pub rates: [f64; 2],
    /// The median latencies in seconds.
    pub p50: [f64; 2],
    /// The 99th percentiles in seconds.
    pub p99: [f64; 2],
}

/// Returns the tests of the CPU time for a request, which hardly depends on the rate. Adds the cells that
/// are in one run only to `missing`.
pub(super) fn tests(
    one: &Results,
    other: &Results,
    reference: Option<&str>,
    missing: &mut Vec<MissingCell>,
) -> Vec<CellTest> {
    let (one, other) = (with_shares(one), with_shares(other));
    let (first, second) = (cells(&one), cells(&other));
    let is_compared = |cell: &&(String, Values)| Some(cell.0.as_str()) != reference;
    let mut tests = Vec::new();
    for cell in first.iter().filter(is_compared) {
        if second.contains(cell) {
            tests.extend(test(&one, &other, reference, cell, ComparedFigure::CpuPerRequest));
        } else {
            missing.push(MissingCell::new(cell, "only in the first run"));
        }
    }
    let only_second = second.iter().filter(is_compared).filter(|cell| !first.contains(cell));
    missing.extend(only_second.map(|cell| MissingCell::new(cell, "only in the second run")));
    tests
}

/// Returns the latencies of all contenders that both runs have at the same share.
pub(super) fn pairs(one: &Results, other: &Results) -> Vec<OpenLoopPair> {
    let second = open_loop_points(other);
    let pair = |own: &OpenLoopPoint| {
        let is_same = |other: &&OpenLoopPoint| {
            (&other.contender, &other.case, other.percent) == (&own.contender, &own.case, own.percent)
        };
        let other = second.iter().find(is_same)?;
        let (figures, others) = (own.load.figures.as_ref()?, other.load.figures.as_ref()?);
        let percentile = |at: usize| [figures, others].map(|one| one.percentiles[at].mean);
        Some(OpenLoopPair {
            contender: own.contender.clone(),
            case: own.case.clone(),
            percent: own.percent,
            rates: [own.rate?, other.rate?],
            p50: percentile(0),
            p99: percentile(2),
        })
    };
    open_loop_points(one).iter().filter_map(pair).collect()
}

/// Returns results whose trials are the open loops, with the share as a variable of their points.
fn with_shares(results: &Results) -> Results {
    let mut trials = results.open_loops.clone();
    for trial in &mut trials {
        let share = trial.open_loop.map(|one| format!("{} %", one.percent));
        trial.point.insert("open_loop".to_owned(), share.unwrap_or_default());
    }
    Results { trials, open_loops: Vec::new(), ..results.clone() }
}

/// Returns the pairs as text; none without pairs.
pub(super) fn text(pairs: &[OpenLoopPair]) -> Option<String> {
    let mut table = Table::new(["contender", "point", "of Xmax", "requests/s", "p50", "p99"]);
    for pair in pairs {
        let both = |values: [f64; 2], format: fn(f64) -> String| values.map(format).join(" → ");
        table.row([
            pair.contender.clone(),
            values_text(&pair.case),
            percent(f64::from(pair.percent) / 100.0),
            both(pair.rates, small_rate),
            both(pair.p50, time),
            both(pair.p99, time),
        ]);
    }
    let heading = "\nLatencies of open loops, shown and not tested: each run has its own Xmax, and so its \
                   own rates.\n\n";
    (!pairs.is_empty()).then(|| format!("{heading}{}", table.text()))
}
