//! The service demands of a curve, and the bounds and the prediction that follow from them.
//!
//! Demands are measured at the smallest number of users, by the utilisation law. The rest of its response
//! time is a delay without a queue (network, generator, waits). No probe sees a lock: if the throughput stops
//! growing while no observed resource is saturated, an unobserved one has the demand 1 / Xmax. The prediction
//! is mean value analysis, which assumes exponential demands: constant ones give more. Invariants: the
//! prediction at the smallest number of users has the measured response time, unless the demands alone exceed
//! it; demands whose bound a measured point exceeds have neither bounds nor a prediction.

use super::hint::{ContenderMachine, ResourceKind};
use super::{Curve, LoadPoint, PointFigures};
use crate::analysis::{Bounds, Centre, Point, demand, solve};

/// The name of the resource that no probe sees.
const UNOBSERVED: &str = "a lock or limit (from Xmax)";
/// The throughput has stopped growing if doubled users add less than this share.
const PLATEAU: f64 = 0.05;

/// How far a measured throughput may be above the bound of the demands, which are measured too.
const BOUND_EXCEEDED: f64 = 0.1;

/// How far a useful prediction may be from a measured throughput.
const PREDICTION_MISSED: f64 = 0.25;

/// The largest number of users for which a prediction is computed: its time grows with the square.
const PREDICTED_USERS: u32 = 2000;
/// The largest number of users at which demands are measured.
const FEW_USERS: u32 = 64;

/// The service demands of a request.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceDemands {
    /// The number of users at which they were measured.
    pub users: u32,
    /// The demand at each resource with a queue.
    pub resources: Vec<ServiceDemand>,
    /// The demand of each process alone.
    pub processes: Vec<(String, f64)>,
    /// The demand at each core of the machine, of all its processes and the kernel.
    pub cores: Vec<f64>,
    /// The rest of the response time in seconds, without a queue.
    pub delay: f64,
    /// The measured point that their bound excludes: they are not those of a request under load.
    pub contradiction: Option<BoundContradiction>,
}

/// A measured point above the asymptotic bound of the demands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundContradiction {
    /// The number of users.
    pub users: u32,
    /// The measured throughput.
    pub throughput: f64,
    /// The bound.
    pub bound: f64,
}

/// The service demand at a resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceDemand {
    /// The name of the resource.
    pub name: String,
    /// Its kind.
    pub kind: ResourceKind,
    /// Seconds for each request.
    pub demand: f64,
    /// The number of its servers.
    pub servers: u32,
}

/// The prediction of mean value analysis.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The throughput and response time for each number of users from 1.
    pub points: Vec<Point>,
    /// Its relative errors at the measured numbers of users above the one of the demands.
    pub errors: Vec<PredictionError>,
}

/// The relative errors of a prediction: positive if it is above the measured figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictionError {
    /// The number of users.
    pub users: u32,
    /// Of the throughput.
    pub throughput: f64,
    /// Of the response time; none if none was measured.
    pub response: Option<f64>,
}

impl Prediction {
    /// Returns whether it describes the contender: no measured throughput is missed by more than a quarter.
    pub fn is_close(&self) -> bool {
        self.errors.iter().all(|error| error.throughput.abs() <= PREDICTION_MISSED)
    }
}

impl ServiceDemands {
    fn centres(&self, delay: f64) -> Vec<Centre> {
        let queues = self.resources.iter().map(|one| match one.servers {
            0 | 1 => Centre::Queue(one.demand),
            servers => Centre::Servers(one.demand, servers),
        });
        queues.chain([Centre::Delay(delay)]).collect()
    }
}

/// Adds demands, bounds and prediction to a curve, as far as its points determine them.
pub(super) fn add(curve: &mut Curve, machine: &ContenderMachine) {
    let measured = curve.points.iter().filter_map(|point| Some((point, point.figures.as_ref()?)));
    let Some((point, figures)) = measured.into_iter().find(|(_, figures)| !figures.is_open) else { return };
    let Some(mut demands) = demands(point, figures, machine) else { return };
    demands.resources.extend(unobserved(curve, &demands));
    let Some(delay) = delay(&demands, figures.response.mean, curve.think) else { return };
    demands.delay = delay;
    let largest = demands.resources.iter().map(|one| one.demand / f64::from(one.servers.max(1)));
    let largest_demand = largest.fold(0.0, f64::max);
    let sum: f64 = demands.resources.iter().map(|one| one.demand).sum();
    let bounds = (largest_demand > 0.0).then_some(Bounds {
        total_demand: sum + demands.delay,
        largest_demand,
        think: curve.think,
    });
    demands.contradiction = bounds.and_then(|bounds| contradiction(&bounds, curve));
    if demands.contradiction.is_none() {
        curve.bounds = bounds;
        curve.prediction = prediction(&demands, curve);
    }
    curve.demands = Some(demands);
}

/// Returns the measured point that is the farthest above the bounds, beyond its interval.
fn contradiction(bounds: &Bounds, curve: &Curve) -> Option<BoundContradiction> {
    let measured = curve.points.iter().filter_map(|point| Some((point.users, point.figures.as_ref()?)));
    let closed = measured.filter(|(_, figures)| !figures.is_open);
    let exceeding = closed.filter_map(|(users, figures)| {
        let (throughput, bound) = (figures.throughput.mean, bounds.throughput(f64::from(users)));
        let low = figures.throughput.interval.map_or(throughput, |[low, _]| low);
        let exceeds = throughput > bound * (1.0 + BOUND_EXCEEDED) && low > bound;
        exceeds.then_some(BoundContradiction { users, throughput, bound })
    });
    exceeding.max_by(|one, other| (one.throughput / one.bound).total_cmp(&(other.throughput / other.bound)))
}

fn demands(point: &LoadPoint, figures: &PointFigures, machine: &ContenderMachine) -> Option<ServiceDemands> {
    let throughput = figures.throughput.mean;
    let of = |busy: f64| demand(busy, throughput);
    let resources: Vec<ServiceDemand> = machine
        .service_resources(figures)
        .into_iter()
        .filter_map(|one| {
            Some(ServiceDemand {
                demand: of(one.busy)?,
                name: one.name,
                kind: one.kind,
                servers: one.servers,
            })
        })
        .collect();
    if resources.is_empty() {
        return None;
    }
    let processes = figures.processes.iter();
    let processes =
        processes.filter_map(|one| Some((one.name.clone(), of(one.user + one.system)?))).collect();
    let cores = figures.cores.iter().filter_map(|busy| of(*busy)).collect();
    let users = point.users;
    Some(ServiceDemands { users, resources, processes, cores, delay: 0.0, contradiction: None })
}

/// Returns the resource that no probe sees, if there must be one: the throughput has stopped growing although
/// no observed resource is saturated.
fn unobserved(curve: &Curve, demands: &ServiceDemands) -> Option<ServiceDemand> {
    let is_explained = curve.hint.as_ref().is_none_or(|hint| !hint.saturated.is_empty());
    let [.., before, last] = curve.closed_points()[..] else { return None };
    let grows = last.throughput > before.throughput * (1.0 + PLATEAU);
    let is_doubled = last.users >= before.users.saturating_mul(2);
    let demand = 1.0 / curve.saturation?.throughput_max;
    let exceeds = |one: &ServiceDemand| demand > one.demand / f64::from(one.servers.max(1));
    let is_largest = demands.resources.iter().all(exceeds);
    (!is_explained && !grows && is_doubled && is_largest).then(|| ServiceDemand {
        name: UNOBSERVED.to_owned(),
        kind: ResourceKind::Unobserved,
        demand,
        servers: 1,
    })
}

/// Returns the delay with which the response time of the model is the measured one. None with more users
/// than a model of few users has.
fn delay(demands: &ServiceDemands, response: f64, think: f64) -> Option<f64> {
    let users = demands.users;
    if users == 0 || users > FEW_USERS {
        return None;
    }
    let modelled = |delay: f64| {
        solve(&demands.centres(delay), think, users).last().map_or(0.0, |solution| solution.response)
    };
    let (mut low, mut high) = (0.0, response);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if modelled(middle) < response {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low)
}

fn prediction(demands: &ServiceDemands, curve: &Curve) -> Option<Prediction> {
    let measured = curve.closed_points();
    let most = measured.iter().map(|point| point.users).max()?;
    if most > PREDICTED_USERS {
        return None;
    }
    let solutions = solve(&demands.centres(demands.delay), curve.think, most);
    let point = |solution: &crate::analysis::Solution| Point {
        users: solution.users,
        throughput: solution.throughput,
        response: solution.response,
    };
    let points: Vec<Point> = solutions.iter().map(point).collect();
    // The point that a demand was computed from is no test of it.
    let is_unobserved = |one: &ServiceDemand| one.kind == ResourceKind::Unobserved;
    let has_unobserved = demands.resources.iter().any(is_unobserved);
    let used = curve.saturation.filter(|_| has_unobserved).map(|saturation| saturation.users_at_max);
    let larger = measured.iter().filter(|point| point.users > demands.users && point.throughput > 0.0);
    let larger = larger.filter(|point| Some(point.users) != used);
    let error = |measured: &Point| {
        let predicted = points.iter().find(|point| point.users == measured.users)?;
        let has_response = measured.response > 0.0;
        Some(PredictionError {
            users: measured.users,
            throughput: predicted.throughput / measured.throughput - 1.0,
            response: has_response.then(|| predicted.response / measured.response - 1.0),
        })
    };
    let errors = larger.filter_map(error).collect();
    Some(Prediction { points, errors })
}
