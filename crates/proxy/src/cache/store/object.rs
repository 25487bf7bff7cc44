//! A stored response: its head, and its content in memory, in a file of the cache, or in one of the origin.
//!
//! It is not an entry of the index. Invariant: it is immutable, except that it can be superseded by
//! another with the same content and a newer head.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::passed_file::PassedFile;
use super::stored_file::StoredFile;
use crate::cache::limits::OBJECT_BYTES;
use crate::cache::policy::StoredHead;

/// The content of an object.
#[derive(Clone, Debug)]
pub enum Content {
    /// In memory.
    Memory(Arc<[u8]>),
    /// In a file of its own.
    File(Arc<StoredFile>),
    /// In a file of the origin, which is open.
    Passed(Arc<PassedFile>),
}

impl Content {
    /// Returns its length in bytes.
    #[must_use]
    pub fn len(&self) -> u64 {
        match self {
            Content::Memory(bytes) => bytes.len() as u64,
            Content::File(file) => file.content_bytes(),
            Content::Passed(file) => file.content_bytes(),
        }
    }

    /// Whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A stored response.
#[derive(Debug)]
pub struct Object {
    /// Its head.
    pub head: StoredHead,
    /// Its content.
    pub content: Content,
    number: u64,
}

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1);

impl Object {
    /// Creates an object, with a number of its own.
    #[must_use]
    pub fn new(head: StoredHead, content: Content) -> Arc<Object> {
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        Arc::new(Object { head, content, number })
    }

    /// Returns its number, unique in this process.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns its size in memory, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let content = match &self.content {
            Content::Memory(bytes) => bytes.len() as u64,
            Content::File(_) | Content::Passed(_) => 0,
        };
        OBJECT_BYTES + self.head.memory_bytes() + content
    }

    /// Returns the number of its file on the cache's disk, if it has one.
    #[must_use]
    pub fn file_number(&self) -> Option<u64> {
        match &self.content {
            Content::Memory(_) | Content::Passed(_) => None,
            Content::File(file) => Some(file.sequence()),
        }
    }

    /// Whether both answer the same requests, so that one replaces the other.
    #[must_use]
    pub fn replaces(&self, other: &Object) -> bool {
        self.head.vary == other.head.vary && self.head.selection == other.head.selection
    }
}
