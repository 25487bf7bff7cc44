//! Bytes on their way from one stream to another that stay with the system: they are in a pipe, and nobody
//! looks at them.
//!
//! It makes no pipes and moves no bytes: engines do. What must hold: a pipe that is used again is empty, so
//! one that goes with bytes in it is closed; a process has no more than it may.

use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::limits::{PIPES_KEPT_MAX, PIPES_REFUSED_ASKS};

/// How many this process has, on all its threads.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// A pipe's two ends.
#[derive(Debug)]
pub struct Pipe {
    ends: Ends,
    /// Dropped after the ends are closed.
    _counted: Counted,
}

/// Where bytes of a pipe come out, and where they go in.
pub type Ends = (OwnedFd, OwnedFd);

#[derive(Debug)]
struct Counted;

impl Pipe {
    /// One that `make` makes, if there are fewer than `most`.
    fn open(most: usize, make: impl FnOnce() -> Option<Ends>) -> Option<Pipe> {
        let is_one_more = |open| (open < most).then_some(open + 1);
        OPEN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, is_one_more).ok()?;
        let _counted = Counted;
        Some(Pipe { ends: make()?, _counted })
    }

    /// Where bytes go in.
    pub fn sink(&self) -> BorrowedFd<'_> {
        self.ends.1.as_fd()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Empty pipes of one thread, to be used again.
#[derive(Debug)]
pub struct Pipes {
    empty: RefCell<Vec<Pipe>>,
    /// How many the process may have.
    most: usize,
    /// How often it is still not asked for one, since there was none.
    refused: Cell<u32>,
}

impl Pipes {
    /// None yet, of a process that may have `most`.
    pub fn new(most: usize) -> Rc<Pipes> {
        Rc::new(Pipes { empty: RefCell::default(), most, refused: Cell::new(0) })
    }

    /// Whether one is at hand; if none is, `make` makes one. If it cannot, it is left alone for a while.
    pub fn has_one(&self, make: impl FnOnce() -> Option<Ends>) -> bool {
        let mut empty = self.empty.borrow_mut();
        if empty.is_empty() {
            if self.refused.get() > 0 {
                self.refused.set(self.refused.get() - 1);
                return false;
            }
            match Pipe::open(self.most, make) {
                Some(pipe) => empty.push(pipe),
                None => self.refused.set(PIPES_REFUSED_ASKS),
            }
        }
        !empty.is_empty()
    }

    /// One that is at hand.
    pub fn take(&self) -> Option<Pipe> {
        self.empty.borrow_mut().pop()
    }

    /// Has back the one that was taken just now, into which nothing went: it stays at hand, for who took it
    /// may be about to try again.
    pub fn put_back(&self, pipe: Pipe) {
        self.empty.borrow_mut().push(pipe);
    }

    /// Has back an empty one. It is closed if there are enough here, and if other threads may want it.
    pub fn keep(&self, pipe: Pipe) {
        let mut empty = self.empty.borrow_mut();
        let are_few = OPEN.load(Ordering::Relaxed) <= self.most.div_ceil(2);
        if are_few && empty.len() < PIPES_KEPT_MAX {
            empty.push(pipe);
        }
    }
}

/// So many bytes in a pipe.
#[derive(Debug)]
pub struct Piped {
    /// None only while it is dropped.
    pipe: Option<Pipe>,
    bytes: u64,
    home: Rc<Pipes>,
}

impl Piped {
    /// The `bytes` in a pipe, which goes to `home` when they have left it.
    pub fn new(pipe: Pipe, bytes: u64, home: &Rc<Pipes>) -> Piped {
        Piped { pipe: Some(pipe), bytes, home: Rc::clone(home) }
    }

    /// How many bytes are in it.
    pub fn len(&self) -> u64 {
        self.bytes
    }

    /// Whether none are.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Where they come out.
    pub fn source(&self) -> Option<BorrowedFd<'_>> {
        self.pipe.as_ref().map(|pipe| pipe.ends.0.as_fd())
    }

    /// Notes that so many have left it.
    pub(crate) fn advance(&mut self, bytes: u64) {
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        if let Some(pipe) = self.pipe.take().filter(|_| self.bytes == 0) {
            self.home.keep(pipe);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> Option<Ends> {
        let (source, sink) = std::io::pipe().unwrap();
        Some((source.into(), sink.into()))
    }

    const MOST: usize = 4;

    /// The only test that opens any: they are counted for all threads.
    #[test]
    fn an_empty_pipe_is_used_again_and_one_with_bytes_is_closed_and_there_are_only_so_many() {
        let pipes = Pipes::new(MOST);
        let with = |bytes| Piped::new(pipes.take().unwrap(), bytes, &pipes);
        let mut out: Vec<Piped> = Vec::new();
        while pipes.has_one(ends) {
            out.push(with(2));
        }
        assert_eq!(out.len(), MOST);
        for _ in 0..PIPES_REFUSED_ASKS {
            assert!(!pipes.has_one(|| panic!("there may be no more")));
        }
        out[0].advance(1);
        drop(out.remove(0));
        assert!(pipes.take().is_none(), "it was not empty");
        assert!(pipes.has_one(ends), "another can be made in its place");
        out.push(with(2));
        out.iter_mut().for_each(|piped| piped.advance(2));
        drop(out);
        // Half of them are for other threads, but for one that was not used.
        let kept: Vec<Pipe> = std::iter::from_fn(|| pipes.take()).collect();
        assert_eq!(kept.len(), MOST / 2);
        let more: Vec<Pipe> = (0..MOST / 2).map(|_| Pipe::open(MOST, ends).unwrap()).collect();
        kept.into_iter().for_each(|pipe| pipes.put_back(pipe));
        assert_eq!(std::iter::from_fn(|| pipes.take()).count(), MOST / 2);
        drop(more);
        assert_eq!(OPEN.load(Ordering::Relaxed), 0);
        assert!(!pipes.has_one(|| None));
        assert!(!pipes.has_one(|| panic!("the system was asked a moment ago")));
        assert_eq!(OPEN.load(Ordering::Relaxed), 0);
    }
}
