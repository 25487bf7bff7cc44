//! A report as Markdown, without its charts.
//!
//! It chooses no contents. Invariant: text of an experiment is shown as text; it adds neither HTML nor
//! columns.

use super::content::{Block, Cell, DataTable, Report};
use crate::format::table::Table;

/// Formats a report.
pub(super) fn markdown(report: &Report) -> String {
    let mut text = format!("# {}\n", escaped(&report.title));
    let intro =
        [&report.conclusion, &report.about, &report.facts].into_iter().filter(|line| !line.is_empty());
    intro.for_each(|line| text += &format!("\n{}\n", escaped(line)));
    for section in &report.sections {
        let blocks: Vec<String> = section.blocks.iter().filter_map(block).collect();
        if !blocks.is_empty() {
            text += &format!("\n## {}\n\n{}", escaped(&section.title), blocks.join("\n"));
        }
    }
    text
}

fn block(block: &Block) -> Option<String> {
    Some(match block {
        Block::Text(text) => escaped(text) + "\n",
        Block::Table(data) => table(data, escaped),
        Block::List(items) => items.iter().map(|item| format!("* {}\n", escaped(item))).collect(),
        Block::Code(text) => code(text),
        Block::Charts { .. } => return None,
    })
}

/// Formats a table; `escape` is applied to each cell.
pub(super) fn table(data: &DataTable, escape: fn(&str) -> String) -> String {
    let mut table = Table::new(data.columns.iter().map(|column| escape(column)));
    for row in &data.rows {
        table.row(row.iter().map(|cell: &Cell| escape(&cell.line())));
    }
    table.text()
}

/// Escapes the characters that begin HTML or a column, and line breaks.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('&', "&amp;").replace('<', "&lt;").replace('|', "\\|");
    text.replace(['\r', '\n'], " ")
}

/// Formats a block of code with a fence longer than any that it has.
fn code(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_the_experiment_adds_no_markup() {
        assert_eq!(escaped("a|b <i>\nc & d"), "a\\|b &lt;i> c &amp; d");
        assert_eq!(code("a ``` b\n"), "````\na ``` b\n````\n");
    }
}
