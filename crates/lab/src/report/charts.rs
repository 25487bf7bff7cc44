//! The charts of a report.
//!
//! They draw nothing. Invariants: percentiles of a closed loop are labelled as such; a chart without a
//! measured point is left out. Charts that compare contenders give each the same colour.

use super::cells::{mean_line, remarks, values_text};
use super::chart::{Chart, ChartPoint, Series, Shape, Stroke};
use super::content::{Block, Section};
use crate::analysis::{Curve, LoadPoint, PointFigures, Prediction};
use crate::experiment::template::Values;
use crate::format::figures::{bytes, percent, small_rate as rate, three_digits, time};
use crate::stats::MeanInterval;

const PERCENTILES: [&str; 4] = ["p50", "p90", "p99", "p99.9"];
const CLOSED: &str = "Latencies of a closed loop: a user sends nothing while it waits, so that slow \
                      responses are rarer here than for users that arrive independently.";
const MODELS: &str = "MVA and the bounds follow from the demands at the smallest N. MVA assumes exponential \
                      demands; a system of constant demands may lie between it and the bounds. USL is a fit.";
/// A range of values beyond this factor has a logarithmic axis.
const WIDE: f64 = 20.0;
/// The largest number of curves that are compared in one chart.
const COMPARED: usize = 8;

/// The variable on the horizontal axis.
#[derive(Clone, Copy)]
pub(super) struct Sweep {
    pub(super) axis: Option<&'static str>,
}

impl Sweep {
    fn label(self) -> &'static str {
        if self.axis == Some("rate") { "planned requests/s" } else { "users (N)" }
    }
}

/// Returns a section for each combination of the fixed variables.
pub(super) fn sections(curves: &[Curve], sweep: Sweep) -> Vec<Section> {
    if sweep.axis.is_none() {
        return bars(curves);
    }
    let groups = groups(curves);
    let sections = groups.iter().map(|(values, group)| {
        let at = values_text(values);
        let title = if at.is_empty() { "Curves".to_owned() } else { format!("Curves at {at}") };
        let mut blocks = Vec::new();
        for part in group.chunks(COMPARED).filter(|_| group.len() > 1) {
            blocks.push(charts("All contenders", compared(part, sweep)));
        }
        blocks.extend(group.iter().map(|curve| Block::Charts {
            title: curve.contender.clone(),
            charts: own(curve, sweep).into_iter().filter(|chart| !chart.is_empty()).collect(),
            is_folded: group.len() > 1,
        }));
        blocks.extend(notes(group));
        Section::new(&title, blocks)
    });
    sections.collect()
}

/// Returns the curves that can be compared: those with the same values of the fixed variables.
pub(super) fn groups(curves: &[Curve]) -> Vec<(&Values, Vec<&Curve>)> {
    let mut groups: Vec<(&Values, Vec<&Curve>)> = Vec::new();
    for curve in curves {
        match groups.iter_mut().find(|(values, _)| **values == curve.values) {
            Some((_, group)) => group.push(curve),
            None => groups.push((&curve.values, vec![curve])),
        }
    }
    groups
}

fn charts(title: &str, charts: Vec<Chart>) -> Block {
    Block::Charts {
        title: title.to_owned(),
        charts: charts.into_iter().filter(|chart| !chart.is_empty()).collect(),
        is_folded: false,
    }
}

fn chart(title: &str, figure: &str, sweep: Sweep, format: fn(f64) -> String, series: Vec<Series>) -> Chart {
    Chart {
        title: title.to_owned(),
        figure: figure.to_owned(),
        level: sweep.label().to_owned(),
        format,
        shape: Shape::Lines,
        series,
    }
}

fn measured(
    curve: &Curve,
    name: &str,
    colour: usize,
    format: fn(f64) -> String,
    figure: impl Fn(&PointFigures) -> MeanInterval,
) -> Series {
    let point = |point: &LoadPoint| {
        let value = figure(point.figures.as_ref()?);
        let label = format!("{name}, {}: {}", level(point), mean_line(&value, &format));
        Some(ChartPoint { interval: value.interval, ..chart_point(point, value.mean, label) })
    };
    let points = curve.points.iter().filter_map(point).collect();
    Series { name: name.to_owned(), colour, stroke: Stroke::Measured, points }
}

/// Returns a point whose label has the signs of a distorted measurement too.
fn chart_point(point: &LoadPoint, value: f64, label: String) -> ChartPoint {
    let remarks = remarks(point);
    let is_marked = !remarks.is_empty();
    let label = if is_marked { format!("{label}; {remarks}") } else { label };
    ChartPoint { level: point.level, name: String::new(), value, interval: None, label, is_marked }
}

fn level(point: &LoadPoint) -> String {
    values_text(&point.point)
}

fn compared(curves: &[&Curve], sweep: Sweep) -> Vec<Chart> {
    let all = |format: fn(f64) -> String, figure: fn(&PointFigures) -> MeanInterval| {
        let curves = curves.iter().enumerate();
        curves.map(|(at, curve)| measured(curve, &curve.contender, at, format, figure)).collect()
    };
    let mut p99 = chart("99th percentile of latency", "", sweep, time, all(time, |one| one.percentiles[2]));
    p99.shape = Shape::LogLines;
    label_loop(&mut p99, curves);
    vec![
        chart("Throughput", "requests/s", sweep, rate, all(rate, |one| one.throughput)),
        with_scale(chart("Mean response time", "", sweep, time, all(time, |one| one.response))),
        p99,
    ]
}

/// Adds the words by which percentiles of a closed loop are recognised.
fn label_loop(chart: &mut Chart, curves: &[&Curve]) {
    chart.title += if is_closed(curves) { " (closed loop)" } else { " (open loop)" };
}

fn is_closed(curves: &[&Curve]) -> bool {
    let mut figures = curves.iter().flat_map(|curve| &curve.points).filter_map(|one| one.figures.as_ref());
    figures.any(|one| !one.is_open)
}

/// Returns the sentences that explain the charts of some curves.
fn notes(curves: &[&Curve]) -> Option<Block> {
    let has_models = curves.iter().any(|curve| close_prediction(curve).is_some());
    let mut points = curves.iter().flat_map(|curve| &curve.points);
    let has_remarks = points.any(|point| point.figures.is_some() && !remarks(point).is_empty());
    let notes = [
        has_models.then_some(MODELS),
        is_closed(curves).then_some(CLOSED),
        has_remarks.then_some("A hollow mark has remarks in the table of all points."),
    ];
    let notes: Vec<&str> = notes.into_iter().flatten().collect();
    (!notes.is_empty()).then(|| Block::Text(notes.join(" ")))
}

/// Draws widely different values with a logarithmic axis.
fn with_scale(mut chart: Chart) -> Chart {
    let values = chart.series.iter().filter(|series| series.stroke == Stroke::Measured);
    let values: Vec<f64> = values.flat_map(|series| &series.points).map(|point| point.value).collect();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    if values.iter().any(|value| *value > low * WIDE) && low > 0.0 {
        chart.shape = Shape::LogLines;
    }
    chart
}

/// Returns the charts of a contender alone, with models.
fn own(curve: &Curve, sweep: Sweep) -> Vec<Chart> {
    let mut throughput = chart(
        "Throughput",
        "requests/s",
        sweep,
        rate,
        vec![measured(curve, "measured", 0, rate, |one| one.throughput)],
    );
    let mut response = chart(
        "Response time",
        "mean",
        sweep,
        time,
        vec![measured(curve, "measured", 0, time, |one| one.response)],
    );
    add_models(curve, &mut throughput, &mut response);
    let percentiles = PERCENTILES.iter().enumerate().rev();
    let percentiles =
        percentiles.map(|(at, name)| measured(curve, name, at, time, move |one| one.percentiles[at]));
    let mut latency = chart("Latency percentiles", "", sweep, time, percentiles.collect());
    latency.shape = Shape::LogLines;
    label_loop(&mut latency, &[curve]);
    vec![throughput, with_scale(response), latency, cpu(curve, sweep), disks(curve, sweep)]
}

fn add_models(curve: &Curve, throughput: &mut Chart, response: &mut Chart) {
    let last = curve.points.iter().map(|point| point.users).max().unwrap_or(1);
    let first = curve.points.iter().map(|point| point.users).min().unwrap_or(1);
    let model = |name: &str, colour: usize, stroke: Stroke, value: &dyn Fn(f64) -> Option<f64>| {
        let users = samples(f64::from(first), f64::from(last));
        let point = |level: f64| {
            let value = value(level)?;
            Some(ChartPoint {
                level,
                name: String::new(),
                value,
                interval: None,
                label: String::new(),
                is_marked: false,
            })
        };
        let points: Vec<ChartPoint> = users.into_iter().filter_map(point).collect();
        Series { name: name.to_owned(), colour, stroke, points }
    };
    let solved = |users: f64| {
        let points = &close_prediction(curve)?.points;
        points.iter().find(|point| (f64::from(point.users) - users).abs() < 0.5)
    };
    if let Some(bounds) = curve.bounds {
        let x = |users: f64| Some(bounds.throughput(users));
        let r = |users: f64| Some(bounds.response(users));
        throughput.series.push(model("asymptotic bounds", 7, Stroke::Dotted, &x));
        response.series.push(model("asymptotic bound", 7, Stroke::Dotted, &r));
    }
    if let (Some(_), Some(demands)) = (close_prediction(curve), &curve.demands) {
        let name = format!("MVA from N = {}", demands.users);
        let x = |users: f64| solved(users).map(|point| point.throughput);
        let r = |users: f64| solved(users).map(|point| point.response);
        throughput.series.push(model(&name, 1, Stroke::Dashed, &x));
        response.series.push(model(&name, 1, Stroke::Dashed, &r));
    }
    if let Some(law) = curve.scalability {
        let x = |users: f64| Some(law.throughput(users));
        throughput.series.push(model("USL fit", 2, Stroke::Dashed, &x));
    }
}

/// Returns the prediction that is drawn.
fn close_prediction(curve: &Curve) -> Option<&Prediction> {
    curve.prediction.as_ref().filter(|prediction| prediction.is_close())
}

/// Returns whole numbers from the first to the last, in a geometric sequence as soon as they are many.
fn samples(first: f64, last: f64) -> Vec<f64> {
    let mut samples = vec![first];
    let mut next = first;
    while next < last {
        next = (next * 1.08).round().max(next + 1.0).min(last);
        samples.push(next);
    }
    samples
}

/// Returns the names of all processes, in the order of their first appearance.
fn process_names<'a>(curves: impl Iterator<Item = &'a Curve>) -> Vec<String> {
    let figures = curves.flat_map(|curve| &curve.points).filter_map(|point| point.figures.as_ref());
    let mut names: Vec<String> = Vec::new();
    for process in figures.flat_map(|one| &one.processes) {
        if !names.contains(&process.name) {
            names.push(process.name.clone());
        }
    }
    names
}

fn cpu_point(point: &LoadPoint, process: &str) -> Option<ChartPoint> {
    let own = point.figures.as_ref()?.processes.iter().find(|one| one.name == process)?;
    let value = own.user + own.system;
    let system = if value > 0.0 { own.system / value } else { 0.0 };
    let label = format!(
        "{process}, {}: {} of a core, {} of it in the kernel",
        level(point),
        percent(value),
        percent(system)
    );
    Some(chart_point(point, value, label))
}

fn cpu(curve: &Curve, sweep: Sweep) -> Chart {
    let names = process_names(std::iter::once(curve));
    let series = names.iter().enumerate().map(|(colour, name)| {
        let points = curve.points.iter().filter_map(|point| cpu_point(point, name));
        Series { name: name.clone(), colour, stroke: Stroke::Measured, points: points.collect() }
    });
    let mut chart = chart("CPU by process", "cores", sweep, three_digits, series.collect());
    chart.shape = Shape::Columns;
    chart
}

/// Draws the disk traffic of the contender's own processes. The disks of the machine also carry that of
/// other programs, so their totals are in the labels only.
fn disks(curve: &Curve, sweep: Sweep) -> Chart {
    type Rate = fn(&crate::analysis::ProcessLoad) -> Option<f64>;
    let directions: [(&str, Rate); 2] =
        [("read", |process| process.read), ("written", |process| process.written)];
    let series = directions.into_iter().enumerate().map(|(colour, (direction, of))| {
        let point = |point: &LoadPoint| {
            let figures = point.figures.as_ref()?;
            let value = figures.processes.iter().map(of).sum::<Option<f64>>()?;
            let label = format!("{direction}, {}: {}{}", level(point), bytes(value), all_programs(figures));
            Some(chart_point(point, value, label))
        };
        let points: Vec<ChartPoint> = curve.points.iter().filter_map(point).collect();
        Series { name: direction.to_owned(), colour, stroke: Stroke::Measured, points }
    });
    let is_used = |series: &Series| series.points.iter().any(|point| point.value > 0.0);
    chart("Disk, by its processes", "bytes/s", sweep, bytes, series.filter(is_used).collect())
}

/// Returns the totals of the machine's disks in words.
fn all_programs(figures: &PointFigures) -> String {
    let total = |disk: &crate::analysis::DiskLoad| {
        let (read, written, busy) = (bytes(disk.read), bytes(disk.written), percent(disk.busy));
        format!("; {} by all programs: {read} read, {written} written, busy {busy}", disk.name)
    };
    figures.disks.iter().map(total).collect()
}

/// Returns the section of an experiment with one level: bars instead of curves.
fn bars(curves: &[Curve]) -> Vec<Section> {
    let is_one_point = curves.iter().all(|curve| curve.values == curves[0].values);
    let named = curves.iter().flat_map(|curve| curve.points.iter().map(move |point| (curve, point))).map(
        |(curve, point)| {
            let at = if is_one_point { String::new() } else { format!(", {}", values_text(&point.point)) };
            (format!("{}{at}", curve.contender), point)
        },
    );
    let points: Vec<(f64, String, &LoadPoint)> = (0..)
        .map(|number: u32| f64::from(number))
        .zip(named)
        .map(|(row, (name, point))| (row, name, point))
        .collect();
    let bar = |format: fn(f64) -> String, figure: fn(&PointFigures) -> MeanInterval| {
        let point = |(row, name, point): &(f64, String, &LoadPoint)| {
            let value = figure(point.figures.as_ref()?);
            let label = format!("{name}: {}", mean_line(&value, &format));
            let interval = value.interval;
            let bar = chart_point(point, value.mean, label);
            Some(ChartPoint { level: *row, name: name.clone(), interval, ..bar })
        };
        let points = points.iter().filter_map(point).collect();
        vec![Series { name: String::new(), colour: 0, stroke: Stroke::Measured, points }]
    };
    let none = Sweep { axis: None };
    let mut p99 = chart("99th percentile of latency", "", none, time, bar(time, |one| one.percentiles[2]));
    label_loop(&mut p99, &curves.iter().collect::<Vec<&Curve>>());
    let cpu = process_names(curves.iter()).into_iter().enumerate().map(|(colour, process)| {
        let points = points.iter().filter_map(|(row, name, point)| {
            Some(ChartPoint { level: *row, name: name.clone(), ..cpu_point(point, &process)? })
        });
        Series { points: points.collect(), name: process.clone(), colour, stroke: Stroke::Measured }
    });
    let mut all = vec![
        chart("Throughput", "requests/s", none, rate, bar(rate, |one| one.throughput)),
        chart("Mean latency", "", none, time, bar(time, |one| one.response)),
        p99,
        chart("CPU by process", "cores", none, three_digits, cpu.collect()),
    ];
    all.iter_mut().for_each(|chart| chart.shape = Shape::Bars);
    let closed = is_closed(&curves.iter().collect::<Vec<&Curve>>()).then(|| Block::Text(CLOSED.to_owned()));
    vec![Section::new("Figures", [charts("", all)].into_iter().chain(closed).collect())]
}
