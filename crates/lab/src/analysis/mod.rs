//! The analysis of a closed system: its demands, bounds and saturation, from throughput and response time.
//!
//! A system is a number of resources (centres), each with a service demand: the time for which a request uses
//! it, in seconds. N users send a request, wait for the response, think for Z seconds, and repeat. X is the
//! throughput in requests a second, R the response time in seconds.
//!
//! It measures nothing. Invariants: every result is a function of its arguments; a result that the samples do
//! not determine is `None`, not a guess.
//!
//! Sources: Denning and Buzen, "The Operational Analysis of Queueing Network Models", ACM Computing Surveys
//! 10 (3), 1978 (the laws and the bounds); Reiser and Lavenberg, "Mean-Value Analysis of Closed Multichain
//! Queuing Networks", Journal of the ACM 27 (2), 1980; Gunther, "Guerrilla Capacity Planning", 2007 (the
//! universal scalability law).

mod bit_rate;
mod bounds;
mod curve;
mod document;
mod knee;
mod mva;
mod scalability;

pub use bit_rate::{BitRate, bit_rates};
pub use bounds::Bounds;
use curve::settings;
pub use curve::{
    BoundContradiction, Curve, DiskLoad, Hint, LoadPoint, OpenLoopPoint, PointFigures, PointRatio,
    Prediction, PredictionError, ProcessLoad, Resource, ResourceKind, ServiceDemand, ServiceDemands, curves,
    maximum_throughput, open_loop_points, paired_ratios, reference, sweep_axis,
};
pub(crate) use curve::{counterpart, cpu_per_request, kept};
pub use document::{OwnFigure, document_figure};
pub use knee::{Point, Saturation, SaturationRange};
pub use mva::{Centre, Solution, solve};
pub use scalability::Scalability;

/// Returns the service demand of a resource, in seconds, by the utilisation law: U = X D. `busy` is the
/// busy time of the resource for each second, which may exceed 1 for several processors.
pub fn demand(busy: f64, requests_per_second: f64) -> Option<f64> {
    (requests_per_second > 0.0 && busy >= 0.0).then(|| busy / requests_per_second)
}

/// Returns the mean number of requests in a system by Little's law: N = X R.
pub fn in_system(requests_per_second: f64, response_seconds: f64) -> f64 {
    requests_per_second * response_seconds
}
