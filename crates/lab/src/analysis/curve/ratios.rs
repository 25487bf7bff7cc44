//! Ratios of each contender to the reference, paired by point and repetition.
//!
//! They are not ratios of means. Invariants: both trials of a pair have the same repetition, and the same
//! values of the variables that concern the reference. A drift of the machine cancels out. Of many ratios,
//! those that differ from 1 are found with one probability of any error for all of them.

use super::points::cpu_per_request;
use super::{Curve, kept};
use crate::experiment::template::Values;
use crate::results::{FinishedTrial, Measured, Results};
use crate::stats::MeanInterval;
use crate::stats::student::holm;

/// The probability that any ratio is taken for different although all are equal.
const FAMILY_LEVEL: f64 = 0.05;

/// The ratios of a contender to the reference at a point.
#[derive(Clone, Debug)]
pub struct PointRatio {
    /// The name of the contender.
    pub contender: String,
    /// The values of all variables.
    pub point: Values,
    /// Of requests a second: above 1 is better.
    pub throughput: Option<MeanInterval>,
    /// Of mean latencies: below 1 is better.
    pub response: Option<MeanInterval>,
    /// Of CPU times for a request: below 1 is better.
    pub cpu: Option<MeanInterval>,
    /// Whether throughput, latency and CPU time differ from those of the reference, with Holm's correction
    /// for the number of all ratios.
    pub differs: [bool; 3],
}

impl PointRatio {
    /// Returns the ratios of throughput, latency and CPU time.
    pub fn figures(&self) -> [Option<MeanInterval>; 3] {
        [self.throughput, self.response, self.cpu]
    }
}

/// Returns the name of the contender that the others are compared with: the reference, or else the first.
pub fn reference(results: &Results) -> Option<&str> {
    let mut entrants = results.run.contenders.iter().filter(|one| !results.experiment.is_tool(&one.name));
    let marked = entrants.clone().find(|one| one.reference).or_else(|| entrants.next());
    marked.map(|one| one.name.as_str()).or_else(|| results.trials.first().map(|one| one.contender.as_str()))
}

/// Returns the ratios of all contenders but the reference, in the order of the curves.
pub fn paired_ratios(results: &Results, curves: &[Curve], reference: &str) -> Vec<PointRatio> {
    let mut ratios = Vec::new();
    for curve in curves.iter().filter(|curve| curve.contender != reference) {
        for point in &curve.points {
            let own = |figure: &dyn Fn(&Measured) -> Option<f64>| {
                ratio(results, reference, &curve.contender, &point.point, figure)
            };
            ratios.push(PointRatio {
                contender: curve.contender.clone(),
                point: point.point.clone(),
                throughput: own(&|one| Some(one.load.requests_per_second)),
                response: own(&|one| Some(one.load.latency_us.mean)),
                cpu: own(&cpu_per_request),
                differs: [false; 3],
            });
        }
    }
    mark_differences(&mut ratios);
    ratios
}

fn mark_differences(ratios: &mut [PointRatio]) {
    let (mut places, mut probabilities) = (Vec::new(), Vec::new());
    for (at, one) in ratios.iter().enumerate() {
        for (figure, ratio) in one.figures().into_iter().enumerate() {
            if let Some(probability) = ratio.and_then(|ratio| ratio.probability_of_equality()) {
                places.push((at, figure));
                probabilities.push(probability);
            }
        }
    }
    for ((at, figure), corrected) in places.into_iter().zip(holm(&probabilities)) {
        ratios[at].differs[figure] = corrected < FAMILY_LEVEL;
    }
}

fn ratio(
    results: &Results,
    reference: &str,
    contender: &str,
    point: &Values,
    figure: &dyn Fn(&Measured) -> Option<f64>,
) -> Option<MeanInterval> {
    let own = results.trials.iter().filter(|one| one.contender == contender && one.point == *point);
    let pairs = own.filter_map(|trial| {
        let other = counterpart(results, reference, trial)?;
        let (own, other) = (figure(kept(results, trial)?)?, figure(kept(results, other)?)?);
        (own > 0.0 && other > 0.0).then_some(own / other)
    });
    MeanInterval::of_ratios(&pairs.collect::<Vec<f64>>())
}

/// Returns the trial of the reference with the same repetition and the same values of its variables.
pub(crate) fn counterpart<'a>(
    results: &'a Results,
    reference: &str,
    trial: &FinishedTrial,
) -> Option<&'a FinishedTrial> {
    let has_values = |point: &Values| point.iter().all(|(name, value)| trial.point.get(name) == Some(value));
    results.trials.iter().find(|other| {
        other.contender == reference && other.repetition == trial.repetition && has_values(&other.point)
    })
}
