//! Tables of a document that an experiment repeats: which of our figures belongs to which published one.
//!
//! It computes no figure. Invariant: each cell of a table belongs to the trials of one point, or of one curve
//! over the number of users, which is checked before anything is started.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::template::Values;
use super::value::Scalar;
use super::{Experiment, Trial};

/// The selector, and the variable of rows, that stands for the name of a contender.
pub const CONTENDER: &str = "contender";

/// A table of a document.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentTable {
    /// The place in the document, such as `document 000, Table 2`.
    pub source: String,
    /// The title of the table.
    pub title: String,
    /// Text below the table: units, and differences from the document.
    #[serde(default)]
    pub note: String,
    /// The variable that changes from row to row, or `contender`.
    pub row: String,
    /// Its values.
    pub rows: Vec<Scalar>,
    /// The columns after the first.
    pub columns: Vec<Column>,
}

/// A column of the document's table, beside which stand ours: one for each contender.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Column {
    /// The title, with the unit.
    pub title: String,
    /// The figure.
    pub figure: Figure,
    /// The contenders; all if it is empty. Not for rows of contenders.
    #[serde(default)]
    pub contenders: Vec<String>,
    /// The values of other variables.
    #[serde(default)]
    pub at: BTreeMap<String, Scalar>,
    /// The process of which it is the memory; all if absent.
    #[serde(default)]
    pub process: Option<String>,
    /// The published figures, one for each row, as the document has them; an empty text where it has none.
    #[serde(default)]
    pub published: Vec<Scalar>,
}

/// A figure of a document's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// N*, where the asymptotes meet.
    Saturation,
    /// The least number of users with 95 % of the maximum throughput.
    NearlyAll,
    /// The maximum throughput of all numbers of users, in requests a second.
    ThroughputMax,
    /// The response time at N* in seconds.
    ResponseAtSaturation,
    /// The bottleneck, as a hint.
    Bottleneck,
    /// The largest rate of bodies of all numbers of users, in Mbit/s. A load tool has it too.
    BitRateMax,
    /// Requests a second.
    Throughput,
    /// The mean response time in seconds.
    Response,
    /// Bytes a second of all users together, in KB (1024 bytes).
    OverallRate,
    /// The mean of the rates of each user, in KB (1024 bytes) a second.
    ConnectionRate,
    /// The mean time of a user from the common start to the end of its last request, in seconds.
    ThreadTime,
    /// The largest resident memory in MiB.
    Memory,
    /// Bytes a second that were read from disks, in MB (1,000,000 bytes).
    DiskRead,
}

impl Figure {
    /// Returns whether the figure is words.
    pub fn is_words(self) -> bool {
        self == Figure::Bottleneck
    }

    /// Returns whether the figure belongs to all numbers of users together.
    pub fn is_of_curve(self) -> bool {
        use Figure::{BitRateMax, Bottleneck, NearlyAll, ResponseAtSaturation, Saturation, ThroughputMax};
        matches!(
            self,
            Saturation | NearlyAll | ThroughputMax | ResponseAtSaturation | Bottleneck | BitRateMax
        )
    }
}

/// The trials of one cell of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// The name of the contender.
    pub contender: String,
    /// The values that the trials have.
    pub values: Values,
}

impl Selection {
    /// Returns whether trials of a contender at a point belong to the cell.
    pub fn has(&self, contender: &str, point: &Values) -> bool {
        self.contender == contender
            && self.values.iter().all(|(name, value)| point.get(name).is_some_and(|own| own == value))
    }
}

impl DocumentTable {
    /// Returns the names of the contenders whose columns stand beside a published one. None for rows of
    /// contenders, which have a single column.
    pub fn contenders<'a>(&self, column: &'a Column, experiment: &'a Experiment) -> Vec<Option<&'a str>> {
        match (self.row == CONTENDER, column.contenders.is_empty()) {
            (true, _) => vec![None],
            (false, true) => experiment.contenders.iter().map(|one| Some(one.name.as_str())).collect(),
            (false, false) => column.contenders.iter().map(|name| Some(name.as_str())).collect(),
        }
    }

    /// Returns the trials of a cell. `contender` is none for rows of contenders.
    pub fn selection(&self, row: &Scalar, column: &Column, contender: Option<&str>) -> Selection {
        let mut values: Values =
            column.at.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect();
        if self.row != CONTENDER {
            values.insert(self.row.clone(), row.0.clone());
        }
        Selection { contender: contender.unwrap_or(&row.0).to_owned(), values }
    }

    /// Refuses a table whose cells belong to no trials, or to those of several points.
    pub(super) fn check(&self, experiment: &Experiment, trials: &[Trial]) -> Result<()> {
        ensure!(!self.rows.is_empty(), "it has no rows");
        ensure!(!self.columns.is_empty(), "it has no columns");
        for column in &self.columns {
            self.check_column(column, experiment, trials)
                .with_context(|| format!("column {:?}", column.title))?;
        }
        Ok(())
    }

    fn check_column(&self, column: &Column, experiment: &Experiment, trials: &[Trial]) -> Result<()> {
        let (published, rows) = (column.published.len(), self.rows.len());
        ensure!(
            published == 0 || published == rows,
            "it has {published} published figures for {rows} rows; write \"\" where the document has none"
        );
        ensure!(
            self.row != CONTENDER || column.contenders.is_empty(),
            "the rows are the contenders already: leave `contenders` out"
        );
        for row in &self.rows {
            for contender in self.contenders(column, experiment) {
                check_cell(&self.selection(row, column, contender), column.figure, experiment, trials)?;
            }
        }
        Ok(())
    }
}

fn check_cell(cell: &Selection, figure: Figure, experiment: &Experiment, trials: &[Trial]) -> Result<()> {
    let values: Vec<String> = cell.values.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let text = || format!("{} with {}", cell.contender, values.join(", "));
    let name = |trial: &Trial| experiment.contenders[trial.contender].name.as_str();
    let found = trials.iter().filter(|trial| cell.has(name(trial), &trial.point));
    let mut points: Vec<Values> = found.map(|trial| trial.point.clone()).collect();
    ensure!(!points.is_empty(), "no trial is of {}", text());
    if figure.is_of_curve() {
        points.iter_mut().for_each(|point| drop(point.remove("users")));
    }
    points.sort();
    points.dedup();
    ensure!(
        points.len() == 1,
        "{} has trials of {} points: state the values of more variables in `at`",
        text(),
        points.len()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXPERIMENT: &str = r#"
        name = "table"
        [[contenders]]
        name = "a"
        url = "http://h/{}"
        [[files]]
        name = "1K"
        size = 1000
        [[files]]
        name = "2K"
        size = 2000
        [load]
        time = "1s"
        [sweep]
        files = ["1K", "2K"]
        users = [1, 2]
        [[document]]
        source = "document 000, Table 3"
        title = "Design change"
        row = "files"
        rows = ["1K", "2K"]
        [[document.columns]]
        title = "N*"
        figure = "saturation"
        published = [17, ""]
        [[document.columns]]
        title = "X(2)"
        figure = "throughput"
        at = { users = 2 }
    "#;

    #[test]
    fn a_cell_belongs_to_the_trials_of_its_row_and_column() {
        let experiment = Experiment::parse(EXPERIMENT).unwrap();
        let table = &experiment.documents[0];
        let column = &table.columns[1];
        assert_eq!(table.contenders(column, &experiment), [Some("a")]);
        let cell = table.selection(&table.rows[0], column, Some("a"));
        let point = |files: &str, users: &str| -> Values {
            [("files", files), ("users", users)].map(|(a, b)| (a.to_owned(), b.to_owned())).into()
        };
        assert!(cell.has("a", &point("1K", "2")));
        for (contender, point) in [("b", point("1K", "2")), ("a", point("2K", "2")), ("a", point("1K", "1"))]
        {
            assert!(!cell.has(contender, &point));
        }
    }

    #[test]
    fn a_malformed_table_is_refused_with_its_source_and_the_reason() {
        for (from, to, why) in [
            ("rows = [\"1K\", \"2K\"]", "rows = [\"1K\", \"3K\"]", "no trial is of a with files = 3K"),
            ("published = [17, \"\"]", "published = [17]", "1 published figures for 2 rows"),
            ("at = { users = 2 }", "", "2 points"),
            ("at = { users = 2 }", "at = { user = 2 }", "no trial"),
            ("figure = \"throughput\"", "figure = \"through\"", "through"),
            ("row = \"files\"", "row = \"file\"", "no trial"),
            ("published", "publised", "publised"),
            ("at = { users = 2 }", "contenders = [\"b\"]", "no trial is of b"),
        ] {
            let refused = format!("{:#}", Experiment::parse(&EXPERIMENT.replace(from, to)).unwrap_err());
            assert!(refused.contains(why), "{refused}");
        }
    }
}
