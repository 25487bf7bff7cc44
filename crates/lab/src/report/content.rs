//! The contents of a report without their format: sections of text, tables and charts.
//!
//! It formats nothing and computes nothing. Invariant: HTML and Markdown show the same contents, except that
//! Markdown has no charts.

use super::chart::Chart;

/// A report.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) title: String,
    /// The question that the experiment answers.
    pub(super) about: String,
    /// The answer in two sentences; empty without results.
    pub(super) conclusion: String,
    /// One line of facts.
    pub(super) facts: String,
    pub(super) sections: Vec<Section>,
}

/// A part of a report with a heading.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) title: String,
    pub(super) blocks: Vec<Block>,
    /// Whether a page shows the heading alone until a reader opens it.
    pub(super) is_folded: bool,
}

/// A part of a section.
#[derive(Debug)]
pub(super) enum Block {
    Text(String),
    Table(DataTable),
    Charts {
        title: String,
        charts: Vec<Chart>,
        /// Whether a page shows the title alone until a reader opens it.
        is_folded: bool,
    },
    List(Vec<String>),
    /// Text of a file or a command.
    Code(String),
}

/// A table that a reader can sort.
#[derive(Debug, Default)]
pub(super) struct DataTable {
    pub(super) columns: Vec<String>,
    pub(super) rows: Vec<Vec<Cell>>,
    /// The number of columns after the first that name the point of a row. A narrow page shows them in the
    /// first.
    pub(super) point_columns: usize,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cell {
    pub(super) text: String,
    /// The second line: an interval and a number of samples.
    pub(super) detail: String,
    /// The figure by which rows are sorted; none for words and missing figures.
    pub(super) order: Option<f64>,
    /// Whether the cell has a figure, present or missing.
    pub(super) is_figure: bool,
}

impl Section {
    pub(super) fn new(title: &str, blocks: Vec<Block>) -> Section {
        Section { title: title.to_owned(), blocks, is_folded: false }
    }

    /// Creates a section of details, which a page folds.
    pub(super) fn folded(title: &str, blocks: Vec<Block>) -> Section {
        Section { is_folded: true, ..Section::new(title, blocks) }
    }
}

impl Cell {
    pub(super) fn words(text: impl Into<String>) -> Cell {
        Cell { text: text.into(), ..Cell::default() }
    }

    /// Creates the cell of a figure, which is missing if there is none.
    pub(super) fn figure(value: Option<f64>, format: impl Fn(f64) -> String) -> Cell {
        let text = value.map_or_else(|| crate::format::figures::NONE.to_owned(), format);
        Cell { text, order: value, is_figure: true, ..Cell::default() }
    }

    /// Returns all its text in one line.
    pub(super) fn line(&self) -> String {
        if self.detail.is_empty() { self.text.clone() } else { format!("{} {}", self.text, self.detail) }
    }
}
