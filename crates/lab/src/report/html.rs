//! A report as one HTML page without any other file.
//!
//! It chooses no contents. Invariants: all text is escaped; the page loads nothing, and runs only its own
//! script; without the script, everything is readable.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::content::{Block, Cell, DataTable, Report, Section};
use super::svg;

const STYLE: &str = include_str!("page.css");
/// Sorts tables, and shows the numbers of a mark on hover and touch.
const SCRIPT: &str = include_str!("page.js");
/// The SHA-256 of the script, by which the policy permits it.
const SCRIPT_HASH: &str = "qrOMfT1DWszuYaA48P+85SYKNVd0kWH3YcuiZKIi0WU=";
/// A column of words with a cell of more characters is wide, or very wide.
const LONG_WORDS: [usize; 2] = [12, 30];

/// Formats a report.
pub(super) fn page(report: &Report) -> String {
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{SCRIPT_HASH}'; base-uri 'none'; \
         form-action 'none'"
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (report.title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (report.title) }
                @if !report.conclusion.is_empty() { p.conclusion { (unbroken(&report.conclusion)) } }
                @if !report.about.is_empty() { p.about { (report.about) } }
                p.facts { (report.facts) }
                nav {
                    @for (number, section) in report.sections.iter().enumerate() {
                        a href=(format!("#s{number}")) { (section.title) }
                    }
                }
                main {
                    @for (number, part) in report.sections.iter().enumerate() { (section(number, part)) }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

fn section(number: usize, section: &Section) -> Markup {
    let heading = html! { h2 { (section.title) } };
    let contents = html! { @for part in &section.blocks { (block(part)) } };
    html! {
        section id=(format!("s{number}")) {
            @if section.is_folded { (folded(&heading, &contents)) } @else { (heading) (contents) }
        }
    }
}

/// Shows a heading alone until a reader opens it.
fn folded(heading: &Markup, contents: &Markup) -> Markup {
    html! { details { summary { (heading) } (contents) } }
}

fn block(block: &Block) -> Markup {
    html! {
        @match block {
            Block::Text(text) => p { (unbroken(text)) },
            Block::Table(data) => (table(data)),
            Block::Charts { title, charts, is_folded } => {
                @let heading = html! { @if !title.is_empty() { h3 { (title) } } };
                @let drawn = html! { div.charts { @for chart in charts { (svg::figure(chart)) } } };
                @if *is_folded { (folded(&heading, &drawn)) } @else { (heading) (drawn) }
            }
            Block::List(items) => ul.list { @for item in items { li { (item) } } },
            Block::Code(text) => pre { code { (text) } },
        }
    }
}

fn table(table: &DataTable) -> Markup {
    let length = |column: usize| {
        let cells = table.rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.text.len()).max().unwrap_or(0)
    };
    let is_figure =
        |column: usize| table.rows.iter().any(|row| row.get(column).is_some_and(|cell| cell.is_figure));
    let class = |column: usize| {
        let kind = match length(column) {
            _ if is_figure(column) => "f",
            length if length > LONG_WORDS[1] => "w long",
            length if length > LONG_WORDS[0] => "w middle",
            _ => "w",
        };
        let is_of_point = (1..=table.point_columns).contains(&column);
        if is_of_point { format!("{kind} point") } else { kind.to_owned() }
    };
    html! {
        div.scroll tabindex="0" {
            table {
                thead {
                    tr {
                        @for (column, name) in table.columns.iter().enumerate() {
                            th scope="col" class=(class(column)) { (name) }
                        }
                    }
                }
                tbody {
                    @for row in &table.rows {
                        tr {
                            @for (column, one) in row.iter().enumerate() {
                                @let point = if column == 0 { point_text(table, row) } else { String::new() };
                                (cell(&class(column), one, &point))
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the point of a row in words, for a page too narrow for its columns.
fn point_text(table: &DataTable, row: &[Cell]) -> String {
    let named = table.columns.iter().zip(row).skip(1).take(table.point_columns);
    let pair = |(name, cell): (&String, &Cell)| match name.as_str() {
        "at" => cell.text.clone(),
        name => format!("{name}={}", cell.text),
    };
    named.map(pair).collect::<Vec<String>>().join(" ")
}

fn cell(class: &str, cell: &Cell, point: &str) -> Markup {
    html! {
        td class=(class) data-o=[cell.order] {
            (unbroken(&cell.text))
            @if !point.is_empty() { small.at { (point) } }
            @if !cell.detail.is_empty() { small { (in_units(&cell.detail)) } }
        }
    }
}

/// Joins each number of an interval and its unit.
fn in_units(detail: &str) -> String {
    detail.replace(' ', "\u{a0}").replace(",\u{a0}", ", ").replace("]\u{a0}", "] ")
}

/// Joins a number and its percent sign.
fn unbroken(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_permits_the_script_that_the_page_has() {
        // A changed script needs the new hash of `openssl dgst -sha256 -binary page.js | base64`, and here
        // its BLAKE3, which the tests can compute.
        assert_eq!(
            blake3::hash(SCRIPT.as_bytes()).to_hex().as_str(),
            "e1bc1eb2646747ccda6f7e9529b76d23b0df2cb62b434d1f86527aa6854ea08e"
        );
        assert!(!SCRIPT.contains("</") && !STYLE.contains("</"));
        assert_eq!(SCRIPT_HASH.len(), 44);
    }
}
