//! The table of operations in progress in the kernel, with the connection or listener that each is for.
//!
//! It submits nothing. Invariants: an operation stays here, with all memory it was given, until its last
//! completion has been seen. A key does not repeat within 4 billion uses of its entry.

use std::rc::Rc;

use plimsoll_io::Want;

use super::connection::Connection;
use super::listener::{Accepting, Name};
use super::watched::Watched;

/// The key of an operation: passed to the kernel as user data, and returned with the completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(pub(super) u64);

impl Key {
    /// The key of operations without a waiter: a cancellation, a close.
    pub(super) const UNREPORTED: Key = Key(0);
}

/// An operation in progress, with everything it owns.
pub(super) enum Operation {
    /// A receive into a provided buffer, which the kernel chooses when data has arrived.
    Receive(Rc<Connection>, Want),
    /// A send of bytes that the connection's outbox lends.
    Send(Rc<Connection>),
    /// A send of bytes that were gathered for it.
    SendGathered(Rc<Connection>, Vec<u8>),
    /// A wait for readability before receiving into a pipe.
    Readable(Rc<Connection>),
    /// A wait for writability before sending a file or a pipe, or for a connection to be established.
    Room(Rc<Connection>),
    /// An accept, and the memory for the peer's address.
    Accept(Rc<Accepting>, Box<Name>),
    /// The multishot wait for notifications from other threads.
    Notifier,
    /// A multishot wait for events of a descriptor.
    Watch(Rc<Watched>),
}

#[derive(Default)]
struct Entry {
    /// Generation number of the entry: distinguishes a new operation's key from an old one's.
    uses: u32,
    operation: Option<Operation>,
}

/// The operations of one ring.
#[derive(Default)]
pub(super) struct Operations {
    entries: Vec<Entry>,
    vacant: Vec<u32>,
}

impl Operations {
    /// Stores an operation and returns its key.
    pub(super) fn keep(&mut self, operation: Operation) -> Key {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.entries.push(Entry::default());
            // The kernel never has four billion operations in progress.
            u32::try_from(self.entries.len() - 1).unwrap_or(u32::MAX)
        });
        let entry = &mut self.entries[index as usize];
        entry.uses = entry.uses.wrapping_add(1).max(1);
        entry.operation = Some(operation);
        Key(u64::from(entry.uses) << 32 | u64::from(index))
    }

    /// Removes an operation that has completed for the last time.
    pub(super) fn end(&mut self, key: Key) -> Option<Operation> {
        let (index, uses) = (u32::try_from(key.0 & 0xFFFF_FFFF).ok()?, key.0 >> 32);
        let entry = self.entries.get_mut(index as usize).filter(|entry| u64::from(entry.uses) == uses)?;
        let operation = entry.operation.take()?;
        self.vacant.push(index);
        Some(operation)
    }

    /// Returns the watch whose operation this is, if it is one.
    pub(super) fn watched(&self, key: Key) -> Option<Rc<Watched>> {
        let (index, uses) = (u32::try_from(key.0 & 0xFFFF_FFFF).ok()?, key.0 >> 32);
        let entry = self.entries.get(index as usize).filter(|entry| u64::from(entry.uses) == uses)?;
        match &entry.operation {
            Some(Operation::Watch(watched)) => Some(Rc::clone(watched)),
            _ => None,
        }
    }

    /// Returns how many operations are in progress.
    pub(super) fn count(&self) -> usize {
        self.entries.len() - self.vacant.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_ends_with_its_operation_and_the_entry_gets_another() {
        let mut operations = Operations::default();
        let first = operations.keep(Operation::Notifier);
        assert!(operations.end(first).is_some());
        let second = operations.keep(Operation::Notifier);
        assert_ne!(first, second);
        assert!(operations.end(first).is_none(), "an old name finds a new operation");
        assert_eq!(operations.count(), 1);
        assert!(operations.end(second).is_some() && operations.end(Key::UNREPORTED).is_none());
        assert_eq!(operations.count(), 0);
    }
}
