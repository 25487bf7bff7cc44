//! Bytes on their way from one stream to another, or to a file, that stay with the system: they are in a
//! pipe, and nobody looks at them.
//!
//! It makes no pipes and moves no bytes: engines do. What must hold: a pipe that is used again is empty, so
//! one that goes with bytes in it is closed; a process has no more than it may.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::{PIPES_KEPT_MAX, PIPES_REFUSED_ASKS};

/// How many this process has, on all its threads.
static OPEN: AtomicUsize = AtomicUsize::new(0);
/// Empty ones, to be used again by any of them.
static KEPT: Mutex<Vec<Arc<Ends>>> = Mutex::new(Vec::new());
/// How often the system is still not asked for one, since it had none.
static REFUSED: AtomicU32 = AtomicU32::new(0);

/// A pipe, and how many bytes are in it. When it is dropped, it is kept to be used again if it is empty.
#[derive(Debug)]
pub struct Pipe {
    ends: Arc<Ends>,
    bytes: AtomicU64,
}

/// What came of a receive into a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// So many bytes, at least one, are behind what was in it.
    Bytes(u64),
    /// There is no room: something has to come out first.
    Full,
    /// What comes next goes into no pipe, as an urgent byte does not. It is received otherwise.
    Refused,
    /// The peer's end of sending.
    End,
}

/// Where bytes of a pipe come out, and where they go in.
#[derive(Debug)]
struct Ends {
    source: OwnedFd,
    sink: OwnedFd,
    /// Dropped after the ends are closed.
    _counted: Counted,
}

#[derive(Debug)]
struct Counted;

impl Pipe {
    /// An empty one: one that was used before, or that `make` makes (its source, and its sink) if there are
    /// fewer than `most`. If it cannot, it is left alone for a while.
    pub fn open(most: usize, make: impl FnOnce() -> Option<(OwnedFd, OwnedFd)>) -> Option<Pipe> {
        let kept = kept().pop();
        let ends = kept.or_else(|| Ends::make(most, make).map(Arc::new))?;
        Some(Pipe { ends, bytes: AtomicU64::new(0) })
    }

    /// How many bytes are in it.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// Notes that so many went in. Who puts them in says so before anybody takes them out.
    pub fn filled(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Release);
    }

    /// Notes that so many came out.
    pub fn drained(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Release);
    }

    /// Where bytes come out.
    pub fn source(&self) -> BorrowedFd<'_> {
        self.ends.source.as_fd()
    }

    /// Where bytes go in.
    pub fn sink(&self) -> BorrowedFd<'_> {
        self.ends.sink.as_fd()
    }
}

impl Ends {
    fn make(most: usize, make: impl FnOnce() -> Option<(OwnedFd, OwnedFd)>) -> Option<Ends> {
        let one_less = |refused: u32| refused.checked_sub(1);
        if REFUSED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok() {
            return None;
        }
        let one_more = |open| (open < most).then_some(open + 1);
        OPEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        let _counted = Counted;
        let made = make();
        if made.is_none() {
            REFUSED.store(PIPES_REFUSED_ASKS, Ordering::Relaxed);
        }
        made.map(|(source, sink)| Ends { source, sink, _counted })
    }
}

fn kept() -> MutexGuard<'static, Vec<Arc<Ends>>> {
    KEPT.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Pipe {
    fn drop(&mut self) {
        if *self.bytes.get_mut() == 0 {
            let mut kept = kept();
            if kept.len() < PIPES_KEPT_MAX {
                kept.push(Arc::clone(&self.ends));
            }
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> Option<(OwnedFd, OwnedFd)> {
        let (source, sink) = std::io::pipe().unwrap();
        Some((source.into(), sink.into()))
    }

    const MOST: usize = 4;

    /// The only test that opens any: they are counted for all threads.
    #[test]
    fn an_empty_pipe_is_used_again_and_one_with_bytes_is_closed_and_there_are_only_so_many() {
        let with_bytes = || Pipe::open(MOST, ends).inspect(|pipe| pipe.filled(2));
        let mut out: Vec<Pipe> = std::iter::from_fn(with_bytes).collect();
        assert_eq!(out.len(), MOST);
        out[0].drained(1);
        drop(out.remove(0));
        assert!(kept().is_empty(), "there was a byte in it");
        out.extend(with_bytes());
        assert_eq!(out.len(), MOST, "another can be made in its place");
        out[0].drained(2);
        drop(out.remove(0));
        let again = Pipe::open(MOST, || panic!("one is kept"));
        assert_eq!(again.as_ref().map(Pipe::bytes), Some(0));
        assert_eq!(OPEN.load(Ordering::Relaxed), MOST);
        drop((out, again));
        assert_eq!(OPEN.load(Ordering::Relaxed), 1, "those with bytes in them are gone");
        kept().clear();
        assert!(Pipe::open(MOST, || None).is_none());
        for _ in 0..PIPES_REFUSED_ASKS {
            assert!(Pipe::open(MOST, || panic!("the system was asked a moment ago")).is_none());
        }
        assert!(Pipe::open(MOST, ends).is_some());
    }
}
