//! Listings that are written while the folder is read, in parts: for formats that need no order.
//!
//! The writer determines the format. Invariants: a listing in progress has a bounded number of entries in
//! memory, however large the folder is. Each part is read and written in slices, as whole listings are, and
//! waits for its turn among other owners' listings.

use std::io;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, PoisonError};

use crate::engine::Work;
use crate::file::{Entry, File, Fs};
use crate::io::Io;
use crate::job::SlicedWork;
use crate::limits::{FILES_TIME_MAX, LISTING_PART_BYTES, LISTING_SLICE_ENTRIES};
use crate::listing::Source;

/// Writes the entries of a folder, in no order.
pub trait EntryWriter: Send + 'static {
    /// Appends an entry, if it is to be listed.
    fn write(&mut self, entry: Entry, out: &mut Vec<u8>);
}

/// A part of a listing.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ListingPart {
    /// The entries, as they were written. Empty only in the last part.
    pub bytes: Vec<u8>,
    /// Whether there are no further entries.
    pub is_last: bool,
}

/// A listing in progress. A part that fails because the workers are busy can be requested again.
pub struct ListingParts<W>(Arc<Mutex<State<W>>>);

struct State<W> {
    source: Source,
    /// Entries that were read and are not written.
    unwritten: std::vec::IntoIter<Entry>,
    writer: W,
}

impl<W: EntryWriter> ListingParts<W> {
    /// Lists the folder `name` below `root`, however many entries it has.
    pub fn of_folder(root: File, name: Vec<u8>, writer: W) -> ListingParts<W> {
        ListingParts::of(Source::Folder(root, name), writer)
    }

    /// Begins a listing of entries that [`ListingParts::add`] adds.
    pub fn of_entries(writer: W) -> ListingParts<W> {
        ListingParts::of(Source::End, writer)
    }

    fn of(source: Source, writer: W) -> ListingParts<W> {
        let unwritten = Vec::new().into_iter();
        ListingParts(Arc::new(Mutex::new(State { source, unwritten, writer })))
    }

    /// Replaces the entries of a listing that are not written yet.
    pub fn add(&self, entries: Vec<Entry>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).unwritten = entries.into_iter();
    }
}

impl<W: EntryWriter> State<W> {
    /// Reads and writes entries, a slice at most. Returns `None` if the part is not complete.
    fn advance(&mut self, fs: &dyn Fs, out: &mut Vec<u8>) -> io::Result<Option<bool>> {
        if self.unwritten.len() == 0
            && let Some(reader) = self.source.open(fs)?
        {
            // Half of a slice: the entries are also written.
            let entries = reader.read(LISTING_SLICE_ENTRIES / 2)?;
            if entries.len() < LISTING_SLICE_ENTRIES / 2 {
                self.source = Source::End;
            }
            self.unwritten = entries.into_iter();
        }
        for entry in self.unwritten.by_ref().take(LISTING_SLICE_ENTRIES) {
            self.writer.write(entry, out);
            if out.len() >= LISTING_PART_BYTES {
                break;
            }
        }
        let is_last = self.unwritten.len() == 0 && matches!(self.source, Source::End);
        Ok((is_last || out.len() >= LISTING_PART_BYTES).then_some(is_last))
    }
}

/// One part as work.
struct PartWork<W> {
    state: Arc<Mutex<State<W>>>,
    out: Vec<u8>,
}

impl<W: EntryWriter> SlicedWork for PartWork<W> {
    type Output = io::Result<ListingPart>;

    fn run_slice(&mut self, fs: &dyn Fs) -> ControlFlow<Self::Output> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.advance(fs, &mut self.out) {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some(is_last)) => {
                ControlFlow::Break(Ok(ListingPart { bytes: std::mem::take(&mut self.out), is_last }))
            }
            Err(error) => ControlFlow::Break(Err(error)),
        }
    }
}

impl Io {
    /// Reads and writes the next part of a listing on a worker that may block.
    ///
    /// # Errors
    /// The error of reading the folder; [`io::ErrorKind::ResourceBusy`] if too many listings wait;
    /// [`io::ErrorKind::TimedOut`] after [`FILES_TIME_MAX`].
    pub async fn list_part<W: EntryWriter>(&self, parts: &ListingParts<W>) -> io::Result<ListingPart> {
        let deadline = self.deadline();
        deadline.after(FILES_TIME_MAX);
        let work = PartWork { state: Arc::clone(&parts.0), out: Vec::new() };
        let listed = self.offload_slices(Work::Listings, work);
        deadline.within(listed).await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::sim::{Faults, Sim};

    /// Writes names, each in a line, padded with spaces.
    struct Names {
        line_bytes: usize,
    }

    impl EntryWriter for Names {
        fn write(&mut self, Entry { name, .. }: Entry, out: &mut Vec<u8>) {
            let start = out.len();
            out.extend_from_slice(&name);
            out.resize(start + self.line_bytes - 1, b' ');
            out.push(b'\n');
        }
    }

    /// Returns the sorted names of all parts, the number of parts, and the number of slices.
    fn list(files: usize, line_bytes: usize) -> (Vec<usize>, usize, usize) {
        let disk = Arc::clone(Sim::new(0, Faults::none()).host("one").disk());
        let root = disk.open_root(Path::new("/")).unwrap();
        for file in 0..files {
            disk.create(&root, format!("{file}").as_bytes()).unwrap();
        }
        let parts = ListingParts::of_folder(root, Vec::new(), Names { line_bytes });
        let (mut text, mut count, mut slices) = (Vec::new(), 0, 0);
        loop {
            let mut work = PartWork { state: Arc::clone(&parts.0), out: Vec::new() };
            let part = loop {
                slices += 1;
                match work.run_slice(&*disk) {
                    ControlFlow::Continue(()) => {}
                    ControlFlow::Break(part) => break part.unwrap(),
                }
            };
            assert!(part.bytes.len() < LISTING_PART_BYTES + line_bytes);
            count += 1;
            text.extend_from_slice(&part.bytes);
            if part.is_last {
                break;
            }
        }
        let text = String::from_utf8(text).unwrap();
        let mut names: Vec<usize> = text.lines().map(|line| line.trim().parse().unwrap()).collect();
        names.sort_unstable();
        (names, count, slices)
    }

    #[test]
    fn each_entry_is_in_one_part_however_many_there_are() {
        for files in [0, 1, LISTING_SLICE_ENTRIES / 2, LISTING_SLICE_ENTRIES / 2 + 1, 3000] {
            let (names, parts, _) = list(files, 16);
            assert!(names == (0..files).collect::<Vec<_>>(), "{files}");
            assert_eq!(parts, 1, "{files}");
        }
        let (names, parts, slices) = list(1000, 1024);
        assert!(names == (0..1000).collect::<Vec<_>>());
        assert!(
            parts > 1000 * 1024 / LISTING_PART_BYTES && slices >= parts,
            "{parts} parts, {slices} slices"
        );
    }

    #[test]
    fn entries_that_are_added_are_listed() {
        let sim = Sim::new(0, Faults::none());
        let host = sim.host("one");
        let root = host.disk().open_root(Path::new("/")).unwrap();
        host.disk().create(&root, b"added").unwrap();
        let entries = host.disk().read_folder(&root, b"").unwrap().read(2).unwrap();
        let io = host.io();
        sim.run(&host, async move {
            let parts = ListingParts::of_entries(Names { line_bytes: 6 });
            parts.add(entries);
            let part = io.list_part(&parts).await.unwrap();
            assert_eq!(part, ListingPart { bytes: b"added\n".to_vec(), is_last: true });
            assert_eq!(io.list_part(&parts).await.unwrap(), ListingPart { bytes: vec![], is_last: true });
        });
        assert!(sim.panics().is_empty(), "{:?}", sim.panics());
    }
}
