//! A bounded queue that gives networks turns, so that many entries of one network delay no other network.
//!
//! Within a network, entries keep their order. Invariant: the queue never has more than `max` entries; when
//! it is full, an entry of the network that has most makes room for a network that has fewer.

use std::collections::{BTreeMap, VecDeque};

/// The bytes that stand for a network ([`Source::place`](crate::attempts::Source)).
pub(crate) type Network = Vec<u8>;

/// Entries by network, and the order in which networks have their turns.
pub(crate) struct FairQueue<T> {
    max: usize,
    len: usize,
    entries: BTreeMap<Network, VecDeque<T>>,
    turns: VecDeque<Network>,
}

impl<T> FairQueue<T> {
    pub(crate) fn new(max: usize) -> FairQueue<T> {
        FairQueue { max, len: 0, entries: BTreeMap::new(), turns: VecDeque::new() }
    }

    /// Adds an entry. Returns the entry that did not fit: the newest of the network that has most entries, or
    /// the added one if its own network has as many.
    pub(crate) fn push(&mut self, network: Network, entry: T) -> Option<T> {
        let displaced = if self.len < self.max { None } else { Some(self.displace(&network)) };
        if let Some(None) = displaced {
            return Some(entry);
        }
        if !self.entries.contains_key(&network) {
            self.turns.push_back(network.clone());
        }
        self.entries.entry(network).or_default().push_back(entry);
        self.len += 1;
        displaced.flatten()
    }

    /// Removes the newest entry of the network that has most, if `newcomer` would have fewer with one more.
    fn displace(&mut self, newcomer: &Network) -> Option<T> {
        let own = self.entries.get(newcomer).map_or(0, VecDeque::len);
        let (largest, entries) = self.entries.iter_mut().max_by_key(|(_, entries)| entries.len())?;
        if entries.len() <= own + 1 {
            return None;
        }
        let (displaced, largest) = (entries.pop_back(), largest.clone());
        self.len -= usize::from(displaced.is_some());
        self.forget_if_empty(&largest);
        displaced
    }

    /// Removes the first entry that is ready, of the network whose turn is next.
    pub(crate) fn pop(&mut self, is_ready: impl Fn(&T) -> bool) -> Option<T> {
        for turn in 0..self.turns.len() {
            let Some(entries) = self.entries.get_mut(&self.turns[turn]) else { continue };
            let Some(ready) = entries.iter().position(&is_ready) else { continue };
            let entry = entries.remove(ready);
            self.len -= usize::from(entry.is_some());
            if let Some(network) = self.turns.remove(turn) {
                self.turns.push_back(network.clone());
                self.forget_if_empty(&network);
            }
            return entry;
        }
        None
    }

    fn forget_if_empty(&mut self, network: &Network) {
        if self.entries.get(network).is_some_and(VecDeque::is_empty) {
            self.entries.remove(network);
            self.turns.retain(|other| other != network);
        }
    }

    /// Keeps only entries that `is_wanted`.
    pub(crate) fn retain(&mut self, is_wanted: impl Fn(&T) -> bool) {
        self.entries.values_mut().for_each(|entries| entries.retain(&is_wanted));
        self.entries.retain(|_, entries| !entries.is_empty());
        self.turns.retain(|network| self.entries.contains_key(network));
        self.len = self.entries.values().map(VecDeque::len).sum();
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len >= self.max
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.values().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(max: usize, entries: &[(u8, u32)]) -> (FairQueue<u32>, Vec<u32>) {
        let mut queue = FairQueue::new(max);
        let displaced = entries.iter().filter_map(|(network, entry)| queue.push(vec![*network], *entry));
        let displaced = displaced.collect();
        (queue, displaced)
    }

    fn drained(queue: &mut FairQueue<u32>) -> Vec<u32> {
        std::iter::from_fn(|| queue.pop(|_| true)).collect()
    }

    #[test]
    fn networks_take_turns_and_entries_of_one_keep_their_order() {
        let (mut queue, displaced) = filled(9, &[(1, 10), (1, 11), (1, 12), (2, 20), (3, 30), (2, 21)]);
        assert!(displaced.is_empty(), "{displaced:?}");
        assert_eq!(drained(&mut queue), [10, 20, 30, 11, 21, 12]);
        assert_eq!((queue.len, queue.turns.len(), queue.entries.len()), (0, 0, 0));
    }

    #[test]
    fn in_a_full_queue_the_network_with_most_entries_makes_room() {
        let (mut queue, displaced) = filled(3, &[(1, 10), (1, 11), (1, 12), (1, 13), (2, 20), (3, 30)]);
        assert_eq!(displaced, [13, 12, 11]);
        assert_eq!(queue.push(vec![4], 40), Some(40));
        assert_eq!(drained(&mut queue), [10, 20, 30]);
    }

    #[test]
    fn an_entry_that_is_not_ready_holds_up_neither_its_network_nor_others() {
        let (mut queue, _) = filled(9, &[(1, 10), (1, 11), (2, 20)]);
        assert_eq!(queue.pop(|entry| *entry != 10), Some(11));
        assert_eq!(queue.pop(|entry| *entry != 10), Some(20));
        assert_eq!(queue.pop(|entry| *entry != 10), None);
        assert_eq!(queue.pop(|_| true), Some(10));
    }

    #[test]
    fn abandoned_entries_leave_the_queue() {
        let (mut queue, _) = filled(3, &[(1, 10), (2, 20), (3, 30)]);
        queue.retain(|entry| *entry == 20);
        assert!(!queue.is_full());
        assert_eq!(queue.iter().copied().collect::<Vec<_>>(), [20]);
        assert_eq!(drained(&mut queue), [20]);
    }
}
