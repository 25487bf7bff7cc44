//! Document 001's tables: overall transfer rates by the number of connections, and by the size of files.
//!
//! Nothing is formatted here. Invariants: the overall rate of a repetition is its bytes divided by the time
//! from its first start to its last end (section 3.2.3); a repetition without all of its transfers is in no
//! mean; all rates are in KB a second, and one KB is 1024 bytes, as in the document.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::name::size_label;
use super::{Experiment, LogFormat, TransferLog, TransferType, Transfers, rate};
use plimsoll_load::limits::START_SPREAD_SHARE;

const KB: f64 = 1024.0;

/// The results of a transfer log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tables {
    /// The format of the log; `None` of a log without a whole line.
    pub format: Option<LogFormat>,
    /// The number of repetitions to discard at the beginning of each experiment.
    pub discarded: u32,
    /// The document's tables.
    pub tables: Vec<Table>,
    /// The experiments, by size, type and number of connections.
    pub cells: Vec<Cell>,
    /// The limits of the figures, and the lines that do not count, each a sentence.
    pub notes: Vec<String>,
}

/// A table of overall rates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The text below the table.
    pub caption: String,
    /// The title of the columns.
    pub columns_title: String,
    /// The columns, such as 1, 2, 4, or 256KB, 1MB.
    pub columns: Vec<String>,
    /// The rows, with a value for each column.
    pub rows: Vec<TableRow>,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableRow {
    /// The type of transfer.
    pub title: String,
    /// The values; `None` without such an experiment, or without a complete repetition of it.
    pub values: Vec<Option<TableValue>>,
}

/// A value of a table.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableValue {
    /// The overall rate in KB a second.
    pub rate: f64,
    /// Whether a repetition in it did not start together.
    pub is_marked: bool,
}

/// The results of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The size of each file in bytes.
    pub size: u64,
    /// The type of transfer.
    pub transfer_type: TransferType,
    /// The number of simultaneous connections.
    pub connections: u32,
    /// The mean of the overall rates in KB a second.
    pub overall_rate: Option<f64>,
    /// The mean of the rates of single connections in KB a second. Times the number of connections, it is
    /// about the overall rate if all started and ended together.
    pub connection_rate: Option<f64>,
    /// All repetitions, by their numbers.
    pub repetitions: Vec<Repetition>,
}

/// The results of a repetition.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    /// Its number in the names of files.
    pub number: u32,
    /// The number of complete transfers.
    pub transfers: u64,
    /// Their bytes.
    pub bytes: u64,
    /// From the first start to the last end.
    pub seconds: f64,
    /// From the first start to the last start.
    pub spread_seconds: f64,
    /// The overall rate in KB a second.
    pub overall_rate: f64,
    /// The mean of the rates of its connections in KB a second.
    pub connection_rate: f64,
    /// Whether it is in the means.
    pub share: Share,
    /// Whether the starts were spread over more than 1 % of its time.
    pub is_marked: bool,
}

/// Whether a repetition is in the means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Share {
    /// It is.
    Kept,
    /// It is not, because it is one of the first.
    Discarded,
    /// It is not, because it has more or fewer complete transfers than connections.
    Incomplete,
}

impl Cell {
    /// Returns the repetitions in the means.
    pub fn kept(&self) -> impl Iterator<Item = &Repetition> {
        self.repetitions.iter().filter(|repetition| repetition.share == Share::Kept)
    }

    /// Returns the value of a table, if there is one.
    fn value(&self) -> Option<TableValue> {
        let is_marked = self.kept().any(|repetition| repetition.is_marked);
        self.overall_rate.map(|rate| TableValue { rate, is_marked })
    }
}

/// Computes the tables. Of each experiment, the first `discarded` repetitions are in no mean. The last one
/// is never discarded.
#[must_use]
pub fn tables(log: &TransferLog, discarded: u32) -> Tables {
    let resolution = log.format.map_or(1, LogFormat::resolution);
    let cells: Vec<Cell> = log
        .experiments
        .iter()
        .map(|(experiment, repetitions)| cell(*experiment, repetitions, discarded, resolution))
        .collect();
    let mut notes = notes(log);
    notes.extend(super::format::notes_on_cells(&cells, discarded));
    Tables { format: log.format, discarded, tables: all_tables(log, &cells), cells, notes }
}

fn cell(
    experiment: Experiment,
    repetitions: &BTreeMap<u32, Transfers>,
    discarded: u32,
    resolution: u64,
) -> Cell {
    let discarded = repetitions.len().saturating_sub(1).min(discarded as usize);
    let repetitions: Vec<Repetition> = repetitions
        .iter()
        .enumerate()
        .map(|(at, (number, transfers))| {
            let share = match transfers.count {
                _ if at < discarded => Share::Discarded,
                count if count == u64::from(experiment.connections) => Share::Kept,
                _ => Share::Incomplete,
            };
            repetition(*number, transfers, share, resolution)
        })
        .collect();
    let mean = |of: fn(&Repetition) -> f64| {
        let kept = repetitions.iter().filter(|repetition| repetition.share == Share::Kept);
        let (count, sum) = kept.map(of).fold((0_u32, 0.0), |(count, sum), rate| (count + 1, sum + rate));
        (count > 0).then(|| sum / f64::from(count))
    };
    Cell {
        size: experiment.size,
        transfer_type: experiment.transfer_type,
        connections: experiment.connections,
        overall_rate: mean(|repetition| repetition.overall_rate),
        connection_rate: mean(|repetition| repetition.connection_rate),
        repetitions,
    }
}

fn repetition(number: u32, transfers: &Transfers, share: Share, resolution: u64) -> Repetition {
    let time = transfers.last_end - transfers.first_start;
    let spread = transfers.last_start - transfers.first_start;
    Repetition {
        number,
        transfers: transfers.count,
        bytes: transfers.bytes,
        seconds: time as f64 / 1e6,
        spread_seconds: spread as f64 / 1e6,
        overall_rate: rate(transfers.bytes, time, resolution) / KB,
        connection_rate: transfers.rates / (transfers.count.max(1) as f64) / KB,
        share,
        is_marked: spread as f64 > time as f64 * START_SPREAD_SHARE,
    }
}

/// Returns a table by connections for each size, and one by size for each number of connections of which
/// there are several sizes. A size with one number of connections that is in a table by size has no other.
fn all_tables(log: &TransferLog, cells: &[Cell]) -> Vec<Table> {
    let sizes: BTreeSet<u64> = cells.iter().map(|cell| cell.size).collect();
    let connections: BTreeSet<u32> = cells.iter().map(|cell| cell.connections).collect();
    let of = |size: Option<u64>, connections: Option<u32>| -> Vec<&Cell> {
        let is_of = |cell: &&Cell| {
            size.is_none_or(|size| cell.size == size)
                && connections.is_none_or(|connections| cell.connections == connections)
        };
        cells.iter().filter(is_of).collect()
    };
    let has_several_sizes = |connections: u32| {
        of(None, Some(connections)).iter().map(|cell| cell.size).collect::<BTreeSet<_>>().len() > 1
    };
    let mut tables = Vec::new();
    for size in sizes {
        let cells = of(Some(size), None);
        let mut columns: Vec<u32> = cells.iter().map(|cell| cell.connections).collect();
        columns.sort_unstable();
        columns.dedup();
        if matches!(columns[..], [only] if has_several_sizes(only)) {
            continue;
        }
        if is_decreasing(log, size, &columns) {
            columns.reverse();
        }
        let caption = format!("Overall transfer rates in KBps, {} files", size_label(size));
        tables.push(table(caption, "Number of connections", &columns, u32::to_string, |kind, column| {
            cells.iter().find(|cell| (cell.transfer_type, cell.connections) == (kind, *column))?.value()
        }));
    }
    for connections in connections.into_iter().filter(|connections| has_several_sizes(*connections)) {
        let cells = of(None, Some(connections));
        let columns: BTreeSet<u64> = cells.iter().map(|cell| cell.size).collect();
        let columns: Vec<u64> = columns.into_iter().collect();
        let plural = if connections == 1 { "" } else { "s" };
        let caption = format!("Overall transfer rates in KBps, {connections} connection{plural}");
        tables.push(table(
            caption,
            "File size",
            &columns,
            |size| size_label(*size),
            |kind, column| {
                cells.iter().find(|cell| (cell.transfer_type, cell.size) == (kind, *column))?.value()
            },
        ));
    }
    tables
}

/// Returns whether experiments with more connections began earlier, as in the document's Table 2.
fn is_decreasing(log: &TransferLog, size: u64, connections: &[u32]) -> bool {
    let first_start = |connections: &u32| {
        let of_them = log
            .experiments
            .iter()
            .filter(|(experiment, _)| (experiment.size, experiment.connections) == (size, *connections));
        let complete = of_them.flat_map(|(_, repetitions)| repetitions.values());
        complete.filter(|transfers| transfers.count > 0).map(|transfers| transfers.first_start).min()
    };
    let starts: Option<Vec<u64>> = connections.iter().map(first_start).collect();
    starts.is_some_and(|starts| starts.len() > 1 && starts.is_sorted_by(|earlier, later| earlier > later))
}

fn table<C>(
    caption: String,
    columns_title: &str,
    columns: &[C],
    label: impl Fn(&C) -> String,
    value: impl Fn(TransferType, &C) -> Option<TableValue>,
) -> Table {
    let rows = [TransferType::Same, TransferType::Different].map(|kind| TableRow {
        title: kind.title().to_owned(),
        values: columns.iter().map(|column| value(kind, column)).collect(),
    });
    Table {
        caption,
        columns_title: columns_title.to_owned(),
        columns: columns.iter().map(label).collect(),
        rows: rows.into_iter().filter(|row| row.values.iter().any(Option::is_some)).collect(),
    }
}

/// Returns what the log as a whole lacks.
fn notes(log: &TransferLog) -> Vec<String> {
    let mut notes = vec!["1 KB is 1024 bytes, as in document 001".to_owned()];
    match log.format {
        Some(LogFormat::Plimsoll) => {}
        Some(LogFormat::Xferlog) => notes.push(
            "xferlog has times in seconds: a start is the end minus the duration, so that rates are coarse; \
             a transfer shorter than a second counts as one, and a spread of starts below a second is \
             invisible"
                .to_owned(),
        ),
        None => notes.push("the log has no whole line".to_owned()),
    }
    if log.is_cut {
        notes.push("the last line has no end, and is ignored".to_owned());
    }
    for (count, text) in [
        (log.other_operations, "lines are of other operations than downloads"),
        (
            log.unnamed,
            "downloads have a name that carries no experiment (SIZE.TYPE.REPETITION.CONNECTIONS.NUMBER)",
        ),
        (log.failed, "downloads failed, and do not count"),
        (log.reversed, "downloads end before they start, because the clock was set back; they do not count"),
        (log.other_sizes, "downloads have another length than their name says; the bytes of the log count"),
    ] {
        if count > 0 {
            notes.push(format!("{count} {text}"));
        }
    }
    notes
}
