//! The comparison of two runs: the figures that differ beyond noise.
//!
//! It is no statement that two runs are equal: a difference that is too small for the number of repetitions
//! stays hidden. Invariants: where both runs have a reference contender, only ratios to it are compared:
//! a drift of the machine between the runs is no difference. Equal runs with normal noise show a difference
//! with a probability of [`FAMILY_LEVEL`] at most, for any number of cells.
//!
//! Each cell (a contender at a point) is tested by Yuen's test on logarithms, which is Welch's for fewer than
//! ten repetitions. The mean of a contender's cells is tested too, because a small change of all cells is
//! visible only in all of them together. Holm's method corrects for the number of tests.

mod open_loop;

use serde::Serialize;

use crate::analysis::{counterpart, cpu_per_request, kept};
use crate::experiment::template::Values;
use crate::format::figures::percent;
use crate::format::table::Table;
use crate::results::{FinishedTrial, Measured, Results};
use crate::stats::student::{Difference, holm};

pub use open_loop::OpenLoopPair;

/// The probability of any difference between equal runs.
pub const FAMILY_LEVEL: f64 = 0.01;
/// A change of this fraction or less is no difference, even if it is certain.
pub const IGNORED_CHANGE: f64 = 0.01;
/// A change of the reference up to this fraction is a drift that ratios are expected to cancel.
const STEADY_CHANGE: f64 = 0.2;
/// The smallest probability that is shown. Smaller ones would count the repetitions of one run as independent
/// runs.
const LEAST_PROBABILITY: f64 = 0.001;
/// The probability that a change lies outside its interval.
const TAIL: f64 = 0.05;

/// The comparison of two runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// The contender whose ratios are compared; none if the runs share no reference.
    pub reference: Option<String>,
    /// The relative change of the reference's own throughput: the drift of the machine.
    pub reference_change: Option<f64>,
    /// The contenders whose definition, version or load differs between the runs, each with a reason.
    pub redefined: Vec<String>,
    /// All tests: of each cell, and of all cells of a contender.
    pub changes: Vec<Change>,
    /// The latencies of open loops in both runs; they are not tested.
    pub open_loops: Vec<OpenLoopPair>,
    /// Cells that could not be tested, or are in one run only.
    pub missing: Vec<MissingCell>,
}

/// The change of a figure from the first run to the second.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The name of the contender.
    pub contender: String,
    /// The values of the variables; none for the mean of all its points.
    pub point: Option<Values>,
    /// The figure.
    pub figure: ComparedFigure,
    /// The relative change.
    pub change: f64,
    /// The interval of 95 % of the change.
    pub interval: [f64; 2],
    /// The number of samples in the first and in the second run.
    pub samples: [usize; 2],
    /// The probability of such a change between equal runs, corrected for the number of tests.
    pub probability: f64,
    /// Whether the runs differ.
    pub differs: bool,
}

/// A compared figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ComparedFigure {
    /// Requests a second.
    Throughput,
    /// The CPU time of a contender's processes for a request.
    CpuPerRequest,
}

/// A cell without a comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MissingCell {
    /// The name of the contender.
    pub contender: String,
    /// The values of the variables.
    pub point: Values,
    /// The reason, for readers.
    pub reason: String,
}

impl MissingCell {
    fn new((contender, point): &(String, Values), reason: &str) -> MissingCell {
        MissingCell { contender: contender.clone(), point: point.clone(), reason: reason.to_owned() }
    }
}

/// A test before the correction.
struct CellTest {
    contender: String,
    point: Option<Values>,
    figure: ComparedFigure,
    difference: Difference,
    samples: [usize; 2],
}

impl ComparedFigure {
    const ALL: [ComparedFigure; 2] = [ComparedFigure::Throughput, ComparedFigure::CpuPerRequest];

    fn of(self, trial: &Measured) -> Option<f64> {
        let value = match self {
            ComparedFigure::Throughput => Some(trial.load.requests_per_second),
            ComparedFigure::CpuPerRequest => cpu_per_request(trial),
        };
        value.filter(|value| *value > 0.0)
    }

    fn name(self) -> &'static str {
        match self {
            ComparedFigure::Throughput => "requests/s",
            ComparedFigure::CpuPerRequest => "CPU per request",
        }
    }
}

/// Compares two runs: changes are from `one` to `other`.
pub fn compare(one: &Results, other: &Results) -> Comparison {
    let reference = shared_reference(one, other);
    let (first, second) = (cells(one), cells(other));
    let (mut tests, mut missing) = (Vec::new(), Vec::new());
    let compared = |(contender, _): &(String, Values)| Some(contender.as_str()) != reference;
    for cell in first.iter().filter(|cell| compared(cell)) {
        let (own, reason) = match second.contains(cell) {
            true => test_cell(one, other, reference, cell),
            false => (Vec::new(), Some("only in the first run")),
        };
        missing.extend(reason.map(|reason| MissingCell::new(cell, reason)));
        tests.extend(own);
    }
    let only_second = second.iter().filter(|cell| compared(cell) && !first.contains(cell));
    missing.extend(only_second.map(|cell| MissingCell::new(cell, "only in the second run")));
    tests.extend(open_loop::tests(one, other, reference, &mut missing));
    tests.extend(overall(&tests));
    let probabilities: Vec<f64> = tests.iter().map(|test| test.difference.probability()).collect();
    let changes =
        tests.into_iter().zip(holm(&probabilities)).map(|(test, corrected)| change(test, corrected));
    Comparison {
        reference: reference.map(str::to_owned),
        reference_change: reference.and_then(|name| reference_change(one, other, name)),
        redefined: redefined(one, other),
        changes: changes.collect(),
        open_loops: open_loop::pairs(one, other),
        missing,
    }
}

/// Returns the reference that both runs have beside other contenders. Load tools are not compared.
fn shared_reference<'a>(one: &'a Results, other: &Results) -> Option<&'a str> {
    let entrants = one.run.contenders.iter().filter(|entrant| !one.experiment.is_tool(&entrant.name));
    let name = entrants.clone().find(|entrant| entrant.reference)?.name.as_str();
    let is_shared = other.trials.iter().any(|trial| trial.contender == name);
    (is_shared && entrants.count() > 1).then_some(name)
}

/// Returns the contenders that are not the same in both runs.
fn redefined(one: &Results, other: &Results) -> Vec<String> {
    let mut lines = Vec::new();
    for first in &one.experiment.contenders {
        let second = other.experiment.contenders.iter().find(|second| second.name == first.name);
        // Its text for programs has all its values.
        if second.is_some_and(|second| format!("{first:?}") != format!("{second:?}")) {
            lines.push(format!("{}: its definition differs between the runs", first.name));
        }
    }
    for first in &one.run.contenders {
        let second = other.run.contenders.iter().find(|second| second.name == first.name);
        if let Some(second) = second.filter(|second| second.version != first.version) {
            lines.push(format!(
                "{}: its version was {:?} and is {:?}",
                first.name, first.version, second.version
            ));
        }
    }
    lines
}

/// Returns the contender and the point of each cell, in the order of the trials.
fn cells(results: &Results) -> Vec<(String, Values)> {
    let mut cells: Vec<(String, Values)> = Vec::new();
    for trial in results.trials.iter().filter(|trial| !results.experiment.is_tool(&trial.contender)) {
        let cell = (trial.contender.clone(), trial.point.clone());
        if !cells.contains(&cell) {
            cells.push(cell);
        }
    }
    cells
}

/// Returns the tests of a cell, or the reason why its throughput has none.
fn test_cell(
    one: &Results,
    other: &Results,
    reference: Option<&str>,
    cell: &(String, Values),
) -> (Vec<CellTest>, Option<&'static str>) {
    let test = |figure: ComparedFigure| test(one, other, reference, cell, figure);
    let tests: Vec<CellTest> = ComparedFigure::ALL.into_iter().filter_map(test).collect();
    let is_tested = tests.iter().any(|test| test.figure == ComparedFigure::Throughput);
    let reason = "fewer than two repetitions that can be compared in one of the runs";
    (tests, (!is_tested).then_some(reason))
}

fn test(
    one: &Results,
    other: &Results,
    reference: Option<&str>,
    cell: &(String, Values),
    figure: ComparedFigure,
) -> Option<CellTest> {
    let samples = [logarithms(one, reference, cell, figure), logarithms(other, reference, cell, figure)];
    let difference = Difference::of(&samples[0], &samples[1])?;
    let (contender, point) = (cell.0.clone(), Some(cell.1.clone()));
    Some(CellTest { contender, point, figure, difference, samples: samples.map(|all| all.len()) })
}

/// Returns the logarithms of a figure of all repetitions, or of its ratios to the reference.
fn logarithms(
    results: &Results,
    reference: Option<&str>,
    cell: &(String, Values),
    figure: ComparedFigure,
) -> Vec<f64> {
    let own = results.trials.iter().filter(|trial| trial.contender == cell.0 && trial.point == cell.1);
    let value = |trial: &FinishedTrial| figure.of(kept(results, trial)?);
    let logarithm = |trial: &FinishedTrial| {
        let base = match reference {
            Some(name) => value(counterpart(results, name, trial)?)?,
            None => 1.0,
        };
        Some((value(trial)? / base).ln())
    };
    own.filter_map(logarithm).collect()
}

/// Returns a test of the mean change of all cells, for each contender with several.
fn overall(tests: &[CellTest]) -> Vec<CellTest> {
    let mut all = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for test in tests {
        if !names.contains(&test.contender.as_str()) {
            names.push(&test.contender);
        }
    }
    for (name, figure) in names.into_iter().flat_map(|name| ComparedFigure::ALL.map(|figure| (name, figure)))
    {
        let own: Vec<&CellTest> =
            tests.iter().filter(|test| test.contender == name && test.figure == figure).collect();
        let differences: Vec<Difference> = own.iter().map(|test| test.difference).collect();
        let Some(difference) = Difference::mean_of(&differences).filter(|_| own.len() > 1) else { continue };
        let samples = [0, 1].map(|run| own.iter().map(|test| test.samples[run]).sum());
        all.push(CellTest { contender: name.to_owned(), point: None, figure, difference, samples });
    }
    all
}

fn change(test: CellTest, corrected: f64) -> Change {
    let change = test.difference.mean.exp() - 1.0;
    Change {
        contender: test.contender,
        point: test.point,
        figure: test.figure,
        change,
        interval: test.difference.interval(TAIL).map(|end| end.exp() - 1.0),
        samples: test.samples,
        probability: corrected,
        differs: corrected < FAMILY_LEVEL && change.abs() > IGNORED_CHANGE,
    }
}

fn reference_change(one: &Results, other: &Results, name: &str) -> Option<f64> {
    let own: Vec<(String, Values)> =
        cells(one).into_iter().filter(|(contender, _)| contender == name).collect();
    let mean = |results: &Results, cell: &(String, Values)| {
        let values = logarithms(results, None, cell, ComparedFigure::Throughput);
        crate::stats::MeanInterval::of(&values).map(|found| found.mean)
    };
    let changes = own.iter().filter_map(|cell| Some(mean(other, cell)? - mean(one, cell)?));
    crate::stats::MeanInterval::of(&changes.collect::<Vec<f64>>()).map(|found| found.mean.exp() - 1.0)
}

impl Comparison {
    /// Returns whether any figure differs.
    pub fn differs(&self) -> bool {
        self.changes.iter().any(|change| change.differs)
    }

    /// Returns the comparison for the terminal.
    pub fn text(&self) -> String {
        let tested = self.changes.len();
        let mut text = String::new();
        if let Some((name, change)) = self.reference.as_ref().zip(self.reference_change)
            && change.abs() > STEADY_CHANGE
        {
            text += &format!(
                "The reference {name} itself changed by {}: the machine was not the same, and a difference \
                 below may be that of the machine. Repeat both runs.\n\n",
                signed(change)
            );
        }
        for line in &self.redefined {
            text += &format!("{line}\n");
        }
        let different: Vec<&Change> = self.changes.iter().filter(|change| change.differs).collect();
        if different.is_empty() {
            text += &format!("No difference beyond noise in {tested} tests.\n");
        } else {
            text += &format!("{} of {tested} tests show a difference beyond noise:\n\n", different.len());
            text += &table(&different);
        }
        text += &self.scope();
        text += &open_loop::text(&self.open_loops).unwrap_or_default();
        if !self.missing.is_empty() {
            text += "\nNot compared:\n";
        }
        for cell in &self.missing {
            text += &format!("  {} at {}: {}\n", cell.contender, values_text(&cell.point), cell.reason);
        }
        text
    }

    /// Says how the runs were compared, and which differences could not be found.
    fn scope(&self) -> String {
        let basis = match (&self.reference, self.reference_change) {
            (Some(name), Some(change)) => format!(
                "Compared are ratios to {name} in the same repetition; its own throughput changed by {}.\n",
                signed(change)
            ),
            (Some(name), None) => format!("Compared are ratios to {name} in the same repetition.\n"),
            (None, _) => "The runs share no reference contender: a drift of the machine counts as a \
                          difference.\n"
                .to_owned(),
        };
        let widths = self.changes.iter().filter(|change| change.point.is_some());
        let widths: Vec<f64> = widths.map(|change| (change.interval[1] - change.interval[0]) / 2.0).collect();
        let resolution = crate::stats::median(&widths)
            .map(|half| format!("The interval of a cell's change is ±{} in the median.\n", percent(half)));
        format!(
            "\n{basis}Equal runs show any difference with a probability of {} at most; changes up to {} \
             are ignored. This takes the repetitions of a run for independent: a change that holds for a \
             whole run, such as another layout of memory, is in no probability. Only more runs show it.\n{}",
            percent(FAMILY_LEVEL),
            percent(IGNORED_CHANGE),
            resolution.unwrap_or_default()
        )
    }
}

fn table(changes: &[&Change]) -> String {
    let mut table = Table::new(["contender", "point", "figure", "change", "interval of 95 %", "p", "n"]);
    for change in changes {
        let point = change.point.as_ref().map_or_else(|| "all points".to_owned(), values_text);
        table.row([
            change.contender.clone(),
            point,
            change.figure.name().to_owned(),
            signed(change.change),
            format!("{} to {}", signed(change.interval[0]), signed(change.interval[1])),
            probability(change.probability),
            format!("{} and {}", change.samples[0], change.samples[1]),
        ]);
    }
    table.text()
}

fn probability(value: f64) -> String {
    match value < LEAST_PROBABILITY {
        true => format!("< {LEAST_PROBABILITY}"),
        false => format!("{value:.3}"),
    }
}

fn signed(change: f64) -> String {
    format!("{:+.1} %", change * 100.0)
}

/// Formats the values of variables, such as `size=1K users=8`.
fn values_text(values: &Values) -> String {
    let pairs: Vec<String> = values.iter().map(|(name, value)| format!("{name}={value}")).collect();
    if pairs.is_empty() { "the only point".to_owned() } else { pairs.join(" ") }
}

#[cfg(test)]
mod tests;
