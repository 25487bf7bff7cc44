//! Listings of folders, one slice at a time.
//!
//! The collector determines the order and the format of the entries. Invariant: a slice reads, adds or
//! writes [`LISTING_SLICE_ENTRIES`] entries at most, so that a large folder delays no other owner's
//! listing.

use std::io;
use std::ops::ControlFlow;

use crate::engine::Work;
use crate::file::{Entry, File, FolderReader, Fs};
use crate::io::Io;
use crate::job::SlicedWork;
use crate::limits::{FILES_TIME_MAX, LISTING_SLICE_ENTRIES};

/// A page of a folder's listing, in the byte order of names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListingPage {
    /// The name after which the page begins; `None` for the first page.
    pub after: Option<Vec<u8>>,
    /// The maximum number of entries.
    pub limit: usize,
}

impl ListingPage {
    /// Whether the page begins before `name`, so that it may contain it.
    #[must_use]
    pub fn begins_before(&self, name: &[u8]) -> bool {
        self.after.as_deref().is_none_or(|after| name > after)
    }
}

/// Builds a listing from a folder's entries.
pub trait EntryCollector: Send + 'static {
    /// The listing.
    type Output: Send + 'static;

    /// Adds an entry. Entries are added in no order.
    fn add(&mut self, entry: Entry);

    /// Writes at most `entries_max` entries, after all were added. Returns the listing once all are
    /// written.
    fn write(&mut self, entries_max: usize) -> ControlFlow<Self::Output>;
}

/// The source of the entries.
pub(crate) enum Source {
    Folder(File, Vec<u8>),
    Reader(Box<dyn FolderReader>),
    End,
}

impl Source {
    /// Opens the folder, if that has not happened. Returns the reader, unless all entries were read.
    pub(crate) fn open(&mut self, fs: &dyn Fs) -> io::Result<Option<&mut Box<dyn FolderReader>>> {
        if let Source::Folder(root, name) = self {
            *self = Source::Reader(fs.read_folder(root, name)?);
        }
        match self {
            Source::Reader(reader) => Ok(Some(reader)),
            Source::Folder(..) | Source::End => Ok(None),
        }
    }
}

/// A listing in progress.
pub struct FolderListing<C> {
    source: Source,
    entries_left: usize,
    collector: C,
}

impl<C: EntryCollector> FolderListing<C> {
    /// Lists the folder `name` below `root`, if it has no more than `entries_max` entries.
    pub fn of_folder(root: File, name: Vec<u8>, entries_max: usize, collector: C) -> FolderListing<C> {
        FolderListing { source: Source::Folder(root, name), entries_left: entries_max, collector }
    }

    /// Lists entries that are in memory.
    pub fn of_entries(entries: Vec<Entry>, collector: C) -> FolderListing<C> {
        let source = Source::Reader(Box::new(entries.into_iter()));
        FolderListing { source, entries_left: usize::MAX, collector }
    }

    fn advance(&mut self, fs: &dyn Fs) -> io::Result<ControlFlow<C::Output>> {
        let mut budget = LISTING_SLICE_ENTRIES;
        if let Some(reader) = self.source.open(fs)? {
            let entries = reader.read(budget)?;
            if entries.len() > self.entries_left {
                let detail = "the folder has too many entries to list";
                return Err(io::Error::new(io::ErrorKind::QuotaExceeded, detail));
            }
            self.entries_left -= entries.len();
            budget -= entries.len();
            entries.into_iter().for_each(|entry| self.collector.add(entry));
            if budget == 0 {
                return Ok(ControlFlow::Continue(()));
            }
            self.source = Source::End;
        }
        Ok(self.collector.write(budget))
    }
}

impl<C: EntryCollector> SlicedWork for FolderListing<C> {
    type Output = io::Result<C::Output>;

    fn run_slice(&mut self, fs: &dyn Fs) -> ControlFlow<Self::Output> {
        match self.advance(fs) {
            Ok(ControlFlow::Continue(())) => ControlFlow::Continue(()),
            Ok(ControlFlow::Break(listing)) => ControlFlow::Break(Ok(listing)),
            Err(error) => ControlFlow::Break(Err(error)),
        }
    }
}

impl Io {
    /// Lists a folder on a worker that may block. If the future is dropped, the listing is aborted.
    ///
    /// # Errors
    /// The error of reading the folder; [`io::ErrorKind::QuotaExceeded`] if it has too many entries;
    /// [`io::ErrorKind::ResourceBusy`] if too many listings wait; [`io::ErrorKind::TimedOut`] after
    /// [`FILES_TIME_MAX`].
    pub async fn list<C: EntryCollector>(&self, listing: FolderListing<C>) -> io::Result<C::Output> {
        let deadline = self.deadline();
        deadline.after(FILES_TIME_MAX);
        let listed = self.offload_slices(Work::Listings, listing);
        deadline.within(listed).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::sim::{Faults, Sim};

    /// Counts entries, and the slices in which it wrote.
    #[derive(Default)]
    struct Counting {
        entries: usize,
        written: usize,
        writes: usize,
    }

    impl EntryCollector for Counting {
        type Output = (usize, usize);

        fn add(&mut self, _: Entry) {
            self.entries += 1;
        }

        fn write(&mut self, entries_max: usize) -> ControlFlow<(usize, usize)> {
            self.writes += 1;
            self.written += entries_max;
            if self.written < self.entries {
                return ControlFlow::Continue(());
            }
            ControlFlow::Break((self.entries, self.writes))
        }
    }

    fn list(files: usize, entries_max: usize) -> (io::Result<(usize, usize)>, usize) {
        let disk = std::sync::Arc::clone(Sim::new(0, Faults::none()).host("one").disk());
        let root = disk.open_root(Path::new("/")).unwrap();
        for file in 0..files {
            disk.create(&root, format!("{file}").as_bytes()).unwrap();
        }
        let mut listing = FolderListing::of_folder(root, Vec::new(), entries_max, Counting::default());
        let mut slices = 1;
        loop {
            match listing.run_slice(&*disk) {
                ControlFlow::Continue(()) => slices += 1,
                ControlFlow::Break(listed) => return (listed, slices),
            }
        }
    }

    #[test]
    fn a_small_folder_takes_one_slice_and_a_large_one_several() {
        let (listed, slices) = list(10, 10);
        assert_eq!((listed.unwrap(), slices), ((10, 1), 1));
        let (listed, slices) = list(3 * LISTING_SLICE_ENTRIES, usize::MAX);
        assert_eq!((listed.unwrap(), slices), ((3 * LISTING_SLICE_ENTRIES, 3), 6));
    }

    #[test]
    fn a_folder_with_too_many_entries_is_not_listed() {
        assert_eq!(list(11, 10).0.unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
    }

    #[test]
    fn a_page_begins_after_its_name() {
        let page = ListingPage { after: Some(b"b".to_vec()), limit: 1 };
        assert!(!page.begins_before(b"a") && !page.begins_before(b"b") && page.begins_before(b"b0"));
        assert!(ListingPage { after: None, limit: 1 }.begins_before(b""));
    }
}
