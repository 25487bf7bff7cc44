//! Formats the tables of a transfer log as text in the shape of document 001's, and as Markdown.
//!
//! Nothing is computed here. Invariants: a value with a repetition that did not start together has an
//! asterisk; nothing of a log reaches a text but numbers.

use std::fmt::Write as _;

use super::limits::REPETITIONS_LISTED_MAX;
use super::name::size_label;
use super::tables::{Cell, Repetition, Share, Table, TableValue, Tables};

const FIRST_COLUMN: usize = 16;
const MARK: &str = "* a repetition in it has starts that are spread over more than 1 % of its time";

/// The columns of the table of experiments.
const EXPERIMENT_COLUMNS: [&str; 7] =
    ["files", "type", "connections", "kept", "overall", "each", "starts over"];

impl Tables {
    /// Formats the tables for people.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for table in &self.tables {
            text.push_str(&table_text(table));
            text.push('\n');
        }
        if !self.cells.is_empty() {
            let rows: Vec<[String; 7]> = self.cells.iter().map(experiment_row).collect();
            text.push_str(&aligned(&rows));
            text.push_str("kept: repetitions in the means; each: mean rate of a connection; rates in KBps\n");
        }
        for note in self.all_notes() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "note: {note}");
        }
        text
    }

    /// Formats the tables as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        for table in &self.tables {
            let titles = table.columns.iter().map(String::as_str);
            let _ = writeln!(text, "{}, by {}\n", table.caption, table.columns_title.to_lowercase());
            markdown_row(&mut text, ["Type of transfer"].into_iter().chain(titles));
            markdown_row(&mut text, ["---"].into_iter().chain(table.columns.iter().map(|_| "---:")));
            for row in &table.rows {
                let values = row.values.iter().map(|value| value.map(value_text).unwrap_or_default());
                markdown_row(&mut text, std::iter::once(row.title.clone()).chain(values));
            }
            text.push('\n');
        }
        if !self.cells.is_empty() {
            let _ = writeln!(text, "Experiments, with rates in KBps\n");
            markdown_row(&mut text, EXPERIMENT_COLUMNS);
            markdown_row(&mut text, ["---:", "---", "---:", "---:", "---:", "---:", "---:"]);
            for cell in &self.cells {
                markdown_row(&mut text, experiment_row(cell));
            }
            text.push('\n');
        }
        for note in self.all_notes() {
            let _ = writeln!(text, "* {}", note.replace('*', "\\*"));
        }
        text
    }

    fn all_notes(&self) -> Vec<String> {
        let is_marked = self.cells.iter().flat_map(Cell::kept).any(|repetition| repetition.is_marked);
        is_marked.then(|| MARK.to_owned()).into_iter().chain(self.notes.iter().cloned()).collect()
    }
}

/// Formats a table in the document's shape.
fn table_text(table: &Table) -> String {
    let values = |row: &super::TableRow| -> Vec<String> {
        row.values.iter().map(|value| value.map(value_text).unwrap_or_default()).collect()
    };
    let rows: Vec<(&str, Vec<String>)> =
        table.rows.iter().map(|row| (row.title.as_str(), values(row))).collect();
    let labels = || table.columns.iter().cloned().map(|label| label + " ");
    let cells = rows.iter().flat_map(|(_, values)| values.iter().cloned()).chain(labels());
    let width = cells.map(|cell| cell.len()).max().unwrap_or(0) + 2;
    let mut text = format!("{:<FIRST_COLUMN$}  {}\n", "Type of", table.columns_title);
    for (title, values) in
        std::iter::once(("transfer", labels().collect::<Vec<_>>())).chain(rows.iter().cloned())
    {
        let columns: String = values.iter().map(|value| format!("{value:>width$}")).collect();
        let _ = writeln!(text, "{}", format!("{title:<FIRST_COLUMN$}{columns}").trim_end());
    }
    let _ = writeln!(text, "{}", table.caption);
    text
}

/// Formats a rate, with room for the asterisk.
fn value_text(value: TableValue) -> String {
    format!("{:.2}{}", value.rate, if value.is_marked { "*" } else { " " })
}

fn experiment_row(cell: &Cell) -> [String; 7] {
    let rate = |rate: Option<f64>| rate.map(|rate| format!("{rate:.2}")).unwrap_or_default();
    let spread = cell.kept().map(|repetition| repetition.spread_seconds).fold(0.0, f64::max);
    [
        size_label(cell.size),
        cell.transfer_type.name().to_owned(),
        cell.connections.to_string(),
        format!("{} of {}", cell.kept().count(), cell.repetitions.len()),
        rate(cell.overall_rate),
        rate(cell.connection_rate),
        format!("{spread:.6} s"),
    ]
}

/// Formats rows below their titles, aligned to the right.
fn aligned(rows: &[[String; 7]]) -> String {
    let titles = EXPERIMENT_COLUMNS.map(str::to_owned);
    let mut text = String::new();
    for row in std::iter::once(&titles).chain(rows) {
        for (column, cell) in row.iter().enumerate() {
            let widths = rows.iter().map(|row| row[column].len()).chain([titles[column].len()]);
            let width = widths.max().unwrap_or(0) + if column == 0 { 0 } else { 2 };
            let _ = write!(text, "{cell:>width$}");
        }
        text.push('\n');
    }
    text
}

fn markdown_row<T: AsRef<str>>(text: &mut String, cells: impl IntoIterator<Item = T>) {
    text.push('|');
    for cell in cells {
        let _ = write!(text, " {} |", cell.as_ref().trim().replace('*', "\\*"));
    }
    text.push('\n');
}

/// Returns the repetitions that are not in the means, or were not started together.
pub(super) fn notes_on_cells(cells: &[Cell], discarded: u32) -> Vec<String> {
    let mut notes = Vec::new();
    if discarded > 0 && !cells.is_empty() {
        notes.push(format!(
            "the first {discarded} repetitions of each experiment are discarded, or all but the last if \
             there are fewer"
        ));
    }
    for cell in cells {
        let experiment =
            format!("{} {}, {}", size_label(cell.size), cell.transfer_type.name(), cell.connections);
        let listed = |is_listed: &dyn Fn(&Repetition) -> bool| {
            let numbers = cell.repetitions.iter().filter(|repetition| is_listed(repetition));
            list(&numbers.map(|repetition| repetition.number).collect::<Vec<_>>())
        };
        if let Some(numbers) = listed(&|repetition| repetition.share == Share::Incomplete) {
            notes.push(format!(
                "{experiment} connections: more or fewer transfers than connections, so not in the means: \
                 repetitions {numbers}"
            ));
        }
        if let Some(numbers) = listed(&|repetition| repetition.share == Share::Kept && repetition.is_marked) {
            notes.push(format!(
                "{experiment} connections: starts spread over more than 1 %: repetitions {numbers}"
            ));
        }
    }
    notes
}

/// Lists the first numbers, and says how many more there are. Returns `None` for none.
fn list(numbers: &[u32]) -> Option<String> {
    let first: Vec<String> = numbers.iter().take(REPETITIONS_LISTED_MAX).map(u32::to_string).collect();
    let more = match numbers.len() - first.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    (!first.is_empty()).then(|| first.join(", ") + &more)
}
