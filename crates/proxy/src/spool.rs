//! The part of a response that its origin has sent, and its client has not taken: a little in memory, the
//! rest in a file without a name.
//!
//! It receives and sends nothing. Invariants: the bytes keep their order. The bytes of all spools together
//! are bounded. A file is unlinked right after its creation, so that nothing is left of it when the process
//! ends.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use plimsoll_io::{File, FileRange, Fs, Io, Segment, Work, write_all};

use crate::limits::{SPOOL_MEMORY_BYTES_MAX, SPOOL_SHARE, SPOOLED_PART_BYTES_MAX};

/// The room for the spools of a proxy, shared by its threads.
#[derive(Debug)]
pub struct SpoolSpace {
    folder: PathBuf,
    root: OnceLock<File>,
    bytes: AtomicU64,
    bytes_max: u64,
    has_warned: AtomicBool,
}

/// The unsent part of one response.
pub(crate) struct Spool {
    space: Arc<SpoolSpace>,
    reserved: Cell<u64>,
    /// The first bytes.
    memory: RefCell<VecDeque<Vec<u8>>>,
    in_memory: Cell<usize>,
    /// The file with the others.
    file: RefCell<Option<File>>,
    written: Cell<u64>,
    sent: Cell<u64>,
}

impl SpoolSpace {
    /// Creates the room for `bytes_max` bytes in files of `folder`.
    #[must_use]
    pub fn new(folder: &Path, bytes_max: u64) -> Arc<SpoolSpace> {
        Arc::new(SpoolSpace {
            folder: folder.to_owned(),
            root: OnceLock::new(),
            bytes: AtomicU64::new(0),
            bytes_max,
            has_warned: AtomicBool::new(false),
        })
    }

    /// Returns the bytes that are reserved.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the most bytes that may be reserved.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    fn reserve(&self, more: u64) -> bool {
        let add = |bytes: u64| bytes.checked_add(more).filter(|sum| *sum <= self.bytes_max);
        self.bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    /// Creates a file, on a thread that may block.
    fn create(&self, fs: &dyn Fs, name: &[u8]) -> io::Result<File> {
        let root = match self.root.get() {
            Some(root) => root.clone(),
            None => {
                let root = fs.open_root(&self.folder)?;
                self.root.get_or_init(|| root).clone()
            }
        };
        let file = fs.create(&root, name)?;
        fs.remove_file(&root, name)?;
        Ok(file)
    }

    fn warn(&self, error: &io::Error) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            let folder = self.folder.display();
            const ADVICE: &str =
                "responses to slow clients cannot be spooled; set proxy.spool to another folder";
            tracing::warn!(%error, %folder, "{ADVICE}");
        }
    }
}

impl Spool {
    /// Begins the spool of a body of which `left` bytes are to come, if that is known. Returns `None` if
    /// there is no room for them.
    pub(crate) fn begin(space: &Arc<SpoolSpace>, left: Option<u64>) -> Option<Spool> {
        let spool = Spool {
            space: Arc::clone(space),
            reserved: Cell::new(0),
            memory: RefCell::default(),
            in_memory: Cell::new(0),
            file: RefCell::new(None),
            written: Cell::new(0),
            sent: Cell::new(0),
        };
        let in_file = left.unwrap_or(0).saturating_sub(SPOOL_MEMORY_BYTES_MAX as u64);
        spool.grow(in_file).then_some(spool)
    }

    /// Reserves room for so many bytes in the file.
    fn grow(&self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.reserved.get());
        let has_room = more == 0 || (bytes <= self.space.bytes_max / SPOOL_SHARE && self.space.reserve(more));
        self.reserved.set(self.reserved.get() + if has_room { more } else { 0 });
        has_room
    }

    /// Adds bytes. Returns them if they do not fit.
    pub(crate) async fn push(&self, io: &Io, bytes: Vec<u8>) -> Result<(), Vec<u8>> {
        let in_memory = self.in_memory.get() + bytes.len();
        if self.written.get() == 0 && in_memory <= SPOOL_MEMORY_BYTES_MAX {
            self.in_memory.set(in_memory);
            self.memory.borrow_mut().push_back(bytes);
            return Ok(());
        }
        if !self.grow(self.written.get() + bytes.len() as u64) {
            return Err(bytes);
        }
        let (space, file, at) = (Arc::clone(&self.space), self.file.borrow().clone(), self.written.get());
        let name = name_of(io);
        let bytes: Arc<[u8]> = bytes.into();
        let written = Arc::clone(&bytes);
        let done = io.offload(Work::Writes, move |fs| {
            let file = file.map_or_else(|| space.create(fs, &name), Ok)?;
            write_all(fs, &file, &written, at).map(|()| file)
        });
        let done = done.await.unwrap_or_else(|error| Err(error.into()));
        match done {
            Ok(file) => {
                *self.file.borrow_mut() = Some(file);
                self.written.set(at + bytes.len() as u64);
                Ok(())
            }
            Err(error) => {
                self.space.warn(&error);
                Err(bytes.to_vec())
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.memory.borrow().is_empty() && self.sent.get() == self.written.get()
    }

    /// Waits for bytes, in the task that also pushes them.
    pub(crate) async fn filled(&self) {
        poll_fn(|_| if self.is_empty() { Poll::Pending } else { Poll::Ready(()) }).await;
    }

    /// Takes the next bytes, or `None` if there are none now; as a part of the file if `takes_files`.
    /// Dropping the future loses nothing.
    pub(crate) async fn next(&self, io: &Io, takes_files: bool) -> io::Result<Option<Segment>> {
        let front = self.memory.borrow_mut().pop_front();
        if let Some(bytes) = front {
            return Ok(Some(Segment::Owned(bytes)));
        }
        let file = self.file.borrow().clone();
        let (from, Some(file)) = (self.sent.get(), file) else { return Ok(None) };
        let range = from..self.written.get().min(from + SPOOLED_PART_BYTES_MAX);
        if range.is_empty() {
            return Ok(None);
        }
        if takes_files {
            let (ahead, part) = (file.clone(), range.clone());
            // A hint. An error of reading appears again when the part is sent.
            let _ = io.files(move |fs| fs.read_ahead(&ahead, part.clone())).await;
            self.sent.set(range.end);
            return Ok(Some(Segment::File(FileRange { file, range })));
        }
        let bytes = io.files(move |fs| read_some(fs, &file, range.clone())).await?;
        self.sent.set(from + bytes.len() as u64);
        if bytes.is_empty() {
            Err(io::ErrorKind::UnexpectedEof.into())
        } else {
            Ok(Some(Segment::Owned(bytes)))
        }
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        self.space.bytes.fetch_sub(self.reserved.get(), Ordering::Relaxed);
    }
}

/// Returns a name that no other file has.
fn name_of(io: &Io) -> Vec<u8> {
    let mut number = [0; 16];
    io.entropy(&mut number);
    format!("plimsoll-spool-{:032x}", u128::from_be_bytes(number)).into_bytes()
}

fn read_some(fs: &dyn Fs, file: &File, range: std::ops::Range<u64>) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(range.end - range.start).unwrap_or_default()];
    let count = fs.read_at(file, &mut bytes, range.start)?;
    bytes.truncate(count);
    Ok(bytes)
}
