//! The section of the open-loop trials: latency at shares of the maximum throughput.
//!
//! It computes nothing. Invariants: each percentile is labelled as that of an open loop; each is a mean over
//! repetitions with its interval and number of samples.

use super::cells::{mean, mean_line, remarks, values_text, variables};
use super::chart::{Chart, ChartPoint, Series, Shape, Stroke};
use super::content::{Block, Cell, DataTable, Section};
use crate::analysis::{OpenLoopPoint, PointFigures, open_loop_points};
use crate::experiment::load::USERS;
use crate::experiment::template::Values;
use crate::format::figures::{percent, small_rate as rate, time};
use crate::results::Results;
use crate::stats::MeanInterval;

const TEXT: &str = "Requests are planned at even intervals, at a share of the maximum throughput (Xmax) of \
                    the contender's own closed loops, and a latency counts from the planned start. So these \
                    percentiles include the waits that those of a closed loop leave out. Each is the mean of \
                    the percentiles of the repetitions that count; in brackets, its interval of 95 %; n is \
                    the number of repetitions. The share is the same for all contenders, the rate is not.";
/// The largest number of contenders in one chart.
const COMPARED: usize = 8;

/// Returns the section; none without open-loop trials.
pub(super) fn section(results: &Results) -> Option<Section> {
    let points = open_loop_points(results);
    if points.is_empty() {
        return None;
    }
    let mut blocks = vec![Block::Table(of_points(results, &points)), Block::Text(TEXT.to_owned())];
    let has_several = points.iter().any(|point| point.percent != points[0].percent);
    blocks.extend(has_several.then(|| charts(&points)).into_iter().flatten());
    Some(Section::new("Latency in open loop", blocks))
}

/// Returns the table of all open loops; without rows if there are none.
pub(super) fn table(results: &Results) -> DataTable {
    of_points(results, &open_loop_points(results))
}

fn of_points(results: &Results, points: &[OpenLoopPoint]) -> DataTable {
    let names: Vec<&str> = results.experiment.variables().into_iter().filter(|name| *name != USERS).collect();
    let mut columns = vec!["contender"];
    columns.extend(&names);
    columns.extend(["of Xmax", "planned requests/s", "requests/s", "loop", "mean latency"]);
    columns.extend(["p50", "p95", "p99", "p99.9", "responses", "remarks"]);
    let row = |point: &OpenLoopPoint| {
        let figures = point.load.figures.as_ref();
        let mut cells = vec![Cell::words(&point.contender)];
        cells.extend(variables(&names, &point.case));
        cells.push(Cell::figure(Some(f64::from(point.percent) / 100.0), percent));
        cells.push(Cell::figure(point.rate, rate));
        cells.push(mean(figures.map(|one| one.throughput), rate));
        cells.push(Cell::words("open"));
        cells.push(mean(figures.map(|one| one.response), time));
        cells.push(mean(figures.map(|one| one.percentiles[0]), time));
        cells.push(mean(figures.and_then(|one| one.p95), time));
        cells.extend([2, 3].map(|at| mean(figures.map(|one| one.percentiles[at]), time)));
        #[allow(clippy::cast_precision_loss, reason = "a count below 2^52")]
        let responses = figures.map(|_| point.requests as f64);
        cells.push(Cell::figure(responses, |count| format!("{count:.0}")));
        cells.push(Cell::words(remarks(&point.load)));
        cells
    };
    let columns = columns.into_iter().map(str::to_owned).collect();
    DataTable { columns, rows: points.iter().map(row).collect(), point_columns: names.len() }
}

/// Returns charts of the median and the 99th percentile for each case.
fn charts(points: &[OpenLoopPoint]) -> Vec<Block> {
    let mut cases: Vec<(&Values, Vec<&OpenLoopPoint>)> = Vec::new();
    for point in points {
        match cases.iter_mut().find(|(case, _)| **case == point.case) {
            Some((_, group)) => group.push(point),
            None => cases.push((&point.case, vec![point])),
        }
    }
    let blocks = cases.into_iter().map(|(case, group)| Block::Charts {
        title: values_text(case),
        charts: vec![
            chart("Median latency (open loop)", &group, |one| one.percentiles[0]),
            chart("99th percentile of latency (open loop)", &group, |one| one.percentiles[2]),
        ],
        is_folded: false,
    });
    blocks.collect()
}

fn chart(title: &str, points: &[&OpenLoopPoint], figure: fn(&PointFigures) -> MeanInterval) -> Chart {
    let mut names: Vec<&str> = points.iter().map(|point| point.contender.as_str()).collect();
    names.dedup();
    let series = names.into_iter().take(COMPARED).enumerate().map(|(colour, name)| {
        let own = points.iter().filter(|point| point.contender == name);
        let points = own.filter_map(|point| chart_point(point, figure)).collect();
        Series { name: name.to_owned(), colour, stroke: Stroke::Measured, points }
    });
    Chart {
        title: title.to_owned(),
        figure: String::new(),
        level: "% of Xmax".to_owned(),
        format: time,
        shape: Shape::LogLines,
        series: series.collect(),
    }
}

fn chart_point(point: &OpenLoopPoint, figure: fn(&PointFigures) -> MeanInterval) -> Option<ChartPoint> {
    let value = figure(point.load.figures.as_ref()?);
    let (own, remarks) = (mean_line(&value, &time), remarks(&point.load));
    let label = format!("{} at {} % of Xmax: {own}", point.contender, point.percent);
    let is_marked = !remarks.is_empty();
    let label = if is_marked { format!("{label}; {remarks}") } else { label };
    let (level, interval) = (point.load.level, value.interval);
    Some(ChartPoint { level, name: String::new(), value: value.mean, interval, label, is_marked })
}
