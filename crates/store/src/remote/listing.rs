//! A listing as a store sends it to its front: entries in JSON, written slice by slice.
//!
//! Invariant: for a page, there are never more entries in memory than the page has, and one.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use plimsoll_io::{Entry, EntryCollector, FileKind, ListingPage, Stat};

use super::request::EntryJson;

/// Writes entries in the format of [`super::encode_result`].
pub(super) struct JsonEntries {
    json: Vec<u8>,
    page: Option<(ListingPage, BTreeMap<Vec<u8>, Stat>)>,
}

impl JsonEntries {
    pub(super) fn new(page: Option<ListingPage>) -> JsonEntries {
        JsonEntries { json: br#"{"answer":["#.to_vec(), page: page.map(|page| (page, BTreeMap::new())) }
    }

    fn push(&mut self, entry: Entry) {
        if !self.json.ends_with(b"[") {
            self.json.push(b',');
        }
        // Serialising strings and numbers into memory cannot fail.
        let _ = serde_json::to_writer(&mut self.json, &EntryJson(entry));
    }
}

impl EntryCollector for JsonEntries {
    type Output = Vec<u8>;

    fn add(&mut self, entry: Entry) {
        let Some((page, entries)) = &mut self.page else { return self.push(entry) };
        // A reader's listing shows nothing else: the page must have as many entries as it shows.
        let is_shown = matches!(entry.stat.kind, FileKind::File | FileKind::Folder);
        if is_shown && page.begins_before(&entry.name) {
            entries.insert(entry.name, entry.stat);
            if entries.len() > page.limit.saturating_add(1) {
                entries.pop_last();
            }
        }
    }

    fn write(&mut self, entries_max: usize) -> ControlFlow<Vec<u8>> {
        for _ in 0..entries_max {
            let next = self.page.as_mut().and_then(|(_, entries)| entries.pop_first());
            let Some((name, stat)) = next else {
                self.json.extend_from_slice(b"]}");
                return ControlFlow::Break(std::mem::take(&mut self.json));
            };
            self.push(Entry { name, stat });
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::remote::encode_result;

    fn entry(name: &str) -> Entry {
        let (modified, changed) = (Duration::from_secs(1), Duration::from_secs(2));
        let stat = Stat { kind: FileKind::File, size: 3, device: 4, inode: 5, modified, changed, links: 1 };
        Entry { name: name.into(), stat }
    }

    fn written(names: &[&str], page: Option<ListingPage>) -> Vec<u8> {
        let mut collector = JsonEntries::new(page);
        names.iter().for_each(|name| collector.add(entry(name)));
        loop {
            if let ControlFlow::Break(json) = collector.write(1) {
                return json;
            }
        }
    }

    fn whole(names: &[&str]) -> Vec<u8> {
        encode_result(Ok(names.iter().map(|name| EntryJson(entry(name))).collect::<Vec<_>>()))
    }

    #[test]
    fn entries_are_written_as_any_answer_is() {
        for names in [&[][..], &["a"], &["b [", "a", "ü"]] {
            assert_eq!(written(names, None), whole(names));
        }
    }

    #[test]
    fn a_page_has_its_first_names_in_order_and_one_more() {
        let page = |after: &str, limit| Some(ListingPage { after: Some(after.into()), limit });
        let names = ["d", "b", "e", "a", "c"];
        assert_eq!(written(&names, page("a", 2)), whole(&["b", "c", "d"]));
        assert_eq!(written(&names, page("d", 2)), whole(&["e"]));
        assert_eq!(written(&names, page("e", 2)), whole(&[]));
        assert_eq!(written(&names, Some(ListingPage { after: None, limit: 1 })), whole(&["a", "b"]));
    }
}
