//! The received part of a fetched body: in memory, or in the file that is being written.
//!
//! It writes nothing itself. Invariant: published bytes stay readable, from memory or from the file, until
//! the last reader is gone.

use std::ops::Range;
use std::sync::Arc;

use plimsoll_io::File;

/// The bytes behind an offset that a reader can send now.
#[derive(Clone, Debug)]
pub enum Available {
    /// In memory.
    Bytes(Arc<[u8]>, Range<usize>),
    /// In a file.
    File(File, Range<u64>),
    /// None: the body ends at the offset.
    End,
    /// None: the fetch failed, and the body is incomplete.
    Failed,
}

#[derive(Debug, Default)]
pub(super) struct Spool {
    /// Offset and bytes, in order; empty once a file has them.
    chunks: Vec<(u64, Arc<[u8]>)>,
    file: Option<File>,
    received: u64,
}

impl Spool {
    pub(super) fn received(&self) -> u64 {
        self.received
    }

    pub(super) fn push(&mut self, bytes: Arc<[u8]>) {
        let offset = self.received;
        self.received += bytes.len() as u64;
        self.chunks.push((offset, bytes));
    }

    /// Sets the file that has the first `written` bytes.
    pub(super) fn set_file(&mut self, file: &File, written: u64) {
        if self.file.is_none() {
            self.file = Some(file.clone());
        }
        self.chunks.clear();
        self.received = written;
    }

    /// Returns the bytes behind `offset`, at most `bytes_max` of a file.
    pub(super) fn available(&self, offset: u64, bytes_max: u64) -> Option<Available> {
        if offset >= self.received {
            return None;
        }
        if let Some(file) = &self.file {
            let end = self.received.min(offset.saturating_add(bytes_max));
            return Some(Available::File(file.clone(), offset..end));
        }
        let after = self.chunks.partition_point(|(start, _)| *start <= offset);
        let (start, bytes) = self.chunks.get(after.checked_sub(1)?)?;
        let from = usize::try_from(offset - start).ok()?;
        let len = usize::try_from(bytes_max).unwrap_or(usize::MAX).min(bytes.len() - from);
        Some(Available::Bytes(Arc::clone(bytes), from..from + len))
    }

    /// Returns all bytes, if they are in memory.
    pub(super) fn in_memory(&self) -> Option<Vec<u8>> {
        self.file.is_none().then(|| self.chunks.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect())
    }
}
