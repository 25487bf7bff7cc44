//! The tables of a repeated document, in its own shape: the published figures, and ours beside them.
//!
//! It computes nothing. Invariants: a published figure stands as the document has it; ours has the same unit,
//! and its interval where it is a mean.

use super::cells::mean;
use super::content::{Block, Cell, DataTable, Section};
use crate::analysis::{Curve, OwnFigure, document_figure};
use crate::experiment::document::{CONTENDER, Column, DocumentTable};
use crate::format::figures::NONE;
use crate::results::Results;

/// The number of digits of our figures.
const DIGITS: usize = 4;

/// Returns a section for each table of the experiment.
pub(super) fn sections(results: &Results, curves: &[Curve]) -> Vec<Section> {
    let section = |table: &DocumentTable| {
        let mut blocks = vec![
            Block::Text(format!("{}: the published figures, and ours beside them.", table.source)),
            Block::Table(data(table, results, curves)),
        ];
        blocks.extend((!table.note.is_empty()).then(|| Block::Text(table.note.trim().to_owned())));
        Section::new(&table.title, blocks)
    };
    results.experiment.documents.iter().map(section).collect()
}

fn data(table: &DocumentTable, results: &Results, curves: &[Curve]) -> DataTable {
    let mut data = DataTable { columns: vec![table.row.clone()], rows: Vec::new(), ..DataTable::default() };
    for column in &table.columns {
        data.columns.extend((!column.published.is_empty()).then(|| format!("{}, document", column.title)));
        for contender in table.contenders(column, &results.experiment) {
            let server = contender.unwrap_or("ours");
            data.columns.push(format!("{}, {server}", column.title));
        }
    }
    for (number, row) in table.rows.iter().enumerate() {
        let mut cells = vec![label(&row.0, table.row == CONTENDER)];
        for column in &table.columns {
            cells.extend(column.published.get(number).map(|text| published(&text.0)));
            for contender in table.contenders(column, &results.experiment) {
                let selection = table.selection(row, column, contender);
                cells.push(own(document_figure(results, curves, &selection, column), column));
            }
        }
        data.rows.push(cells);
    }
    data
}

fn label(text: &str, is_name: bool) -> Cell {
    let number = text.parse::<f64>().ok().filter(|_| !is_name);
    Cell { order: number, is_figure: number.is_some(), ..Cell::words(text) }
}

/// Returns the cell of a published figure or of published words.
fn published(text: &str) -> Cell {
    let text = if text.is_empty() { NONE } else { text };
    let number = text.parse::<f64>().ok();
    Cell { order: number, is_figure: number.is_some() || text == NONE, ..Cell::words(text) }
}

fn own(figure: Option<OwnFigure>, column: &Column) -> Cell {
    match figure {
        Some(OwnFigure::Mean(value)) => mean(Some(value), significant),
        Some(OwnFigure::Single(value)) => Cell::figure(Some(value), significant),
        Some(OwnFigure::Words(text)) => Cell::words(text),
        None if column.figure.is_words() => Cell::words(NONE),
        None => Cell::figure(None, significant),
    }
}

/// Formats a figure with four significant digits and no unit.
fn significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let scientific = format!("{value:.*e}", DIGITS - 1);
    let exponent = scientific.split_once('e').and_then(|(_, exponent)| exponent.parse::<isize>().ok());
    let decimals = (DIGITS - 1).checked_add_signed(-exponent.unwrap_or(0)).unwrap_or(0);
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_figures_have_four_digits_in_the_unit_of_the_document() {
        let texts = [23089.84, 3093.71, 1.13561, 0.00540391, 0.0].map(significant);
        assert_eq!(texts, ["23090", "3094", "1.136", "0.005404", "0"]);
    }

    #[test]
    fn a_published_figure_stands_as_the_document_has_it() {
        assert_eq!(
            (published("1.14016").text.as_str(), published("1.14016").order),
            ("1.14016", Some(1.14016))
        );
        assert_eq!((published("").text.as_str(), published("Disk").is_figure), (NONE, false));
    }
}
