//! Aggregates trials: a cell for each case and congestion control, with every contender's figures.
//!
//! It formats nothing. Invariants: ratios are of pairs from the same round; a failed trial is in no figure,
//! but is counted.

use serde::{Deserialize, Serialize};

use crate::bench::{Measured, Results, Trial};
use crate::stats::{Estimate, bootstrap, median, paired_ratios};

/// A contender is marked as limited by the generator if the median of its trials' flags (0 or 1) exceeds
/// this.
const MOST: f64 = 0.5;

/// One case under one congestion control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The case's name.
    pub case: String,
    /// The congestion control.
    pub congestion: String,
    /// Every contender's figures, in the order of the entrants.
    pub summaries: Vec<Summary>,
    /// Ratios of each of ours to every peer, and to our others.
    pub ratios: Vec<Ratio>,
}

/// The figures of a contender in a cell, over all rounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Its name.
    pub contender: String,
    /// Whether it is one of ours.
    pub ours: bool,
    /// Responses per second.
    pub rate: Option<Estimate>,
    /// Bytes of bodies per second.
    pub bytes: Option<Estimate>,
    /// CPU time of the server per response, in microseconds.
    pub cpu_us: Option<Estimate>,
    /// The median over trials of the 99th percentile of latency, in microseconds.
    pub p99_us: Option<f64>,
    /// Whether the generator limited most of the trials.
    pub generator_is_the_limit: bool,
    /// Errors in all trials.
    pub errors: u64,
    /// Trials that failed.
    pub failed: usize,
}

/// Ratios of one of ours to another contender, paired by round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The name of ours.
    pub ours: String,
    /// The name of the other.
    pub theirs: String,
    /// Whether the other is the peer with the most responses per second in this cell.
    pub best_rate: bool,
    /// Whether the other is the peer with the least CPU time per response in this cell.
    pub best_cpu: bool,
    /// Ratio of responses per second: more than 1 is better.
    pub rate: Option<Estimate>,
    /// Ratio of CPU times per response: less than 1 is better.
    pub cpu: Option<Estimate>,
}

/// Returns all cells, in the order in which they ran.
pub fn cells(results: &Results) -> Vec<Cell> {
    let mut keys: Vec<(&str, &str)> = Vec::new();
    for trial in &results.trials {
        let key = (trial.case.as_str(), trial.congestion.as_str());
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys.into_iter().map(|(case, congestion)| cell(results, case, congestion)).collect()
}

fn cell(results: &Results, case: &str, congestion: &str) -> Cell {
    let is_here = |trial: &&Trial| trial.case == case && trial.congestion == congestion;
    let trials: Vec<&Trial> = results.trials.iter().filter(is_here).collect();
    let entrants = results.entrants.iter();
    let summaries: Vec<Summary> =
        entrants.map(|entrant| summary(&entrant.name, entrant.ours, &trials)).collect();
    let ratios = ratios(&summaries, &trials);
    Cell { case: case.to_owned(), congestion: congestion.to_owned(), summaries, ratios }
}

fn summary(contender: &str, ours: bool, trials: &[&Trial]) -> Summary {
    let own: Vec<&&Trial> = trials.iter().filter(|trial| trial.contender == contender).collect();
    let measured: Vec<&Measured> = own.iter().filter_map(|trial| trial.measured.as_ref()).collect();
    let figures = |of: fn(&Measured) -> f64| measured.iter().map(|one| of(one)).collect::<Vec<f64>>();
    let cpu: Vec<f64> = measured.iter().filter_map(|one| one.cpu_us_per_request).collect();
    let limited = measured.iter().map(|one| if one.generator_is_the_limit { 1.0 } else { 0.0 });
    Summary {
        contender: contender.to_owned(),
        ours,
        rate: bootstrap(&figures(|one| one.requests_per_second)),
        bytes: bootstrap(&figures(|one| one.bytes_per_second)),
        cpu_us: bootstrap(&cpu),
        p99_us: median(&figures(|one| one.p99_us)),
        generator_is_the_limit: median(&limited.collect::<Vec<f64>>()).is_some_and(|share| share > MOST),
        errors: measured.iter().flat_map(|one| one.errors.values()).sum(),
        failed: own.len() - measured.len(),
    }
}

fn ratios(summaries: &[Summary], trials: &[&Trial]) -> Vec<Ratio> {
    let peers = || summaries.iter().filter(|summary| !summary.ours);
    let middle = |estimate: Option<Estimate>| estimate.map(|estimate| estimate.median);
    let rate = |one: &&Summary| middle(one.rate).unwrap_or(0.0);
    let cpu = |one: &&Summary| middle(one.cpu_us).unwrap_or(f64::INFINITY);
    let best_rate = peers().max_by(|a, b| rate(a).total_cmp(&rate(b))).map(|best| &best.contender);
    let best_cpu = peers().min_by(|a, b| cpu(a).total_cmp(&cpu(b))).map(|best| &best.contender);
    let ours = summaries.iter().filter(|summary| summary.ours);
    let pairs =
        ours.flat_map(|ours| summaries.iter().map(move |theirs| (&ours.contender, &theirs.contender)));
    pairs
        .filter(|(ours, theirs)| ours != theirs)
        .map(|(ours, theirs)| Ratio {
            ours: ours.clone(),
            theirs: theirs.clone(),
            best_rate: Some(theirs) == best_rate,
            best_cpu: Some(theirs) == best_cpu,
            rate: ratio(trials, ours, theirs, |one| Some(one.requests_per_second)),
            cpu: ratio(trials, ours, theirs, |one| one.cpu_us_per_request),
        })
        .collect()
}

fn ratio(
    trials: &[&Trial],
    ours: &str,
    theirs: &str,
    figure: fn(&Measured) -> Option<f64>,
) -> Option<Estimate> {
    let of = |name: &str, round: u32| {
        let mut found = trials.iter().filter(|trial| trial.contender == name && trial.round == round);
        found.next().and_then(|trial| figure(trial.measured.as_ref()?))
    };
    let rounds = trials.iter().filter(|trial| trial.contender == ours).map(|trial| trial.round);
    let pairs: Vec<(f64, f64)> =
        rounds.filter_map(|round| Some((of(ours, round)?, of(theirs, round)?))).collect();
    bootstrap(&paired_ratios(&pairs))
}
