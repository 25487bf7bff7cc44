//! The figures of a document's table, as our trials have them.
//!
//! It formats nothing. Invariants: a figure that the trials do not determine is missing; only measured
//! repetitions after the discarded ones are in a figure.

use super::{Curve, bit_rates, kept};
use crate::experiment::document::{Column, Figure, Selection};
use crate::results::{Measured, Results};
use crate::stats::MeanInterval;

/// Bytes of a KB, as document 001 has it.
const KB: f64 = 1024.0;
/// Bytes of a MB.
const MB: f64 = 1e6;
/// Bytes of a MiB.
const MIB: f64 = 1024.0 * 1024.0;

/// Our figure beside a published one.
#[derive(Clone, Debug, PartialEq)]
pub enum OwnFigure {
    /// A mean over repetitions.
    Mean(MeanInterval),
    /// A single figure, which follows from a curve.
    Single(f64),
    /// Words.
    Words(String),
}

/// Returns the figure of a cell. None if its trials do not determine it.
pub fn document_figure(
    results: &Results,
    curves: &[Curve],
    cell: &Selection,
    column: &Column,
) -> Option<OwnFigure> {
    if column.figure == Figure::BitRateMax {
        return bit_rate_max(results, cell);
    }
    if column.figure.is_of_curve() {
        let curve = curves.iter().find(|curve| cell.has(&curve.contender, &curve.values))?;
        return of_curve(curve, column.figure);
    }
    let trials = results.trials.iter().filter(|trial| cell.has(&trial.contender, &trial.point));
    let measured = trials.filter_map(|trial| kept(results, trial));
    let values: Vec<f64> = measured.filter_map(|measured| of_trial(measured, column)).collect();
    MeanInterval::of(&values).map(OwnFigure::Mean)
}

/// Returns the largest rate of all numbers of users, in Mbit/s.
fn bit_rate_max(results: &Results, cell: &Selection) -> Option<OwnFigure> {
    let own = bit_rates(results).into_iter().filter(|rate| cell.has(&rate.contender, &rate.point));
    let rates = own.map(|rate| rate.megabits);
    rates.max_by(|one, other| one.mean.total_cmp(&other.mean)).map(OwnFigure::Mean)
}

fn of_curve(curve: &Curve, figure: Figure) -> Option<OwnFigure> {
    let single = match figure {
        Figure::Saturation => curve.saturation?.asymptotic,
        Figure::NearlyAll => Some(f64::from(curve.saturation?.nearly_all)),
        Figure::ResponseAtSaturation => curve.response_at_saturation,
        Figure::ThroughputMax => {
            let figures = curve.best_point()?.figures.as_ref()?;
            return Some(OwnFigure::Mean(figures.throughput));
        }
        Figure::Bottleneck => return curve.hint.as_ref().map(|hint| OwnFigure::Words(hint.text())),
        _ => None,
    };
    single.map(OwnFigure::Single)
}

fn of_trial(measured: &Measured, column: &Column) -> Option<f64> {
    let load = &measured.load;
    let users = load.users_each.iter().filter(|user| user.seconds > 0.0);
    let mean_of_users = |of: fn(&crate::results::UserFigures) -> f64| {
        MeanInterval::of(&users.clone().map(of).collect::<Vec<f64>>()).map(|found| found.mean)
    };
    match column.figure {
        Figure::Throughput => Some(load.requests_per_second),
        Figure::Response => Some(load.latency_us.mean * 1e-6),
        Figure::OverallRate => Some(load.bytes_per_second / KB),
        Figure::ConnectionRate => mean_of_users(|user| user.bytes as f64 / user.seconds / KB),
        Figure::ThreadTime => mean_of_users(|user| user.seconds),
        Figure::Memory => {
            let is_asked = |name: &str| column.process.as_ref().is_none_or(|asked| asked == name);
            let own = measured.processes.iter().filter(|process| is_asked(&process.name));
            let bytes: u64 = own.map(|process| process.rss_bytes).sum();
            (bytes > 0).then(|| bytes as f64 / MIB)
        }
        Figure::DiskRead => {
            let machine = measured.machine.as_ref().filter(|machine| machine.seconds > 0.0)?;
            let bytes: u64 = machine.disks.iter().map(|disk| disk.read_bytes).sum();
            Some(bytes as f64 / machine.seconds / MB)
        }
        _ => None,
    }
}
