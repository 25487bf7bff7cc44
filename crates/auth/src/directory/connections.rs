//! A process's pool of connections to a directory.
//!
//! It knows no database. Invariants: a connection is never used by two jobs at once. The most recently
//! used one is taken first, so that an idle process opens few.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use super::meter::Measured;
use super::{Directory, DirectoryError, DirectoryMeter};
use crate::limits::DATABASE_CONNECTIONS_MAX;

/// The pool of idle connections.
pub(crate) struct Connections {
    free: Mutex<Vec<Box<dyn Directory>>>,
    freed: Condvar,
    meter: OnceLock<Arc<DirectoryMeter>>,
}

impl Connections {
    /// Creates a pool of `first` and as many others as the limit and the directory allow.
    pub(crate) fn of(first: Box<dyn Directory>) -> Connections {
        let others = (1..DATABASE_CONNECTIONS_MAX).map_while(|_| first.another()).collect::<Vec<_>>();
        let free = others.into_iter().chain([first]).collect();
        Connections { free: Mutex::new(free), freed: Condvar::new(), meter: OnceLock::new() }
    }

    /// Counts from now on, unless that was ordered before.
    pub(crate) fn count_in(&self, meter: &Arc<DirectoryMeter>) {
        if self.meter.set(Arc::clone(meter)).is_ok() {
            self.take_while(|directory| directory.count_in(meter));
        }
    }

    /// Runs `work` with a connection, once one is free. This blocks.
    pub(crate) fn work<T>(
        &self,
        work: impl FnOnce(&mut dyn Directory) -> Result<T, DirectoryError>,
    ) -> Result<T, DirectoryError> {
        let mut measured = Measured::new(self.meter.get().map(|meter| &**meter));
        self.take_while(|directory| {
            measured.begin();
            let done = work(directory);
            measured.note(&done);
            done
        })
    }

    fn take_while<T>(&self, work: impl FnOnce(&mut dyn Directory) -> T) -> T {
        let mut directory = self.take();
        // It returns to the pool even after a panic: a failed database connection is replaced at its next
        // use.
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
        let panicked = catch_unwind(AssertUnwindSafe(|| connections.work::<()>(|_| panic!("in the middle"))));
        assert!(panicked.is_err());
        let (begun, received) = channel();
        std::thread::scope(|scope| {
            let held = connections.work(|_| {
                scope.spawn(|| {
                    let count = connections.work(|directory| Ok(directory.accounts()?.len()));
                    begun.send(count.unwrap()).unwrap();
                });
                // It cannot begin before this job has ended, however long that takes.
                assert!(received.try_recv().is_err());
                Ok(())
            });
            held.unwrap();
        });
        assert_eq!(received.recv(), Ok(0));
    }
}
