//! A table of bounded size that all threads share. Keys are hashes; a full set evicts the entry of lowest
//! priority.
//!
//! It is not a map: an entry may have been evicted. Invariants: a client cannot choose a key that falls
//! into the set of another. Keys are hashes of random tokens, or hashes under a key unknown to clients.
//! No lock is held over a wait.

use std::sync::{Mutex, MutexGuard, PoisonError};

use subtle::ConstantTimeEq as _;

use crate::limits::{TABLE_SETS, TABLE_WAYS};

/// The hash that identifies an entry.
pub type Key = [u8; 32];

type Set<V> = Vec<(Key, V)>;

/// Sets of a few entries, each behind its own lock.
pub struct Table<V> {
    sets: Box<[Mutex<Set<V>>]>,
}

impl<V> Table<V> {
    /// Creates an empty table.
    #[must_use]
    pub fn new() -> Table<V> {
        Table { sets: (0..TABLE_SETS).map(|_| Mutex::new(Vec::new())).collect() }
    }

    fn set(&self, key: &Key) -> MutexGuard<'_, Set<V>> {
        let at = usize::from(u16::from_le_bytes([key[0], key[1]])) % self.sets.len();
        self.sets[at].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the result of `look` for the entry, if there is one.
    pub fn get<T>(&self, key: &Key, look: impl FnOnce(&mut V) -> T) -> Option<T> {
        let mut set = self.set(key);
        set.iter_mut().find(|(other, _)| is_same(other, key)).map(|(_, value)| look(value))
    }

    /// Replaces the entry of this key. In a full set, evicts the entry of lowest `worth` first.
    pub fn put(&self, key: Key, value: V, worth: impl Fn(&V) -> u64) {
        let mut set = self.set(&key);
        set.retain(|(other, _)| !is_same(other, &key));
        push(&mut set, key, value, worth);
    }
}

impl<V> Default for Table<V> {
    fn default() -> Table<V> {
        Table::new()
    }
}

impl<V: Default> Table<V> {
    /// Changes an entry, creating it with its default.
    pub fn change<T>(&self, key: Key, change: impl FnOnce(&mut V) -> T, worth: impl Fn(&V) -> u64) -> T {
        let mut set = self.set(&key);
        if let Some((_, value)) = set.iter_mut().find(|(other, _)| is_same(other, &key)) {
            return change(value);
        }
        let mut value = V::default();
        let changed = change(&mut value);
        push(&mut set, key, value, worth);
        changed
    }
}

fn push<V>(set: &mut Set<V>, key: Key, value: V, worth: impl Fn(&V) -> u64) {
    if set.len() >= TABLE_WAYS
        && let Some(least) = (0..set.len()).min_by_key(|at| worth(&set[*at].1))
    {
        set.swap_remove(least);
    }
    set.push((key, value));
}

fn is_same(one: &Key, other: &Key) -> bool {
    one.ct_eq(other).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> Key {
        let mut key = [0; 32];
        key[31] = number;
        key
    }

    #[test]
    fn a_full_set_evicts_its_least_valuable_entry() {
        let table = Table::new();
        for number in 0..20 {
            table.put(key(number), u64::from(number % 10), |worth| *worth);
        }
        let kept: Vec<u8> = (0..20).filter(|number| table.get(&key(*number), |_| ()).is_some()).collect();
        assert_eq!(kept.len(), TABLE_WAYS);
        assert!(kept.contains(&19) && kept.contains(&9) && !kept.contains(&0), "{kept:?}");
    }

    #[test]
    fn an_entry_replaces_its_older_self() {
        let table = Table::new();
        table.put(key(1), 1, |_| 0);
        table.put(key(1), 2, |_| 0);
        assert_eq!(table.get(&key(1), |value| *value), Some(2));
    }
}
