//! A listing that is written while it is read, in parts: from a folder of this process, or from another
//! store's pages.
//!
//! The entries' format is the writer's. Invariant: however large the folder is, a bounded number of its
//! entries is in memory.

use std::sync::Arc;

use plimsoll_io::{Entry, EntryWriter, Io, ListingPage, ListingPart, ListingParts};

use super::location::{listing_error, not_found};
use crate::backend::HomeBackend;
use crate::error::Result;
use crate::limits::STREAMED_PAGE_ENTRIES;
use crate::path::Path;

/// A listing in progress.
pub struct ListingStream<W> {
    parts: ListingParts<W>,
    /// The rest of another store's listing.
    rest: Option<RestOfListing>,
}

/// The entries that another store has not sent.
pub(super) struct RestOfListing {
    home: Arc<dyn HomeBackend>,
    path: Path,
    /// Whether all received entries are written.
    is_due: bool,
    after: Option<Vec<u8>>,
}

impl RestOfListing {
    /// A listing of which nothing was received.
    pub(super) fn whole(home: Arc<dyn HomeBackend>, path: Path) -> RestOfListing {
        RestOfListing { home, path, is_due: true, after: None }
    }
}

impl<W: EntryWriter> ListingStream<W> {
    pub(super) fn new(parts: ListingParts<W>, rest: Option<RestOfListing>) -> ListingStream<W> {
        ListingStream { parts, rest }
    }

    /// Returns the next part. It can be called again after [`crate::Error::Busy`].
    ///
    /// # Errors
    /// As [`super::Location::list`], except that no folder is too large.
    pub async fn next(&mut self, io: &Io) -> Result<ListingPart> {
        loop {
            self.receive(io).await?;
            let part = io.list_part(&self.parts).await.map_err(listing_error)?;
            let has_more = self.rest.as_mut().is_some_and(|rest| {
                rest.is_due = part.is_last;
                true
            });
            // A page may have no entry that is listed.
            if !part.bytes.is_empty() || !has_more {
                return Ok(ListingPart { is_last: part.is_last && !has_more, ..part });
            }
        }
    }

    /// Receives the next page from another store, if all received entries are written.
    async fn receive(&mut self, io: &Io) -> Result<()> {
        let Some(rest) = self.rest.as_mut().filter(|rest| rest.is_due) else { return Ok(()) };
        let page = ListingPage { after: rest.after.clone(), limit: STREAMED_PAGE_ENTRIES };
        let listed = rest.home.list(io, &rest.path, usize::MAX, Some(&page)).await.map_err(not_found)?;
        let (entries, has_more) = entries_of(&page, listed);
        rest.is_due = false;
        rest.after = entries.last().map(|entry| entry.name.clone());
        self.parts.add(entries);
        if !has_more {
            self.rest = None;
        }
        Ok(())
    }
}

/// Returns the entries of a page, in order, and whether there are entries after it. A store may have sent
/// others, too.
fn entries_of(page: &ListingPage, mut listed: Vec<Entry>) -> (Vec<Entry>, bool) {
    listed.retain(|entry| page.begins_before(&entry.name));
    listed.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    let has_more = listed.len() > page.limit;
    listed.truncate(page.limit);
    (listed, has_more)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use plimsoll_io::{FileKind, Stat};

    use super::*;

    #[test]
    fn a_page_is_in_order_whatever_the_store_sends() {
        let stat = Stat {
            kind: FileKind::File,
            size: 0,
            device: 0,
            inode: 0,
            modified: Duration::ZERO,
            changed: Duration::ZERO,
            links: 1,
        };
        let sent = || ["d", "a", "c", "b"].map(|name| Entry { name: name.into(), stat }).to_vec();
        let page = |after: Option<&str>, limit| {
            let page = ListingPage { after: after.map(|name| name.as_bytes().to_vec()), limit };
            let (entries, has_more) = entries_of(&page, sent());
            let names = entries.into_iter().map(|entry| String::from_utf8(entry.name).unwrap());
            (names.collect::<String>(), has_more)
        };
        assert_eq!(page(None, 3), ("abc".to_owned(), true));
        assert_eq!(page(Some("c"), 3), ("d".to_owned(), false));
        assert_eq!(page(None, 4), ("abcd".to_owned(), false));
        assert_eq!(page(Some("d"), 4), (String::new(), false));
    }
}
