//! The curves of an experiment: the figures of a contender against the number of users, with all that
//! follows from them.
//!
//! It formats nothing. Invariants: only measured repetitions after the discarded ones are in a figure; a
//! figure that the trials do not determine is `None`.

mod hint;
mod marks;
mod model;
mod open_loop;
mod points;
mod ratios;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::{Bounds, Point, Saturation, SaturationRange, Scalability};
use crate::experiment::load::{RATE, USERS};
use crate::experiment::template::Values;
use crate::experiment::{Trial, TrialSettings};
use crate::results::{Entrant, FinishedTrial, Measured, Results};

pub use hint::{Hint, Resource, ResourceKind};
pub use model::{BoundContradiction, Prediction, PredictionError, ServiceDemand, ServiceDemands};
pub use open_loop::{OpenLoopPoint, open_loop_points};
pub(crate) use points::cpu_per_request;
pub use points::{DiskLoad, LoadPoint, PointFigures, ProcessLoad};
pub(crate) use ratios::counterpart;
pub use ratios::{PointRatio, paired_ratios, reference};

/// So many repetitions that began on an idle machine replace those that did not: two have an interval.
const IDLE_ENOUGH: usize = 2;

/// The figures of a contender with all variables fixed but one.
#[derive(Clone, Debug)]
pub struct Curve {
    /// The name of the contender.
    pub contender: String,
    /// The values of the fixed variables.
    pub values: Values,
    /// The think time of the users in seconds.
    pub think: f64,
    /// The points, by rising load.
    pub points: Vec<LoadPoint>,
    /// Where it saturates; of closed loops only, as all that follows.
    pub saturation: Option<Saturation>,
    /// How far N* and N95 of the repetitions are apart.
    pub saturation_range: SaturationRange,
    /// The response time in seconds at N* users, interpolated between measured points.
    pub response_at_saturation: Option<f64>,
    /// The fit of the universal scalability law.
    pub scalability: Option<Scalability>,
    /// The service demands at the smallest number of users.
    pub demands: Option<ServiceDemands>,
    /// The asymptotic bounds of these demands.
    pub bounds: Option<Bounds>,
    /// The throughput and response time that mean value analysis expects from these demands.
    pub prediction: Option<Prediction>,
    /// A first answer to the question for the bottleneck, by utilisation at the maximum throughput. A
    /// measured verdict will stand beside it.
    pub hint: Option<Hint>,
}

impl Curve {
    /// Returns the measured points of closed loops.
    pub fn closed_points(&self) -> Vec<Point> {
        let measured = self.points.iter().filter_map(|point| Some((point, point.figures.as_ref()?)));
        let closed = measured.filter(|(_, figures)| !figures.is_open);
        let point = |(point, figures): (&LoadPoint, &PointFigures)| Point {
            users: point.users,
            throughput: figures.throughput.mean,
            response: figures.response.mean,
        };
        closed.map(point).collect()
    }

    /// Returns the point with the maximum throughput.
    pub fn best_point(&self) -> Option<&LoadPoint> {
        let measured = self.points.iter().filter(|point| point.figures.is_some());
        let throughput = |point: &LoadPoint| point.figures.as_ref().map_or(0.0, |one| one.throughput.mean);
        measured.max_by(|one, other| throughput(one).total_cmp(&throughput(other)))
    }
}

/// Returns the maximum throughput of a contender in a case: with these values of all variables but the
/// number of users. None without a measured closed loop.
pub fn maximum_throughput(results: &Results, contender: &str, case: &Values) -> Option<f64> {
    let of_case = curve(results, USERS, contender, case.clone());
    of_case.saturation.map(|saturation| saturation.throughput_max)
}

/// Returns the variable on the horizontal axis: `users` if several numbers were measured, or else `rate`.
/// None if neither was swept.
pub fn sweep_axis(results: &Results) -> Option<&'static str> {
    let is_swept = |name: &str| {
        let mut values: Vec<&str> =
            results.trials.iter().filter_map(|trial| trial.point.get(name)).map(String::as_str).collect();
        values.sort_unstable();
        values.dedup();
        values.len() > 1
    };
    [USERS, RATE].into_iter().find(|name| is_swept(name))
}

/// Returns the curves of all contenders, in the order of the contenders and of the trials. Load tools have
/// none: they have no requests.
pub fn curves(results: &Results) -> Vec<Curve> {
    let axis = sweep_axis(results).unwrap_or(USERS);
    let mut keys: Vec<(&str, Values)> = Vec::new();
    for trial in results.trials.iter().filter(|trial| !results.experiment.is_tool(&trial.contender)) {
        let mut values = trial.point.clone();
        values.remove(axis);
        let key = (trial.contender.as_str(), values);
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    in_order(results, &mut keys, |(name, _)| name);
    keys.into_iter().map(|(contender, values)| curve(results, axis, contender, values)).collect()
}

/// Sorts items by their contenders, as the run has them; its sort is stable.
fn in_order<T>(results: &Results, items: &mut [T], contender: impl Fn(&T) -> &str) {
    let names: Vec<&str> = results.run.contenders.iter().map(|one| one.name.as_str()).collect();
    let place = |item: &T| names.iter().position(|known| *known == contender(item)).unwrap_or(usize::MAX);
    items.sort_by_key(place);
}

fn curve(results: &Results, axis: &str, contender: &str, values: Values) -> Curve {
    let own: Vec<&FinishedTrial> =
        results.trials.iter().filter(|trial| trial.contender == contender).collect();
    let own = own.into_iter().filter(|trial| {
        let mut fixed = trial.point.clone();
        fixed.remove(axis);
        fixed == values
    });
    let own: Vec<&FinishedTrial> = own.collect();
    let settings = own.iter().find_map(|trial| settings(results, trial));
    let think = settings.as_ref().and_then(|settings| settings.load.think().ok());
    let mut curve = Curve {
        contender: contender.to_owned(),
        values,
        think: think.map_or(0.0, |think| think.as_secs_f64()),
        points: points::of(results, axis, &own),
        saturation: None,
        saturation_range: SaturationRange::default(),
        response_at_saturation: None,
        scalability: None,
        demands: None,
        bounds: None,
        prediction: None,
        hint: None,
    };
    let conditions = settings.map(|settings| settings.conditions).unwrap_or_default();
    let machine = hint::ContenderMachine::new(results, contender, &conditions);
    curve.hint = curve.best_point().and_then(|point| machine.hint(point));
    let closed = curve.closed_points();
    curve.saturation = Saturation::of(&closed, curve.think);
    let repetitions = repetitions(results, &own);
    curve.saturation_range =
        curve.saturation.map(|one| SaturationRange::of(&one, &repetitions, curve.think)).unwrap_or_default();
    curve.scalability = Scalability::fit(&closed);
    let crossing = curve.saturation.and_then(|saturation| saturation.asymptotic);
    curve.response_at_saturation = crossing.and_then(|users| interpolated_response(&closed, users));
    model::add(&mut curve, &machine);
    curve
}

/// Returns the points of closed loops of each repetition.
fn repetitions(results: &Results, trials: &[&FinishedTrial]) -> Vec<Vec<Point>> {
    let mut all: BTreeMap<u32, Vec<Point>> = BTreeMap::new();
    for trial in trials {
        let Some(load) = kept(results, trial).map(|one| &one.load).filter(|load| load.pace == "closed")
        else {
            continue;
        };
        let users = u32::try_from(load.users).unwrap_or(u32::MAX);
        let (throughput, response) = (load.requests_per_second, load.latency_us.mean * 1e-6);
        all.entry(trial.repetition).or_default().push(Point { users, throughput, response });
    }
    all.into_values().collect()
}

/// Returns what the experiment says about a finished trial. None if its contender is unknown.
pub(super) fn settings(results: &Results, trial: &FinishedTrial) -> Option<TrialSettings> {
    let contender = results.experiment.contenders.iter().position(|one| one.name == trial.contender)?;
    let (open_loop, repetition) = (trial.open_loop, trial.repetition);
    let planned = Trial { contender, point: trial.point.clone(), open_loop, repetition };
    results.experiment.settings(&planned).ok()
}

/// Returns the figures of a trial, unless it failed, is discarded, or began on a busy machine while
/// [`IDLE_ENOUGH`] other repetitions began on an idle one.
pub(crate) fn kept<'a>(results: &Results, trial: &'a FinishedTrial) -> Option<&'a Measured> {
    let measured = trial.measured().filter(|_| trial.repetition > results.experiment.order.discarded);
    measured.filter(|_| !is_replaced(results, trial))
}

/// Returns whether a repetition does not count because it began on a busy machine, and others did not.
fn is_replaced(results: &Results, trial: &FinishedTrial) -> bool {
    let is_late = |trial: &FinishedTrial| trial.repetition > results.experiment.order.discarded;
    let has = |trial: &FinishedTrial, busy: bool| {
        is_late(trial) && trial.measured().is_some_and(|measured| measured.began_busy() == busy)
    };
    let is_idle_repetition = |other: &&FinishedTrial| {
        let is_same = (&other.contender, &other.open_loop, &other.point)
            == (&trial.contender, &trial.open_loop, &trial.point);
        is_same && has(other, false)
    };
    has(trial, true) && results.all().filter(is_idle_repetition).take(IDLE_ENOUGH).count() == IDLE_ENOUGH
}

/// Returns what is known of a contender.
fn entrant<'a>(results: &'a Results, contender: &str) -> Option<&'a Entrant> {
    results.run.contenders.iter().find(|one| one.name == contender)
}

/// Interpolates linearly between the two measured points around `users`.
fn interpolated_response(points: &[Point], users: f64) -> Option<f64> {
    let at = |point: &Point| f64::from(point.users);
    let pair = points.windows(2).find(|pair| at(&pair[0]) <= users && users <= at(&pair[1]))?;
    let width = at(&pair[1]) - at(&pair[0]);
    let share = if width > 0.0 { (users - at(&pair[0])) / width } else { 0.0 };
    Some(pair[0].response + (pair[1].response - pair[0].response) * share)
}
