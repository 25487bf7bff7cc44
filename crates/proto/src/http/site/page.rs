//! The pages of a site: a folder's listing, and an error.
//!
//! They need no script and nothing from elsewhere, so that a policy may forbid both; all style is in the
//! page. Not here: what is listed and in which order (`listing`). What must hold: no name or detail is ever
//! markup.

mod size;

#[cfg(test)]
mod tests;

use std::time::Duration;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use plimsoll_wire::http::status::Status;

use super::listing::{Column, Listing, Row, rfc3339};

const STYLE: &str = include_str!("page.css");

/// Plimsoll's mark, placed so that its line lies on the page's.
const MARK: &str = r#"<svg class="mark" viewBox="0 0 64 48" aria-hidden="true">
<path d="M0 24h64M49 24a17 17 0 1 1-34 0 17 17 0 1 1 34 0"/></svg>"#;

/// The same for the browser's tab, where no style of ours reaches.
const ICON: &str = "data:image/svg+xml,\
    <svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16' fill='none' stroke='%233a8fd0'>\
    <path stroke-width='2' d='M0 8h16M13 8a5 5 0 1 1-10 0 5 5 0 1 1 10 0'/></svg>";

/// How many folders the breadcrumbs name: the links of all on a very deep path would outgrow the listing.
const CRUMBS_MAX: usize = 32;

/// The page of a folder.
pub(crate) fn listing(listing: &Listing<'_>) -> Vec<u8> {
    let path = String::from_utf8_lossy(listing.path);
    let content = html! {
        (breadcrumbs(&path))
        p { (summary(&listing.entries)) }
        @if listing.path != b"/" || !listing.entries.is_empty() { (table(listing)) }
    };
    page(&path, &content)
}

/// The page of an error; `detail` says what to do.
pub(crate) fn error(status: Status, detail: &str) -> Vec<u8> {
    let content = html! {
        h1 { (status.code()) " " (status.reason()) }
        p { (detail) }
        @if status == Status::NOT_FOUND { p { a href="/" { "Go to the start page" } } }
    };
    page(&status.to_string(), &content)
}

/// The start page of a server without a site under `/`.
pub(crate) fn start(has_accounts: bool) -> Vec<u8> {
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
            p { "Programs: " a href="/api/openapi.json" { "the description of the API" } "." }
        }
    };
    page("start", &content)
}

fn page(title: &str, content: &Markup) -> Vec<u8> {
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
    page.into_string().into_bytes()
}

/// The way here. Its links are relative: they hold also where a proxy serves the site below another prefix.
fn breadcrumbs(path: &str) -> Markup {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let depth = segments.len();
    let left_out = depth.saturating_sub(CRUMBS_MAX);
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

/// How many of what, and how large: `12 folders, 340 files, 1.2 GB`.
fn summary(rows: &[Row]) -> String {
    let (folders, files): (Vec<&Row>, Vec<&Row>) = rows.iter().partition(|row| row.is_folder());
    let bytes = files.iter().fold(0_u64, |sum, file| sum.saturating_add(file.size));
    let parts = [
        count(folders.len(), "folder"),
        count(files.len(), "file"),
        (!files.is_empty()).then(|| size::rounded(bytes)),
    ];
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

fn table(listing: &Listing<'_>) -> Markup {
    html! {
        table {
            @if !listing.entries.is_empty() {
                thead { tr {
                    (head(listing, Column::Name, "Name"))
                    (head(listing, Column::Size, "Size"))
                    (head(listing, Column::Modified, "Modified"))
                } }
            }
            tbody {
                @if listing.path != b"/" {
                    tr { td { a.up href="../" { "Parent folder" } } td {} td {} }
                }
                @for entry in &listing.entries { (row(entry)) }
            }
        }
    }
}

/// The head of a column, which sorts by it. Search engines need not follow: it is the same folder.
fn head(listing: &Listing<'_>, column: Column, title: &str) -> Markup {
    let order = listing.order;
    let (sorted, arrow) = match (order.by == column, order.descending) {
        (false, _) => (None, ""),
        (true, false) => (Some("ascending"), " ↑"),
        (true, true) => (Some("descending"), " ↓"),
    };
    html! {
        th scope="col" aria-sort=[sorted] {
            a href=(order.after_click(column).query()) rel="nofollow" {
                (title) @if column == Column::Modified { span { " (UTC)" } } b aria-hidden="true" { (arrow) }
            }
        }
    }
}

fn row(row: &Row) -> Markup {
    html! {
        tr {
            @if row.is_folder() {
                td { a.folder href=(row.href()) { (row.text()) "/" } } td {}
            } @else {
                td { a href=(row.href()) { (row.text()) } }
                td title={ (size::exact(row.size)) } { (size::rounded(row.size)) }
            }
            td { (time(row.modified)) }
        }
    }
}

/// `2026-11-20 13:40`; the clock has an element of its own, which narrow screens leave out.
fn time(since_1970: Duration) -> Markup {
    let exact = rfc3339(since_1970);
    let (date, clock) = exact.split_once('T').unwrap_or_default();
    let minutes = clock.get(..5).unwrap_or_default();
    html! { time datetime=(exact) { (date) span { " " (minutes) } } }
}
