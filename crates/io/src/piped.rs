//! Bytes in transit from one stream to another, or to a file, that stay in a kernel pipe and are not
//! copied to user memory.
//!
//! This module creates no pipes and moves no bytes: engines do. Invariants: a reused pipe is empty, so a
//! pipe that is dropped with bytes in it is closed; a process has no more pipes than its limit.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::{PIPES_KEPT_MAX, PIPES_REFUSED_ASKS};

/// Number of open pipes of this process, on all its threads.
static OPEN: AtomicUsize = AtomicUsize::new(0);
/// Empty pipes that any thread may reuse.
static KEPT: Mutex<Vec<Arc<Ends>>> = Mutex::new(Vec::new());
/// How many more requests for a pipe fail without a system call, since the kernel had none left.
static REFUSED: AtomicU32 = AtomicU32::new(0);

/// A pipe, and the number of bytes in it. Dropping an empty pipe returns it for reuse.
#[derive(Debug)]
pub struct Pipe {
    ends: Arc<Ends>,
    bytes: AtomicU64,
}

/// The result of a receive into a pipe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filled {
    /// This many bytes, at least one, were appended to the pipe.
    Bytes(u64),
    /// The pipe is full: bytes must be taken out first.
    Full,
    /// The next data cannot go into a pipe, as an urgent byte cannot. It must be received into memory.
    Refused,
    /// The peer has ended its side.
    End,
}

/// The two ends of a pipe: bytes come out of the source and go into the sink.
#[derive(Debug)]
struct Ends {
    source: OwnedFd,
    sink: OwnedFd,
    /// Must be dropped after the ends are closed.
    _counted: Counted,
}

#[derive(Debug)]
struct Counted;

impl Pipe {
    /// Returns an empty pipe: a reused one, or a new one from `make` (its source and sink) if fewer than
    /// `most` are open. After `make` has failed, it is not called again for [`PIPES_REFUSED_ASKS`]
    /// calls.
    pub fn open(most: usize, make: impl FnOnce() -> Option<(OwnedFd, OwnedFd)>) -> Option<Pipe> {
        let kept = kept().pop();
        let ends = kept.or_else(|| Ends::make(most, make).map(Arc::new))?;
        Some(Pipe { ends, bytes: AtomicU64::new(0) })
    }

    /// Returns the number of bytes in the pipe.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Acquire)
    }

    /// Records that `bytes` bytes went in. The writer calls this before any reader takes the bytes out.
    pub fn filled(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Release);
    }

    /// Records that `bytes` bytes came out.
    pub fn drained(&self, bytes: u64) {
        self.bytes.fetch_sub(bytes, Ordering::Release);
    }

    /// Returns the end that bytes come out of.
    pub fn source(&self) -> BorrowedFd<'_> {
        self.ends.source.as_fd()
    }

    /// Returns the end that bytes go into.
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

    /// The only test that opens pipes, because the count is global to the process.
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
