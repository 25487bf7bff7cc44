//! The page of a folder: breadcrumbs, a summary, and a table of its entries.
//!
//! A [`FolderFrame`] has its words and what surrounds it. Invariant: the table is the same for accounts and
//! for sites.

use std::ops::Range;
use std::time::Duration;

use maud::{Markup, PreEscaped, html};
use plimsoll_wire::calendar::format_rfc3339;
use plimsoll_wire::text::is_unsafe_to_show;

use super::size;
use crate::limits::BREADCRUMBS_MAX;
use crate::listing::{Column, ListingRow, Order, Summary};

/// Marks the position of the rows. It occurs nowhere else in a page.
const ROWS: char = '\0';

/// The surroundings of a folder's table.
pub trait FolderFrame: Send {
    /// Returns the words of the table.
    fn words(&self) -> FolderWords<'_>;

    /// Returns the whole page around its content.
    fn document(&self, title: &str, content: &Markup) -> String;

    /// Returns what is above the table.
    fn tools(&self) -> Markup {
        html! {}
    }

    /// Returns the name of the last column; `None` if there is none.
    fn tool_column(&self) -> Option<&str> {
        None
    }

    /// Returns the cell of that column in a row.
    fn row_tools(&self, row: &ListingRow) -> Markup {
        let _ = row;
        html! {}
    }
}

/// The words of a folder's table, in the reader's language.
#[derive(Clone, Copy)]
pub struct FolderWords<'a> {
    /// The folder at the top.
    pub root: &'a str,
    /// The links to the folders above, for a screen reader.
    pub breadcrumbs: &'a str,
    /// The summary of a folder without entries.
    pub empty: &'a str,
    /// One folder, and several.
    pub folders: [&'a str; 2],
    /// One file, and several.
    pub files: [&'a str; 2],
    /// The column of names.
    pub name: &'a str,
    /// The column of sizes.
    pub size: &'a str,
    /// The column of times.
    pub modified: &'a str,
    /// The link to the folder above.
    pub parent: &'a str,
    /// The link to the entries before those that are shown.
    pub previous: &'a str,
    /// The link to the entries after them.
    pub next: &'a str,
}

/// The folder that a page is about.
pub(crate) struct Folder<'a> {
    pub(crate) path: &'a str,
    pub(crate) order: Order,
    pub(crate) summary: Summary,
    /// The positions of the shown entries, if not all are shown.
    pub(crate) window: Option<Range<usize>>,
}

/// Returns the page of a folder before its rows, and after them.
pub(crate) fn around_rows(folder: &Folder<'_>, frame: &dyn FolderFrame) -> (Vec<u8>, Vec<u8>) {
    let words = frame.words();
    let Folder { path, order, summary, window } = folder;
    let content = html! {
        (breadcrumbs(path, words))
        p { (describe(*summary, words)) }
        (frame.tools())
        @if *path != "/" || summary.has_any() { (table(folder, frame)) }
        @if let Some(window) = window { (neighbours(window, *order, *summary, words)) }
    };
    let page = frame.document(path, &content);
    let (head, tail) = page.rsplit_once(ROWS).unwrap_or((&page, ""));
    (head.as_bytes().to_vec(), tail.as_bytes().to_vec())
}

/// Returns the links to the folders above. They are relative, so they are also right if a proxy serves the
/// site below another prefix.
fn breadcrumbs(path: &str, words: FolderWords<'_>) -> Markup {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let depth = segments.len();
    let left_out = depth.saturating_sub(BREADCRUMBS_MAX);
    html! {
        nav aria-label=(words.breadcrumbs) { h1 {
            (crumb(words.root, depth))
            @if left_out > 0 { i { "/" } "…" }
            @for (at, segment) in segments.iter().enumerate().skip(left_out) {
                i { "/" } (crumb(segment, depth - 1 - at))
            }
        } }
    }
}

/// A link to the folder so many levels up; 0 is the page itself.
fn crumb(name: &str, levels_up: usize) -> Markup {
    let name = name.replace(is_unsafe_to_show, "\u{fffd}");
    match levels_up {
        0 => html! { a href="./" aria-current="page" { bdi { (name) } } },
        _ => html! { a href=("../".repeat(levels_up)) { bdi { (name) } } },
    }
}

impl Summary {
    fn has_any(self) -> bool {
        self.entries() > 0
    }

    fn entries(self) -> usize {
        self.folders + self.files
    }
}

/// Returns the number and size of the entries: `12 folders, 340 files, 1.2 GB`.
fn describe(Summary { folders, files, bytes }: Summary, words: FolderWords<'_>) -> String {
    let parts =
        [count(folders, words.folders), count(files, words.files), (files > 0).then(|| size::rounded(bytes))];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { words.empty.to_owned() } else { parts.join(", ") }
}

fn count(number: usize, [one, many]: [&str; 2]) -> Option<String> {
    match number {
        0 => None,
        1 => Some(format!("1 {one}")),
        _ => Some(format!("{} {many}", size::grouped(&number.to_string()))),
    }
}

fn table(folder: &Folder<'_>, frame: &dyn FolderFrame) -> Markup {
    let Folder { path, order, summary, .. } = *folder;
    let (words, tools) = (frame.words(), frame.tool_column());
    let is_long = folder.window.as_ref().is_some_and(|window| window.len() < summary.entries());
    html! {
        table class=[is_long.then_some("long")] {
            @if summary.has_any() {
                thead { tr {
                    (head(order, Column::Name, words.name))
                    (head(order, Column::Size, words.size))
                    (head(order, Column::Modified, words.modified))
                    @if let Some(name) = tools { th scope="col" { span.unseen { (name) } } }
                } }
            }
            tbody {
                @if path != "/" {
                    tr { td { a.up href="../" { (words.parent) } } td {} td {} @if tools.is_some() { td {} } }
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

/// Returns the links to the entries before and after those in the window.
fn neighbours(window: &Range<usize>, order: Order, summary: Summary, words: FolderWords<'_>) -> Markup {
    let (all, step) = (summary.entries(), window.len());
    let link = |from: usize| format!("?sort={}&order={}&from={from}", order.by.name(), order.direction());
    html! {
        @if window.start > 0 || window.end < all {
            nav.pages {
                @if window.start > 0 {
                    a href=(link(window.start.saturating_sub(step))) rel="prev" { (words.previous) }
                }
                @let shown = window.start.min(all)..window.end.min(all);
                span {
                    (size::grouped(&(shown.start + 1).min(shown.end).to_string())) "–"
                    (size::grouped(&shown.end.to_string())) " / " (size::grouped(&all.to_string()))
                }
                @if window.end < all { a href=(link(window.end)) rel="next" { (words.next) } }
            }
        }
    }
}

/// Returns the row of an entry.
pub(crate) fn row(row: &ListingRow, frame: &dyn FolderFrame) -> Markup {
    html! {
        tr {
            @if row.is_folder() {
                td { a.folder href=(row.href()) { (row.page_text()) "/" } } td {}
            } @else {
                td { a href=(row.href()) { (row.page_text()) } }
                td title={ (size::exact(row.size)) } { (size::rounded(row.size)) }
            }
            td { (time(row.modified)) }
            @if frame.tool_column().is_some() { td { (frame.row_tools(row)) } }
        }
    }
}

/// Returns a time for people: `2026-11-20 13:40`. The clock has an element of its own, which narrow screens
/// leave out.
pub fn time(since_1970: Duration) -> Markup {
    let exact = format_rfc3339(since_1970);
    let (date, clock) = exact.split_once('T').unwrap_or_default();
    let minutes = clock.get(..5).unwrap_or_default();
    html! { time datetime=(exact) { (date) span { " " (minutes) } } }
}
