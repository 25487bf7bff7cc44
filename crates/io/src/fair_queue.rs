//! A bounded queue that serves keys in turn, so that many entries of one key delay no other key.
//!
//! A key is a network or an account: the unit among which service is shared. Within a key, entries keep
//! their order. Invariant: [`FairQueue::push`] never makes the queue longer than `max`. When it is full,
//! the key with most entries loses one to a key with fewer.

use std::collections::{BTreeMap, VecDeque};

/// Entries by key, and the order in which keys are served.
pub struct FairQueue<K, T> {
    max: usize,
    len: usize,
    entries: BTreeMap<K, VecDeque<T>>,
    key_order: VecDeque<K>,
}

impl<K: Ord + Clone, T> FairQueue<K, T> {
    /// Creates an empty queue, of `max` entries at most.
    #[must_use]
    pub fn new(max: usize) -> FairQueue<K, T> {
        FairQueue { max, len: 0, entries: BTreeMap::new(), key_order: VecDeque::new() }
    }

    /// Adds an entry. Returns the entry that did not fit: the newest of the key with most entries, or
    /// the added one if its own key has as many.
    pub fn push(&mut self, key: K, entry: T) -> Option<T> {
        let displaced = if self.len < self.max { None } else { Some(self.displace(&key)) };
        if let Some(None) = displaced {
            return Some(entry);
        }
        self.append(key, entry);
        displaced.flatten()
    }

    /// Adds an entry, also to a full queue: for callers that enforce a bound of their own.
    pub fn append(&mut self, key: K, entry: T) {
        if !self.entries.contains_key(&key) {
            self.key_order.push_back(key.clone());
        }
        self.entries.entry(key).or_default().push_back(entry);
        self.len += 1;
    }

    /// Removes the newest entry of the key with most entries, if `newcomer` would have fewer with one
    /// more.
    fn displace(&mut self, newcomer: &K) -> Option<T> {
        let own = self.len_of(newcomer);
        let (largest, entries) = self.entries.iter_mut().max_by_key(|(_, entries)| entries.len())?;
        if entries.len() <= own + 1 {
            return None;
        }
        let (displaced, largest) = (entries.pop_back(), largest.clone());
        self.len -= usize::from(displaced.is_some());
        self.forget_if_empty(&largest);
        displaced
    }

    /// Removes the first ready entry of the next key in the rotation. `readiness` returns the test for the
    /// entries of a key, or `None` for a key that is skipped.
    pub fn pop<P: Fn(&T) -> bool>(&mut self, readiness: impl Fn(&K) -> Option<P>) -> Option<(K, T)> {
        let (index, ready) = self.next_ready(readiness)?;
        let key = self.key_order.remove(index)?;
        let entry = self.entries.get_mut(&key)?.remove(ready)?;
        self.len -= 1;
        self.key_order.push_back(key.clone());
        self.forget_if_empty(&key);
        Some((key, entry))
    }

    /// Whether [`FairQueue::pop`] would return an entry.
    pub fn has_ready<P: Fn(&T) -> bool>(&self, readiness: impl Fn(&K) -> Option<P>) -> bool {
        self.next_ready(readiness).is_some()
    }

    /// Finds the next key with a ready entry. Returns the indexes of the key and of the entry.
    fn next_ready<P: Fn(&T) -> bool>(&self, readiness: impl Fn(&K) -> Option<P>) -> Option<(usize, usize)> {
        self.key_order.iter().enumerate().find_map(|(index, key)| {
            let ready = self.entries.get(key)?.iter().position(readiness(key)?)?;
            Some((index, ready))
        })
    }

    fn forget_if_empty(&mut self, key: &K) {
        if self.entries.get(key).is_some_and(VecDeque::is_empty) {
            self.entries.remove(key);
            self.key_order.retain(|other| other != key);
        }
    }

    /// Keeps only the entries of a key for which `is_wanted` is true.
    pub fn retain_of(&mut self, key: &K, is_wanted: impl FnMut(&T) -> bool) {
        let Some(entries) = self.entries.get_mut(key) else { return };
        let before = entries.len();
        entries.retain(is_wanted);
        self.len -= before - entries.len();
        self.forget_if_empty(key);
    }

    /// Keeps only the entries for which `is_wanted` is true.
    pub fn retain(&mut self, mut is_wanted: impl FnMut(&K, &T) -> bool) {
        self.entries.iter_mut().for_each(|(key, entries)| entries.retain(|entry| is_wanted(key, entry)));
        self.entries.retain(|_, entries| !entries.is_empty());
        self.key_order.retain(|key| self.entries.contains_key(key));
        self.len = self.entries.values().map(VecDeque::len).sum();
    }

    /// Whether it has at least its maximum of entries.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len >= self.max
    }

    /// Whether it has no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of entries of a key.
    pub fn len_of(&self, key: &K) -> usize {
        self.entries.get(key).map_or(0, VecDeque::len)
    }

    /// Returns all entries, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.entries.values().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(max: usize, entries: &[(u8, u32)]) -> (FairQueue<u8, u32>, Vec<u32>) {
        let mut queue = FairQueue::new(max);
        let displaced = entries.iter().filter_map(|(key, entry)| queue.push(*key, *entry));
        let displaced = displaced.collect();
        (queue, displaced)
    }

    fn pop(queue: &mut FairQueue<u8, u32>, is_ready: impl Fn(u32) -> bool) -> Option<u32> {
        queue.pop(|_| Some(|entry: &u32| is_ready(*entry))).map(|(_, entry)| entry)
    }

    fn drained(queue: &mut FairQueue<u8, u32>) -> Vec<u32> {
        std::iter::from_fn(|| pop(queue, |_| true)).collect()
    }

    #[test]
    fn keys_take_turns_and_entries_of_one_keep_their_order() {
        let (mut queue, displaced) = filled(9, &[(1, 10), (1, 11), (1, 12), (2, 20), (3, 30), (2, 21)]);
        assert!(displaced.is_empty(), "{displaced:?}");
        assert_eq!(drained(&mut queue), [10, 20, 30, 11, 21, 12]);
        assert_eq!((queue.len, queue.key_order.len(), queue.entries.len()), (0, 0, 0));
    }

    #[test]
    fn in_a_full_queue_the_key_with_most_entries_makes_room() {
        let (mut queue, displaced) = filled(3, &[(1, 10), (1, 11), (1, 12), (1, 13), (2, 20), (3, 30)]);
        assert_eq!(displaced, [13, 12, 11]);
        assert_eq!(queue.push(4, 40), Some(40));
        assert_eq!(drained(&mut queue), [10, 20, 30]);
    }

    #[test]
    fn an_entry_that_is_not_ready_delays_neither_its_key_nor_others() {
        let (mut queue, _) = filled(9, &[(1, 10), (1, 11), (2, 20)]);
        assert_eq!(pop(&mut queue, |entry| entry != 10), Some(11));
        assert_eq!(pop(&mut queue, |entry| entry != 10), Some(20));
        assert!(!queue.has_ready(|_| Some(|entry: &u32| *entry != 10)));
        assert!(!queue.has_ready(|_| None::<fn(&u32) -> bool>), "no key has a turn");
        assert_eq!(pop(&mut queue, |entry| entry != 10), None);
        assert_eq!(pop(&mut queue, |_| true), Some(10));
    }

    #[test]
    fn abandoned_entries_leave_the_queue() {
        let (mut queue, _) = filled(3, &[(1, 10), (2, 20), (3, 30)]);
        queue.retain_of(&1, |_| false);
        assert_eq!((queue.len, queue.len_of(&1)), (2, 0));
        queue.retain(|_, entry| *entry == 20);
        assert!(!queue.is_full());
        assert_eq!(queue.iter().copied().collect::<Vec<_>>(), [20]);
        assert_eq!(drained(&mut queue), [20]);
    }

    #[test]
    fn an_entry_that_returns_has_its_turn_after_all_other_keys() {
        let (mut queue, _) = filled(9, &[(1, 10), (2, 20), (3, 30)]);
        assert_eq!(pop(&mut queue, |_| true), Some(10));
        queue.append(1, 10);
        assert_eq!(drained(&mut queue), [20, 30, 10]);
    }
}
