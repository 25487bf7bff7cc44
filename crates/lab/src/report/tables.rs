//! The tables of a report.
//!
//! They derive nothing that the analysis does not have. Invariants: a missing figure is shown as missing;
//! signs of a distorted measurement stand in the row of the figures that they concern.

use super::cells::{detail, mean, remarks, values_text, variables};
use super::content::{Cell, DataTable};
use crate::analysis::{BoundContradiction, Curve, LoadPoint, Point, PointRatio};
use crate::format::figures::{bytes, percent, small_rate as rate, three_digits, time};
use crate::results::{Results, TrialResult};

/// Whether the number of users is on the horizontal axis.
fn has_users(axis: Option<&str>) -> bool {
    axis == Some("users")
}

/// Returns the table with one row for each curve: its maximum, saturation and hint.
pub(super) fn overview(curves: &[Curve], axis: Option<&str>) -> DataTable {
    let has_values = curves.iter().any(|curve| !curve.values.is_empty());
    let mut columns = vec!["contender"];
    columns.extend(has_values.then_some("at"));
    columns.push(if has_users(axis) { "Xmax, requests/s" } else { "requests/s" });
    if has_users(axis) {
        columns.extend(["at N", "N95", "N*", "R at N*"]);
    } else {
        columns.push("mean latency");
    }
    columns.push("bottleneck (hint)");
    let row = |curve: &Curve| {
        let best = curve.best_point();
        let figures = best.and_then(|point| point.figures.as_ref());
        let mut cells = vec![Cell::words(&curve.contender)];
        cells.extend(has_values.then(|| Cell::words(values_text(&curve.values))));
        cells.push(mean(figures.map(|one| one.throughput), rate));
        if has_users(axis) {
            cells.extend(saturation(curve, best));
        } else {
            cells.push(mean(figures.map(|one| one.response), time));
        }
        let hint = curve.hint.as_ref().map_or_else(|| "unknown".to_owned(), |hint| hint.text());
        cells.push(Cell::words(hint));
        cells
    };
    DataTable {
        columns: strings(&columns),
        rows: curves.iter().map(row).collect(),
        point_columns: usize::from(has_values),
    }
}

fn saturation(curve: &Curve, best: Option<&LoadPoint>) -> [Cell; 4] {
    let saturation = curve.saturation;
    let is_open = saturation.is_some_and(|one| one.is_open);
    let mut at = Cell::figure(best.map(|point| f64::from(point.users)), |users| format!("{users:.0}"));
    if is_open {
        at.detail = "still rising".to_owned();
    }
    [
        at,
        {
            let users = Cell::figure(saturation.map(|one| f64::from(one.nearly_all)), |n| format!("{n:.0}"));
            let range = curve.saturation_range.nearly_all;
            Cell { detail: range.map_or_else(String::new, |[low, high]| format!("{low} to {high}")), ..users }
        },
        {
            let users = Cell::figure(saturation.and_then(|one| one.asymptotic), three_digits);
            let interval = curve.saturation_range.asymptotic.as_ref();
            Cell { detail: interval.map_or_else(String::new, |one| detail(one, &three_digits)), ..users }
        },
        Cell::figure(curve.response_at_saturation, time),
    ]
}

/// Returns the table with one row for each point.
pub(super) fn points(results: &Results, curves: &[Curve]) -> DataTable {
    let names = results.experiment.variables();
    let mut columns = vec!["contender"];
    columns.extend(&names);
    columns.extend([
        "requests/s",
        "remarks",
        "bytes/s",
        "loop",
        "mean latency",
        "p50",
        "p90",
        "p99",
        "p99.9",
        "CPU per request",
        "memory (PSS)",
        "generator",
    ]);
    let points = curves.iter().flat_map(|curve| curve.points.iter().map(move |point| (curve, point)));
    let row = |(curve, point): (&Curve, &LoadPoint)| {
        let figures = point.figures.as_ref();
        let mut cells = vec![Cell::words(&curve.contender)];
        cells.extend(variables(&names, &point.point));
        cells.push(mean(figures.map(|one| one.throughput), rate));
        cells.push(Cell::words(remarks(point)));
        cells.push(mean(figures.map(|one| one.bytes), bytes));
        let pace = figures.map_or("–", |one| if one.is_open { "open" } else { "closed" });
        cells.push(Cell::words(pace));
        cells.push(mean(figures.map(|one| one.response), time));
        cells.extend([0, 1, 2, 3].map(|at| mean(figures.map(|one| one.percentiles[at]), time)));
        cells.push(mean(figures.and_then(|one| one.cpu), time));
        cells.push(mean(figures.and_then(|one| one.memory), memory));
        cells.push(Cell::figure(figures.map(|one| one.generator_share), percent));
        cells
    };
    let rows = points.map(row).collect();
    let table = DataTable { columns: strings(&columns), rows, point_columns: names.len() };
    without_empty("remarks", table)
}

fn memory(bytes: f64) -> String {
    format!("{:.2} MiB", bytes / f64::from(1 << 20))
}

/// Returns the table of the ratios to the reference.
pub(super) fn ratios(results: &Results, ratios: &[PointRatio]) -> DataTable {
    let names = results.experiment.variables();
    let mut columns = vec!["contender"];
    columns.extend(&names);
    columns.extend(["throughput", "mean latency", "CPU per request"]);
    let ratio = |value: f64| format!("{value:.3}");
    let row = |one: &PointRatio| {
        let mut cells = vec![Cell::words(&one.contender)];
        cells.extend(variables(&names, &one.point));
        cells.extend(one.figures().into_iter().zip(one.differs).map(|(value, differs)| {
            let mut cell = mean(value, ratio);
            cell.detail += if differs { " *" } else { "" };
            cell
        }));
        cells
    };
    DataTable {
        columns: strings(&columns),
        rows: ratios.iter().map(row).collect(),
        point_columns: names.len(),
    }
}

/// Returns the table of the service demands.
pub(super) fn demands(curves: &[Curve]) -> DataTable {
    let columns =
        ["contender", "at", "resource", "demand", "servers", "limit, requests/s", "utilisation at Xmax"];
    let mut rows = Vec::new();
    for curve in curves {
        let Some(demands) = &curve.demands else { continue };
        let best = curve.saturation.map(|one| one.throughput_max);
        let own = || vec![Cell::words(&curve.contender), Cell::words(values_text(&curve.values))];
        for one in &demands.resources {
            let servers = f64::from(one.servers.max(1));
            let limit = (one.demand > 0.0).then(|| servers / one.demand);
            let used = best.zip(limit).map(|(best, limit)| best / limit);
            let figures = [
                Cell::figure(Some(one.demand), time),
                Cell::figure(Some(servers), |servers| format!("{servers:.0}")),
                Cell::figure(limit, rate),
                Cell::figure(used, percent),
            ];
            rows.push([own(), vec![Cell::words(&one.name)], figures.to_vec()].concat());
        }
        for (core, demand) in demands.cores.iter().enumerate() {
            let limit = (*demand > 0.0).then(|| 1.0 / demand);
            let figures = [
                Cell::figure(Some(*demand), time),
                Cell::figure(Some(1.0), |servers| format!("{servers:.0}")),
                Cell::figure(limit, rate),
                Cell::figure(best.zip(limit).map(|(best, limit)| best / limit), percent),
            ];
            let name = Cell::words(format!("core {core}, all its work"));
            rows.push([own(), vec![name], figures.to_vec()].concat());
        }
        let delay = [Cell::figure(Some(demands.delay), time), Cell::words("∞"), Cell::words("")];
        let rest = [own(), vec![Cell::words("delay without a queue")], delay.to_vec(), vec![Cell::words("")]];
        rows.push(rest.concat());
        if let Some(BoundContradiction { users, throughput, bound }) = demands.contradiction {
            let (throughput, bound) = (rate(throughput), rate(bound));
            let text = format!(
                "no bounds and no prediction: {users} users had {throughput} requests/s, above the bound \
                 {bound} of these demands, which a request under load does not have"
            );
            rows.push([own(), vec![Cell::words(text)], vec![Cell::words(""); 4]].concat());
        }
    }
    without_empty("at", DataTable { columns: strings(&columns), rows, ..DataTable::default() })
}

/// Returns the table of the predictions against the measured figures.
pub(super) fn predictions(curves: &[Curve]) -> DataTable {
    let columns =
        ["contender", "at", "N", "X measured", "X by MVA", "error", "R measured", "R by MVA", "error of R"];
    let mut rows = Vec::new();
    for (curve, prediction) in curves.iter().filter_map(|curve| Some((curve, curve.prediction.as_ref()?))) {
        let measured = curve.closed_points();
        for error in &prediction.errors {
            let of = |points: &[Point]| points.iter().find(|point| point.users == error.users).copied();
            let (own, model) = (of(&measured), of(&prediction.points));
            rows.push(vec![
                Cell::words(&curve.contender),
                Cell::words(values_text(&curve.values)),
                Cell::figure(Some(f64::from(error.users)), |users| format!("{users:.0}")),
                Cell::figure(own.map(|point| point.throughput), rate),
                Cell::figure(model.map(|point| point.throughput), rate),
                Cell::figure(Some(error.throughput), percent),
                Cell::figure(own.map(|point| point.response), time),
                Cell::figure(model.map(|point| point.response), time),
                Cell::figure(error.response, percent),
            ]);
        }
    }
    without_empty("at", DataTable { columns: strings(&columns), rows, ..DataTable::default() })
}

/// Returns the table of the fits of the universal scalability law.
pub(super) fn scalability(curves: &[Curve]) -> DataTable {
    let columns = ["contender", "at", "λ, requests/s", "σ (contention)", "κ (coherence)", "best N by USL"];
    let row = |curve: &Curve| {
        let law = curve.scalability?;
        Some(vec![
            Cell::words(&curve.contender),
            Cell::words(values_text(&curve.values)),
            Cell::figure(Some(law.single), rate),
            Cell::figure(Some(law.contention), |value| format!("{value:.4}")),
            Cell::figure(Some(law.coherence), |value| format!("{value:.2e}")),
            Cell::figure(law.best_users(), |users| format!("{users:.0}")),
        ])
    };
    without_empty(
        "at",
        DataTable {
            columns: strings(&columns),
            rows: curves.iter().filter_map(row).collect(),
            ..DataTable::default()
        },
    )
}

/// Returns the table of the failed trials.
pub(super) fn failures(results: &Results) -> DataTable {
    let columns = ["contender", "at", "repetition", "started", "reason"];
    let row = |trial: &crate::results::FinishedTrial| {
        let TrialResult::Failed(reason) = &trial.result else { return None };
        let open_loop = trial.open_loop.map(|open_loop| open_loop.text());
        let at = [Some(values_text(&trial.point)), open_loop].into_iter().flatten();
        Some(vec![
            Cell::words(&trial.contender),
            Cell::words(at.filter(|text| !text.is_empty()).collect::<Vec<String>>().join(" ")),
            Cell::figure(Some(f64::from(trial.repetition)), |number| format!("{number:.0}")),
            Cell::words(&trial.begun),
            // A reason may quote the output of a server; a cell of a table is one line.
            Cell::words(reason.split_whitespace().collect::<Vec<_>>().join(" ")),
        ])
    };
    let rows = results.all().filter_map(row).collect();
    DataTable { columns: strings(&columns), rows, ..DataTable::default() }
}

/// Returns the table of the contenders and their versions.
pub(super) fn contenders(results: &Results) -> DataTable {
    let columns = ["contender", "version", "about", "machine"];
    let row = |one: &crate::results::Entrant| {
        let name = if one.reference { format!("{} (reference)", one.name) } else { one.name.clone() };
        let machine = one.machine.as_ref().map_or_else(|| "the generator's".to_owned(), super::machine_text);
        [name, one.version.clone(), one.about.clone(), machine].map(Cell::words).to_vec()
    };
    let rows = results.run.contenders.iter().map(row).collect();
    DataTable { columns: strings(&columns), rows, ..DataTable::default() }
}

fn strings(columns: &[&str]) -> Vec<String> {
    columns.iter().map(|column| (*column).to_owned()).collect()
}

/// Removes a column if it is empty.
fn without_empty(name: &str, mut table: DataTable) -> DataTable {
    let Some(at) = table.columns.iter().position(|column| column == name) else { return table };
    if table.rows.iter().all(|row| row.get(at).is_none_or(|cell| cell.text.is_empty())) {
        table.columns.remove(at);
        table.rows.iter_mut().filter(|row| row.len() > at).for_each(|row| drop(row.remove(at)));
    }
    table
}
