//! The connections to a directory that a process has, for as many who work with it at a time.
//!
//! It knows no database. What must hold: nobody has a connection that somebody else works with; the one that
//! was used last is used first, so that a process with little to do has few.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::Directory;
use crate::limits::DATABASE_CONNECTIONS_MAX;

/// Connections that nobody works with.
pub(crate) struct Connections {
    free: Mutex<Vec<Box<dyn Directory>>>,
    freed: Condvar,
}

impl Connections {
    /// Those of a directory, with as many others as there may be.
    pub(crate) fn of(first: Box<dyn Directory>) -> Connections {
        let others = (1..DATABASE_CONNECTIONS_MAX).map_while(|_| first.another()).collect::<Vec<_>>();
        let free = others.into_iter().chain([first]).collect();
        Connections { free: Mutex::new(free), freed: Condvar::new() }
    }

    /// Works with one, as soon as one is free. This blocks.
    pub(crate) fn work<T>(&self, work: impl FnOnce(&mut dyn Directory) -> T) -> T {
        let mut directory = self.take();
        // It goes back whatever happens: a database's connection that failed is not used again.
        let done = catch_unwind(AssertUnwindSafe(|| work(&mut *directory)));
        self.free().push(directory);
        self.freed.notify_one();
        done.unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn take(&self) -> Box<dyn Directory> {
        let mut free = self.free();
        loop {
            match free.pop() {
                Some(directory) => return directory,
                None => free = self.freed.wait(free).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn free(&self) -> MutexGuard<'_, Vec<Box<dyn Directory>>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::directory::MemoryDirectory;

    #[test]
    fn where_there_is_one_for_all_work_takes_turns_also_after_a_panic() {
        let connections = Connections::of(Box::new(MemoryDirectory::new()));
        let panicked = catch_unwind(AssertUnwindSafe(|| connections.work(|_| panic!("in the middle"))));
        assert!(panicked.is_err());
        let (begun, hear) = channel();
        std::thread::scope(|scope| {
            connections.work(|_| {
                scope.spawn(|| {
                    connections.work(|directory| begun.send(directory.accounts().unwrap().len()).unwrap());
                });
                // It cannot begin before this one has ended, however long that takes.
                assert!(hear.try_recv().is_err());
            });
        });
        assert_eq!(hear.recv(), Ok(0));
    }
}
