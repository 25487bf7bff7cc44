//! HTML pages: a folder's listing, an error, and the start page.
//!
//! They need no script and no external content, so that a policy may forbid both; all style is in the page.
//! Not here: the selection and order of entries (`listing`). Invariant: no name or detail becomes markup.

mod size;

#[cfg(test)]
mod tests;

use std::time::Duration;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use plimsoll_wire::calendar::format_rfc3339;
use plimsoll_wire::http::status::Status;

use crate::limits::BREADCRUMBS_MAX;
use crate::listing::{Column, ListingRow, Order, Summary};

const STYLE: &str = include_str!("page.css");

/// Plimsoll's mark, placed so that its line lies on the page's.
const MARK: &str = r#"<svg class="mark" viewBox="0 0 64 48" aria-hidden="true">
<path d="M0 24h64M49 24a17 17 0 1 1-34 0 17 17 0 1 1 34 0"/></svg>"#;

/// The same for the browser's tab, where no style of ours reaches.
const ICON: &str = "data:image/svg+xml,\
    <svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16' fill='none' stroke='%233a8fd0'>\
    <path stroke-width='2' d='M0 8h16M13 8a5 5 0 1 1-10 0 5 5 0 1 1 10 0'/></svg>";

/// Marks the position of the rows. It occurs nowhere else in a page.
const ROWS: char = '\0';

/// Returns the page of a folder before its rows, and after them.
pub(crate) fn frame(path: &str, order: Order, summary: Summary) -> (Vec<u8>, Vec<u8>) {
    let content = html! {
        (breadcrumbs(path))
        p { (describe(summary)) }
        @if path != "/" || summary.has_any() { (table(path, order, summary)) }
    };
    let page = page(path, &content);
    let (head, tail) = page.rsplit_once(ROWS).unwrap_or((&page, ""));
    (head.as_bytes().to_vec(), tail.as_bytes().to_vec())
}

/// Returns the page of an error. `detail` tells the reader how to proceed.
pub fn error(status: Status, detail: &str) -> Vec<u8> {
    let content = html! {
        h1 { (status.code()) " " (status.reason()) }
        p { (detail) }
        @if status == Status::NOT_FOUND { p { a href="/" { "Go to the start page" } } }
        @if status == Status::UNAUTHORIZED { (ways_to_log_in()) }
    };
    page(&status.to_string(), &content).into_bytes()
}

/// Returns the ways to log in, for a person whose browser was refused.
fn ways_to_log_in() -> Markup {
    html! {
        p { "Reload the page, and enter the name and the password of an account. In a terminal:" }
        pre { "plimsoll login NAME --server URL\nplimsoll ls" }
        p { "Or with curl:" }
        pre { "curl --user NAME URL/files/" }
        p { "URL is the address of the server's " a href="/" { "start page" } "." }
    }
}

/// Returns the start page of a server without a site under `/`.
pub fn start(has_accounts: bool) -> Vec<u8> {
    let content = html! {
        h1 { "plimsoll" }
        p { "This is a plimsoll file server. No folder is served under this address itself." }
        @if has_accounts {
            p {
                a href="/files/" { "Your files" }
                " – the browser asks for your name and password. Others' are in "
                a href="/shared/" { "what is shared with you" } "."
            }
            p { "In a terminal:" }
            pre { "plimsoll login NAME --server URL\nplimsoll put FILE\nplimsoll ls" }
            p { "URL is the address of this page." }
            p { "Programs: " a href="/api/openapi.json" { "the description of the API" } "." }
        }
    };
    page("start", &content).into_bytes()
}

fn page(title: &str, content: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " – plimsoll" }
                link rel="icon" href=(ICON);
                style { (PreEscaped(STYLE)) }
            }
            body { main { (PreEscaped(MARK)) (content) } }
        }
    };
    page.into_string()
}

/// Returns the links to the folders above. They are relative, so they are also right if a proxy serves the
/// site below another prefix.
fn breadcrumbs(path: &str) -> Markup {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let depth = segments.len();
    let left_out = depth.saturating_sub(BREADCRUMBS_MAX);
    html! {
        nav aria-label="Breadcrumbs" { h1 {
            (crumb("Files", depth))
            @if left_out > 0 { i { "/" } "…" }
            @for (at, segment) in segments.iter().enumerate().skip(left_out) {
                i { "/" } (crumb(segment, depth - 1 - at))
            }
        } }
    }
}

/// A link to the folder so many levels up; 0 is the page itself.
fn crumb(name: &str, levels_up: usize) -> Markup {
    match levels_up {
        0 => html! { a href="./" aria-current="page" { (name) } },
        _ => html! { a href=("../".repeat(levels_up)) { (name) } },
    }
}

impl Summary {
    fn has_any(self) -> bool {
        self.folders + self.files > 0
    }
}

/// Returns the number and size of the entries: `12 folders, 340 files, 1.2 GB`.
fn describe(Summary { folders, files, bytes }: Summary) -> String {
    let parts = [count(folders, "folder"), count(files, "file"), (files > 0).then(|| size::rounded(bytes))];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "This folder is empty.".to_owned() } else { parts.join(", ") }
}

fn count(number: usize, thing: &str) -> Option<String> {
    match number {
        0 => None,
        1 => Some(format!("1 {thing}")),
        _ => Some(format!("{} {thing}s", size::grouped(&number.to_string()))),
    }
}

fn table(path: &str, order: Order, summary: Summary) -> Markup {
    html! {
        table {
            @if summary.has_any() {
                thead { tr {
                    (head(order, Column::Name, "Name"))
                    (head(order, Column::Size, "Size"))
                    (head(order, Column::Modified, "Modified"))
                } }
            }
            tbody {
                @if path != "/" {
                    tr { td { a.up href="../" { "Parent folder" } } td {} td {} }
                }
                (PreEscaped(ROWS.to_string()))
            }
        }
    }
}

/// The head of a column, which sorts by it. A form, because wget and crawlers follow links, and would fetch
/// the same folder in each order.
fn head(order: Order, column: Column, title: &str) -> Markup {
    let (sorted, arrow) = match (order.by == column, order.descending) {
        (false, _) => (None, ""),
        (true, false) => (Some("ascending"), " ↑"),
        (true, true) => (Some("descending"), " ↓"),
    };
    let next = order.after_click(column);
    html! {
        th scope="col" aria-sort=[sorted] {
            form {
                input type="hidden" name="order" value=(next.direction());
                button name="sort" value=(column.name()) {
                    (title) @if column == Column::Modified { span { " (UTC)" } }
                    b aria-hidden="true" { (arrow) }
                }
            }
        }
    }
}

/// Returns the row of an entry.
pub(crate) fn row(row: &ListingRow) -> Markup {
    html! {
        tr {
            @if row.is_folder() {
                td { a.folder href=(row.href()) { (row.page_text()) "/" } } td {}
            } @else {
                td { a href=(row.href()) { (row.page_text()) } }
                td title={ (size::exact(row.size)) } { (size::rounded(row.size)) }
            }
            td { (time(row.modified)) }
        }
    }
}

/// `2026-11-20 13:40`; the clock has an element of its own, which narrow screens leave out.
fn time(since_1970: Duration) -> Markup {
    let exact = format_rfc3339(since_1970);
    let (date, clock) = exact.split_once('T').unwrap_or_default();
    let minutes = clock.get(..5).unwrap_or_default();
    html! { time datetime=(exact) { (date) span { " " (minutes) } } }
}
