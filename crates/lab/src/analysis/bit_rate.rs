//! The rates of bodies in Mbit/s, of file servers and of load tools alike.
//!
//! It has no requests. Invariants: a rate is that of the bodies, or of the bytes that a tool counts as
//! received: headers are in neither. A share of a link exists only where the conditions limit its rate.

use super::{kept, settings};
use crate::experiment::template::Values;
use crate::results::{FinishedTrial, Measured, Results};
use crate::stats::MeanInterval;

/// Bits of a byte, and of a Mbit.
const BITS: f64 = 8.0;
const MEGABIT: f64 = 1e6;

/// The rate of a contender at a point.
#[derive(Clone, Debug)]
pub struct BitRate {
    /// The name of the contender.
    pub contender: String,
    /// The values of its variables.
    pub point: Values,
    /// Mbit/s (1,000,000 bits a second).
    pub megabits: MeanInterval,
    /// The fraction of the rate of the link.
    pub share: Option<f64>,
}

/// Returns the rates of all contenders at all points, in the order of their first trials.
pub fn bit_rates(results: &Results) -> Vec<BitRate> {
    let mut groups: Vec<Vec<&FinishedTrial>> = Vec::new();
    for trial in &results.trials {
        let is_same =
            |other: &FinishedTrial| other.contender == trial.contender && other.point == trial.point;
        match groups.iter_mut().find(|group| is_same(group[0])) {
            Some(group) => group.push(trial),
            None => groups.push(vec![trial]),
        }
    }
    let rate = |group: Vec<&FinishedTrial>| {
        let measured = group.iter().filter_map(|trial| kept(results, trial));
        let megabits = MeanInterval::of(&measured.map(megabits).collect::<Vec<f64>>())?;
        let link = settings(results, group[0])?.conditions.link.and_then(|link| link.rate);
        #[allow(clippy::cast_precision_loss, reason = "a rate below 2^52")]
        let share = link.map(|link| megabits.mean * MEGABIT / link as f64);
        let (contender, point) = (group[0].contender.clone(), group[0].point.clone());
        Some(BitRate { contender, point, megabits, share })
    };
    groups.into_iter().filter_map(rate).collect()
}

fn megabits(measured: &Measured) -> f64 {
    measured.load.bytes_per_second * BITS / MEGABIT
}
