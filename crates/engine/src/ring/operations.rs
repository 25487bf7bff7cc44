//! What the kernel is doing for this thread, and for whom.
//!
//! It submits nothing. What must hold: an operation stays here, and with it all memory that it was given,
//! until its last completion has been seen; a name is never used twice.

use std::rc::Rc;

use plimsoll_io::Want;

use super::connection::Connection;
use super::listener::{Accepting, Name};

/// Names an operation: it goes into the kernel and comes back with the completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(pub(super) u64);

impl Key {
    /// The name on what nobody waits for: a cancellation, a close.
    pub(super) const NOBODY: Key = Key(0);
}

/// An operation under way, with everything that it holds.
pub(super) enum Operation {
    /// A receive into a provided buffer, which is chosen when there is something to receive.
    Receive(Rc<Connection>, Want),
    /// A send of what the connection's outbox lends it.
    Send(Rc<Connection>),
    /// A send of bytes that were gathered for it.
    SendGathered(Rc<Connection>, Vec<u8>),
    /// A wait for room to send a file into, or for a connection to be made.
    Room(Rc<Connection>),
    /// An accept, and where the kernel writes who it was.
    Accept(Rc<Accepting>, Box<Name>),
    /// The wait for other threads, which goes on after a completion.
    Bell,
}

#[derive(Default)]
struct Slot {
    /// How often the slot was given out: it tells a new operation's name from an old one's.
    uses: u32,
    operation: Option<Operation>,
}

/// The operations of one ring.
#[derive(Default)]
pub(super) struct Operations {
    slots: Vec<Slot>,
    vacant: Vec<u32>,
}

impl Operations {
    /// Keeps an operation; its name.
    pub(super) fn keep(&mut self, operation: Operation) -> Key {
        let index = self.vacant.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            // No kernel has four billion operations under way.
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let slot = &mut self.slots[index as usize];
        slot.uses = slot.uses.wrapping_add(1).max(1);
        slot.operation = Some(operation);
        Key(u64::from(slot.uses) << 32 | u64::from(index))
    }

    /// Lets an operation go: it has completed for the last time.
    pub(super) fn end(&mut self, key: Key) -> Option<Operation> {
        let (index, uses) = (u32::try_from(key.0 & 0xFFFF_FFFF).ok()?, key.0 >> 32);
        let slot = self.slots.get_mut(index as usize).filter(|slot| u64::from(slot.uses) == uses)?;
        let operation = slot.operation.take()?;
        self.vacant.push(index);
        Some(operation)
    }

    /// How many are under way.
    pub(super) fn count(&self) -> usize {
        self.slots.len() - self.vacant.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_with_its_operation_and_the_slot_gets_another() {
        let mut operations = Operations::default();
        let first = operations.keep(Operation::Bell);
        assert!(operations.end(first).is_some());
        let second = operations.keep(Operation::Bell);
        assert_ne!(first, second);
        assert!(operations.end(first).is_none(), "an old name finds a new operation");
        assert_eq!(operations.count(), 1);
        assert!(operations.end(second).is_some() && operations.end(Key::NOBODY).is_none());
        assert_eq!(operations.count(), 0);
    }
}
