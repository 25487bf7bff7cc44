//! Threads for work that may block, behind bounded queues.
//!
//! It is not a scheduler: first come, first served. What must hold: the queue never grows past its bound,
//! and a job that panics takes neither its thread nor the pool with it.

use std::collections::VecDeque;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use plimsoll_io::{Fs, Job, NotDone, Work};

use crate::files::{AtHand, FreesLater, SystemFs, free_now};
use crate::limits::{
    CHORE_JOBS_MAX, CHORE_THREADS, DIRECTORY_JOBS_MAX, DIRECTORY_THREADS, FILE_JOBS_MAX, FILE_THREADS,
    LISTING_JOBS_MAX, LISTING_THREADS, PASSWORD_JOBS_PER_THREAD_MAX, WRITE_JOBS_MAX, WRITE_THREADS,
};
use crate::scheduling::begin_after_others;

/// Where a thread's blocking work is done.
#[derive(Clone)]
pub(crate) struct Offload {
    /// For work of which each piece is short or waits for a disk; none where the thread serves one
    /// connection, which would wait anyway.
    short: Option<Short>,
    /// For work that takes memory, a core or long: a few at a time under every engine of one process.
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
    /// For a process that serves one connection, and has no other thread.
    pub(crate) fn alone() -> Offload {
        Offload { short: None, long: None }
    }

    /// For threads that serve one connection each.
    pub(crate) fn in_place() -> io::Result<Offload> {
        let hashing = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        let long = Long {
            listings: Pool::start("listings", LISTING_THREADS, LISTING_JOBS_MAX)?,
            chores: Pool::start("chores", CHORE_THREADS, CHORE_JOBS_MAX)?,
            passwords: Pool::start("passwords", hashing, hashing * PASSWORD_JOBS_PER_THREAD_MAX)?,
        };
        Ok(Offload { short: None, long: Some(long) })
    }

    /// For threads that must not block.
    pub(crate) fn pooled() -> io::Result<Offload> {
        let short = Short {
            files: Pool::start("files", FILE_THREADS, FILE_JOBS_MAX)?,
            writes: Pool::start("writes", WRITE_THREADS, WRITE_JOBS_MAX)?,
            directory: Pool::start("directory", DIRECTORY_THREADS, DIRECTORY_JOBS_MAX)?,
        };
        Ok(Offload { short: Some(short), ..Offload::in_place()? })
    }

    pub(crate) fn at_hand(&self) -> &dyn Fs {
        if self.short.is_some() { &AtHand } else { &SystemFs }
    }

    pub(crate) fn submit(&self, work: Work, job: Job) -> Result<(), NotDone> {
        match self.pool_of(work) {
            Some(pool) => pool.submit(job),
            None => {
                run(job);
                Ok(())
            }
        }
    }

    /// Whose threads do it; nobody's where the caller does it.
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

/// A pool of threads. It ends when it is dropped, after the jobs that it has taken in.
struct Pool {
    shared: Arc<Shared>,
}

struct Shared {
    queue: Mutex<Queue>,
    more: Condvar,
    jobs_max: usize,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl Pool {
    /// Starts `threads` threads called `name`, for at most `jobs_max` waiting jobs.
    fn start(name: &str, threads: usize, jobs_max: usize) -> io::Result<Arc<Pool>> {
        let shared = Arc::new(Shared { queue: Mutex::default(), more: Condvar::new(), jobs_max });
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
        if queue.jobs.len() >= self.shared.jobs_max {
            return Err(NotDone::Busy);
        }
        queue.jobs.push_back(job);
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
        while let Some(job) = self.next() {
            run(job);
            free_now();
        }
    }

    /// The next job; `None` when the pool is dropped and what was taken in is done.
    fn next(&self) -> Option<Job> {
        let mut queue = self.queue();
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                return Some(job);
            }
            if queue.closed {
                return None;
            }
            queue = self.more.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Runs a job in place; a panic is told to whoever waits, by the job's own end.
fn run(job: Job) {
    if catch_unwind(AssertUnwindSafe(|| job(&SystemFs))).is_err() {
        tracing::error!("a file operation panicked");
    }
}
