//! Threads for work that may block, behind bounded queues.
//!
//! `plimsoll_io::WorkQueue` chooses the next job: owners take turns, and long jobs are done in slices.
//! Invariants: the queue never grows past its bounds. A job that panics ends neither its thread nor the
//! pool.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use plimsoll_io::{Fs, Job, NotDone, Progress, Taken, Work, WorkBounds, WorkQueue};

use crate::files::{FreesLater, NonBlockingFs, SystemFs, free_now};
use crate::limits::{
    CHORE_JOBS_MAX, CHORE_JOBS_PER_OWNER_MAX, CHORE_THREADS, DIRECTORY_JOBS_MAX, DIRECTORY_THREADS,
    FILE_JOBS_MAX, FILE_THREADS, LISTING_JOBS_MAX, LISTING_JOBS_PER_OWNER_MAX, LISTING_THREADS,
    LISTINGS_RESUMED_MAX, LISTINGS_RESUMED_PER_OWNER_MAX, PASSWORD_JOBS_PER_THREAD_MAX, WRITE_JOBS_MAX,
    WRITE_THREADS,
};
use crate::scheduling::begin_after_others;

/// The thread pools for a thread's blocking work.
#[derive(Clone)]
pub(crate) struct Offload {
    /// For jobs that are short or wait for a disk. `None` where the thread serves one connection, which
    /// would wait anyway.
    short: Option<Short>,
    /// For jobs that take much memory, a core or long: a few at a time in the whole process. `None` where a
    /// process serves one connection: its jobs then run in place.
    long: Option<Long>,
}

#[derive(Clone)]
struct Long {
    listings: Arc<Pool>,
    chores: Arc<Pool>,
    passwords: Arc<Pool>,
}

#[derive(Clone)]
struct Short {
    files: Arc<Pool>,
    writes: Arc<Pool>,
    directory: Arc<Pool>,
}

impl Offload {
    /// For a process that serves one connection and has no other thread.
    pub(crate) fn alone() -> Offload {
        Offload { short: None, long: None }
    }

    /// For threads that serve one connection each.
    pub(crate) fn in_place() -> io::Result<Offload> {
        let hashing = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        let listings = WorkBounds {
            jobs_per_owner_max: LISTING_JOBS_PER_OWNER_MAX,
            resumed_per_owner_max: LISTINGS_RESUMED_PER_OWNER_MAX,
            resumed_max: LISTINGS_RESUMED_MAX,
            ..shared_by_owners(LISTING_THREADS, LISTING_JOBS_MAX)
        };
        let chores = WorkBounds {
            jobs_per_owner_max: CHORE_JOBS_PER_OWNER_MAX,
            ..shared_by_owners(CHORE_THREADS, CHORE_JOBS_MAX)
        };
        // The server itself owns these jobs: log-ins take turns before they are submitted.
        let passwords = shared_by_owners(hashing, hashing * PASSWORD_JOBS_PER_THREAD_MAX);
        let long = Long {
            listings: Pool::start("listings", LISTING_THREADS, listings)?,
            chores: Pool::start("chores", CHORE_THREADS, chores)?,
            passwords: Pool::start("passwords", hashing, passwords)?,
        };
        Ok(Offload { short: None, long: Some(long) })
    }

    /// For threads that must not block.
    pub(crate) fn pooled() -> io::Result<Offload> {
        let short = Short {
            files: Pool::start("files", FILE_THREADS, shared_by_owners(FILE_THREADS, FILE_JOBS_MAX))?,
            writes: Pool::start("writes", WRITE_THREADS, shared_by_owners(WRITE_THREADS, WRITE_JOBS_MAX))?,
            directory: Pool::start(
                "directory",
                DIRECTORY_THREADS,
                shared_by_owners(DIRECTORY_THREADS, DIRECTORY_JOBS_MAX),
            )?,
        };
        Ok(Offload { short: Some(short), ..Offload::in_place()? })
    }

    pub(crate) fn nonblocking(&self) -> &dyn Fs {
        if self.short.is_some() { &NonBlockingFs } else { &SystemFs }
    }

    pub(crate) fn submit(&self, work: Work, job: Job) -> Result<(), NotDone> {
        match self.pool_of(work) {
            Some(pool) => pool.submit(job),
            None => {
                run(|| job.run(&SystemFs));
                Ok(())
            }
        }
    }

    /// Returns the pool for this work; `None` where the caller does it in place.
    fn pool_of(&self, work: Work) -> Option<&Pool> {
        let (short, long) = (self.short.as_ref(), self.long.as_ref());
        Some(match work {
            Work::Listings => &long?.listings,
            Work::Chores => &long?.chores,
            Work::Passwords => &long?.passwords,
            Work::Files => &short?.files,
            Work::Writes => &short?.writes,
            Work::Directory => &short?.directory,
        })
    }
}

/// A pool of threads. When dropped, it ends after its accepted jobs.
struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Mutex<Queue>,
    more: Condvar,
}

struct Queue {
    jobs: WorkQueue,
    /// Threads that wait for a job.
    idle: usize,
    closed: bool,
}

/// The bounds of a pool in which an owner has all threads but one at most.
fn shared_by_owners(threads: usize, jobs_max: usize) -> WorkBounds {
    WorkBounds {
        jobs_max,
        jobs_per_owner_max: jobs_max,
        workers_per_owner: threads.saturating_sub(1).max(1),
        resumed_per_owner_max: usize::MAX,
        resumed_max: usize::MAX,
    }
}

impl Pool {
    /// Starts `threads` threads called `name`.
    fn start(name: &str, threads: usize, bounds: WorkBounds) -> io::Result<Arc<Pool>> {
        let queue = Queue { jobs: WorkQueue::new(bounds), idle: 0, closed: false };
        let shared = Arc::new(Shared { queue: Mutex::new(queue), more: Condvar::new() });
        for _ in 0..threads {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new().name(name.to_owned()).spawn(move || {
                begin_after_others();
                shared.work();
            })?;
        }
        Ok(Arc::new(Pool { shared }))
    }

    fn submit(&self, job: Job) -> Result<(), NotDone> {
        let mut queue = self.shared.queue();
        queue.jobs.add(job)?;
        drop(queue);
        self.shared.more.notify_one();
        Ok(())
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.queue().closed = true;
        self.shared.more.notify_all();
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self) {
        let _frees = FreesLater::begin();
        while let Some(mut taken) = self.next() {
            let progress = run(|| taken.job.run_slice(&SystemFs)).unwrap_or(Progress::Finished);
            // A finished job is dropped without the lock: it may own much memory.
            let finished = self.queue().jobs.finish_slice(taken, progress);
            drop(finished);
            free_now();
        }
    }

    /// Returns the next job; `None` when the pool is dropped and all of its jobs have finished.
    fn next(&self) -> Option<Taken> {
        let mut queue = self.queue();
        loop {
            if let Some(taken) = queue.jobs.take() {
                // The end of the previous job may have made two others ready.
                if queue.idle > 0 && queue.jobs.has_ready() {
                    self.more.notify_one();
                }
                return Some(taken);
            }
            if queue.closed && queue.jobs.is_idle() {
                self.more.notify_all();
                return None;
            }
            queue.idle += 1;
            queue = self.more.wait(queue).unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }
}

/// Runs a job or a slice of it. A panic drops the job, which the waiting task sees as its end.
fn run<T>(work: impl FnOnce() -> T) -> Option<T> {
    let ran = catch_unwind(AssertUnwindSafe(work));
    ran.inspect_err(|_| tracing::error!("a file operation panicked")).ok()
}
