//! Listings of a front that are written while the store sends them.

use plimsoll_io::sim::Faults;
use plimsoll_io::{Entry, EntryWriter};
use plimsoll_store::limits::STREAMED_PAGE_ENTRIES;
use plimsoll_store::{Condition, Path};

use crate::run_with;

/// Writes names, each in a line.
struct Names;

impl EntryWriter for Names {
    fn write(&mut self, entry: Entry, out: &mut Vec<u8>) {
        out.extend_from_slice(&entry.name);
        out.push(b'\n');
    }
}

#[test]
fn a_folder_of_several_pages_is_listed_in_parts() {
    run_with(1, Faults::none, async |[front, _], store, _| {
        front.put("00000", b"the first", Condition::none()).await.unwrap();
        for files in [1, STREAMED_PAGE_ENTRIES, STREAMED_PAGE_ENTRIES + 1, 2 * STREAMED_PAGE_ENTRIES + 5] {
            for number in 0..files {
                store.disk().write(format!("/data/accounts/alice/files/{number:05}"), "").unwrap();
            }
            let mut listing = front.home.location(Path::root()).list_in_parts(Names);
            let mut text = Vec::new();
            loop {
                let part = listing.next(&front.io).await.unwrap();
                text.extend_from_slice(&part.bytes);
                if part.is_last {
                    break;
                }
                assert!(!part.bytes.is_empty());
            }
            let text = String::from_utf8(text).unwrap();
            assert!(text.lines().eq((0..files).map(|number| format!("{number:05}"))), "{files}");
        }
    });
}
