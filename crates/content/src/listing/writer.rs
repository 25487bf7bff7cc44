//! Generates a listing: sorts entries as they are read, and writes them a few at a time.
//!
//! It reads no folder. Invariant: a page keeps at most one entry more in memory than
//! it may have.

use std::collections::BTreeSet;
use std::ops::{ControlFlow, Range};

use plimsoll_io::{Entry, EntryCollector, ListingPage, Stat};
use serde::Serialize;

use super::order::Sorted;
use super::paging::next_href;
use super::{ListingRow, Order, RowJson, Sequence, is_shown};
use crate::Visibility;
use crate::page::{self, Folder, FolderFrame, around_rows};

/// The shown part of a folder, and its form.
pub struct ListingView {
    /// The path in URLs: decoded, begins and ends with `/`.
    pub path: Vec<u8>,
    /// The order of the entries; a page is in order of bytes.
    pub order: Order,
    /// The form of the listing.
    pub form: ListingForm,
    /// The audience of the folder.
    pub visibility: Visibility,
    /// The names that may be shown, if not all may.
    pub only: Option<Vec<Vec<u8>>>,
    /// The page that is shown, if not all entries are.
    pub page: Option<ListingPage>,
    /// The positions of the shown entries in that order, if not all are shown.
    pub window: Option<Range<usize>>,
    /// Formats the tag of an entry.
    pub etag: fn(&Stat) -> String,
}

/// The form of a listing.
pub enum ListingForm {
    /// For programs.
    Json,
    /// An HTML page.
    Page(Box<dyn FolderFrame>),
}

/// The number and size of the entries, also of those outside of the window.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Summary {
    pub(crate) folders: usize,
    pub(crate) files: usize,
    pub(crate) bytes: u64,
}

/// Generates a [`ListingView`] of a folder.
pub struct ListingWriter {
    view: ListingView,
    rows: BTreeSet<Sorted>,
    summary: Summary,
    out: Vec<u8>,
    /// The text after the rows; `None` before the first row is written.
    tail: Option<Vec<u8>>,
}

impl ListingWriter {
    /// Creates a writer without entries.
    pub fn new(view: ListingView) -> ListingWriter {
        let (rows, summary) = (BTreeSet::new(), Summary::default());
        ListingWriter { view, rows, summary, out: Vec::new(), tail: None }
    }

    /// Writes a listing of a few entries.
    pub fn written(mut self, entries: Vec<Entry>) -> Vec<u8> {
        entries.into_iter().for_each(|entry| self.add(entry));
        loop {
            if let ControlFlow::Break(written) = self.write(usize::MAX) {
                return written;
            }
        }
    }

    fn is_selected(&self, entry: &Entry) -> bool {
        let ListingView { only, visibility, page, .. } = &self.view;
        is_shown(entry, *visibility)
            && only.as_ref().is_none_or(|only| only.contains(&entry.name))
            && page.as_ref().is_none_or(|page| page.begins_before(&entry.name))
    }

    /// Returns the next row in order.
    pub(super) fn next_row(&mut self) -> Option<ListingRow> {
        Some(ListingRow::new(self.rows.pop_first()?.entry, self.view.etag))
    }

    /// Starts to write, after all entries were added. Returns the text after the rows.
    fn begin(&mut self) -> Vec<u8> {
        let ListingView { path, order, form, page, window, .. } = &self.view;
        // The page has one entry more if it is not the last one.
        let next = page.as_ref().filter(|page| self.rows.len() > page.limit).and_then(|page| {
            self.rows.pop_last();
            Some((self.rows.last()?.entry.name.clone(), page.limit))
        });
        let path = String::from_utf8_lossy(path);
        if let ListingForm::Page(frame) = form {
            let folder = Folder { path: &path, order: *order, summary: self.summary, window: window.clone() };
            let (head, tail) = around_rows(&folder, &**frame);
            // A client names the start: it may be beyond all rows.
            let before = window.as_ref().map_or(0, |window| window.start).min(self.rows.len());
            for _ in 0..before {
                self.rows.pop_first();
            }
            self.out = head;
            return tail;
        }
        // Serialising strings into memory cannot fail.
        let text = |text: &str| serde_json::to_string(text).unwrap_or_default();
        self.out = format!(r#"{{"path":{},"entries":["#, text(&path)).into_bytes();
        let next = next.map(|(name, limit)| {
            let (name, href) = (String::from_utf8_lossy(&name), next_href(&name, limit));
            format!(r#","next":{},"next_href":{}"#, text(&name), text(&href))
        });
        format!("]{}}}", next.unwrap_or_default()).into_bytes()
    }

    fn push(&mut self, row: &ListingRow) {
        if let ListingForm::Page(frame) = &self.view.form {
            self.out.extend_from_slice(page::row(row, &**frame).into_string().as_bytes());
            return;
        }
        if !self.out.ends_with(b"[") {
            self.out.push(b',');
        }
        // As above.
        let _ = RowJson::new(row).serialize(&mut serde_json::Serializer::new(&mut self.out));
    }
}

impl EntryCollector for ListingWriter {
    type Output = Vec<u8>;

    fn add(&mut self, entry: Entry) {
        if !self.is_selected(&entry) {
            return;
        }
        let ListingView { order, page, window, .. } = &self.view;
        let sequence = page.as_ref().map_or(Sequence::Ordered(*order), |_| Sequence::Bytes);
        let row = Sorted::new(entry, sequence);
        if row.is_folder() {
            self.summary.folders += 1;
        } else {
            self.summary.files += 1;
            self.summary.bytes = self.summary.bytes.saturating_add(row.entry.stat.size);
        }
        self.rows.insert(row);
        let rows_max = match (page, window) {
            (Some(page), _) => page.limit.saturating_add(1),
            (None, Some(window)) => window.end,
            (None, None) => usize::MAX,
        };
        if self.rows.len() > rows_max {
            self.rows.pop_last();
        }
    }

    fn write(&mut self, entries_max: usize) -> ControlFlow<Vec<u8>> {
        let tail = match self.tail.take() {
            Some(tail) => tail,
            None => self.begin(),
        };
        for _ in 0..entries_max {
            let Some(row) = self.next_row() else {
                self.out.extend_from_slice(&tail);
                return ControlFlow::Break(std::mem::take(&mut self.out));
            };
            self.push(&row);
        }
        self.tail = Some(tail);
        ControlFlow::Continue(())
    }
}
