//! The last operations that failed, in a ring of cells that processes may share.
//!
//! It is not the transfer log: it has no path, and forgets. Invariants: recording neither locks nor waits; a
//! record is bounded, and is read whole or not at all.

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::time::{Duration, SystemTime};

use plimsoll_wire::text::is_unsafe_to_show;

use crate::limits::{RECENT_FAILURE_BYTES_MAX, RECENT_FAILURES_MAX};

/// The cells of a record: its state, and its text.
const RECORD_CELLS: usize = 1 + RECENT_FAILURE_BYTES_MAX / 8;
/// The cells of a ring: the number of the next record, and the records.
pub(crate) const RING_CELLS: usize = 1 + RECENT_FAILURES_MAX * RECORD_CELLS;

/// A failed operation. Texts that were too long are cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The time of its end.
    pub time: SystemTime,
    /// The protocol, by its name in the logs.
    pub protocol: String,
    /// The operation, by its name in the logs.
    pub operation: String,
    /// The word for the reason.
    pub reason: String,
    /// The client's address; empty if there are no logs.
    pub peer: String,
    /// The account, or the name that a client presented; empty if there are no logs.
    pub account: String,
}

/// The last failures, in [`RING_CELLS`] cells.
///
/// The state of a record is zero, then odd while a text is written, then even; it has the record's number.
/// A record whose writer was killed stays odd, and is used no more.
pub(crate) struct FailureRing<'a>(pub(crate) &'a [AtomicU64]);

impl FailureRing<'_> {
    /// Records a failure, instead of the oldest one. It is lost if another one is being written there.
    pub(crate) fn record(&self, failure: &Failure) {
        let Some((next, records)) = self.0.split_first() else { return };
        let number = next.fetch_add(1, Ordering::Relaxed);
        let index = usize::try_from(number % RECENT_FAILURES_MAX as u64).unwrap_or(0);
        let Some((state, cells)) = records[index * RECORD_CELLS..][..RECORD_CELLS].split_first() else {
            return;
        };
        let (before, writing) = (state.load(Ordering::Relaxed), 2 * number + 1);
        let is_free = before % 2 == 0 && before < writing;
        let claim = || state.compare_exchange(before, writing, Ordering::Acquire, Ordering::Relaxed);
        if !is_free || claim().is_err() {
            return;
        }
        // A reader that sees one of the new words then sees the odd state, too.
        fence(Ordering::Release);
        let text = text_of(failure);
        let mut words = text.as_bytes().chunks(8).map(word);
        for cell in cells {
            cell.store(words.next().unwrap_or(0), Ordering::Relaxed);
        }
        state.store(writing + 1, Ordering::Release);
    }

    /// Returns the failures, the newest first.
    pub(crate) fn read(&self) -> Vec<Failure> {
        let records = self.0.get(1..).unwrap_or_default().chunks_exact(RECORD_CELLS);
        let mut found: Vec<(u64, Failure)> = records.filter_map(read_record).collect();
        found.sort_unstable_by_key(|(state, _)| std::cmp::Reverse(*state));
        found.into_iter().map(|(_, failure)| failure).collect()
    }
}

/// Reads a record, unless it is being written.
fn read_record(record: &[AtomicU64]) -> Option<(u64, Failure)> {
    let (state, cells) = record.split_first()?;
    let before = state.load(Ordering::Acquire);
    if before == 0 || before % 2 == 1 {
        return None;
    }
    let bytes: Vec<u8> = cells.iter().flat_map(|cell| cell.load(Ordering::Relaxed).to_le_bytes()).collect();
    fence(Ordering::Acquire);
    let is_whole = state.load(Ordering::Relaxed) == before;
    let text = std::str::from_utf8(&bytes).ok().filter(|_| is_whole)?;
    Some((before, parse(text.trim_end_matches('\0'))?))
}

/// Packs up to eight bytes.
fn word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// Returns the lines of a record.
fn text_of(failure: &Failure) -> String {
    let Failure { time, protocol, operation, reason, peer, account } = failure;
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
    let lines = [&seconds.to_string(), protocol, operation, reason, peer, account];
    let mut text = lines.map(|line| line.replace(is_unsafe_to_show, "\u{fffd}")).join("\n");
    text.truncate(text.floor_char_boundary(RECENT_FAILURE_BYTES_MAX));
    text
}

fn parse(text: &str) -> Option<Failure> {
    let mut lines = text.split('\n').map(str::to_owned);
    let seconds = lines.next()?.parse().ok()?;
    let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
    let mut line = || lines.next().unwrap_or_default();
    let (protocol, operation, reason, peer, account) = (line(), line(), line(), line(), line());
    Some(Failure { time, protocol, operation, reason, peer, account })
}

#[cfg(test)]
mod tests {
    use plimsoll_io::Cells;

    use super::*;

    fn failure(account: &str) -> Failure {
        Failure {
            time: SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000),
            protocol: "http".to_owned(),
            operation: "login".to_owned(),
            reason: "not authenticated".to_owned(),
            peer: "192.0.2.7:40000".to_owned(),
            account: account.to_owned(),
        }
    }

    #[test]
    fn the_last_failures_are_read_back_the_newest_first() {
        let cells = Cells::own(RING_CELLS);
        let ring = FailureRing(&cells);
        assert_eq!(ring.read(), []);
        for number in 0..RECENT_FAILURES_MAX + 7 {
            ring.record(&failure(&number.to_string()));
        }
        let expected: Vec<_> =
            (7..RECENT_FAILURES_MAX + 7).rev().map(|number| failure(&number.to_string())).collect();
        assert_eq!(ring.read(), expected);
    }

    #[test]
    fn no_text_is_longer_than_a_record_or_becomes_another_field() {
        let cells = Cells::own(RING_CELLS);
        let ring = FailureRing(&cells);
        ring.record(&Failure { peer: "ä\n\0\u{1b}x".to_owned(), ..failure(&"ä".repeat(300)) });
        let read = ring.read();
        let [one] = &*read else { panic!("{read:?}") };
        assert_eq!(one.peer, "ä\u{fffd}\u{fffd}\u{fffd}x");
        assert!(one.account.starts_with("ää") && one.account.len() < RECENT_FAILURE_BYTES_MAX, "{one:?}");
        assert!(one.account.chars().all(|character| character == 'ä'), "{one:?}");
    }

    #[test]
    fn a_record_that_is_being_written_is_neither_read_nor_written_again() {
        let cells = Cells::own(RING_CELLS);
        let ring = FailureRing(&cells);
        ring.record(&failure("a"));
        cells[1].store(1, Ordering::Relaxed);
        assert_eq!(ring.read(), []);
        for _ in 0..RECENT_FAILURES_MAX {
            ring.record(&failure("b"));
        }
        assert_eq!(ring.read().len(), RECENT_FAILURES_MAX - 1);
        assert_eq!(cells[1].load(Ordering::Relaxed), 1);
    }

    #[test]
    fn failures_of_many_threads_are_read_whole() {
        let cells = Cells::own(RING_CELLS);
        std::thread::scope(|scope| {
            for name in ["a", "b", "c"] {
                let ring = FailureRing(&cells);
                scope.spawn(move || (0..2_000).for_each(|_| ring.record(&failure(&name.repeat(60)))));
            }
            for _ in 0..500 {
                for read in FailureRing(&cells).read() {
                    assert!(["a", "b", "c"].iter().any(|name| read == failure(&name.repeat(60))), "{read:?}");
                }
            }
        });
        assert!(!FailureRing(&cells).read().is_empty());
    }
}
