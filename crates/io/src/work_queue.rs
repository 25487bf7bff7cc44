//! Jobs that wait for workers: owners take turns, and long jobs return to the queue after each slice.
//!
//! It has no threads: an engine runs the jobs. Invariants: an owner never has more workers than
//! [`WorkBounds::workers_per_owner`]. With [`WorkBounds::jobs_per_owner_max`] jobs waiting it is
//! refused, and others are not. The server's own jobs may use all workers that are free.
//!
//! Design: docs/design/fairness.md.

use std::collections::BTreeMap;

use crate::fair_queue::FairQueue;
use crate::job::{Job, JobOwner, Progress};
use crate::offload::NotDone;

/// The bounds of a queue of jobs.
#[derive(Clone, Copy, Debug)]
pub struct WorkBounds {
    /// Jobs that wait, of all owners. Beyond this, only an owner without a waiting job may add one.
    pub jobs_max: usize,
    /// Of these, the jobs of one owner at most. The server itself has no such bound.
    pub jobs_per_owner_max: usize,
    /// Workers that do the jobs of one owner at a time.
    pub workers_per_owner: usize,
    /// Jobs of one owner that are beyond their first slice. Each of these holds memory between its slices.
    pub resumed_per_owner_max: usize,
    /// The same for all owners together.
    pub resumed_max: usize,
}

/// The stage of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No slice is done.
    New,
    /// One slice is done; the others wait until fewer jobs are resumed.
    Begun,
    /// Its slices are being resumed: it counts towards the bounds.
    Resumed,
}

struct Waiting {
    job: Job,
    stage: Stage,
}

/// The workers and resumed jobs of an owner.
#[derive(Clone, Copy, Default)]
struct Share {
    workers: usize,
    resumed: usize,
}

/// A job that a worker has taken. The worker runs its next slice and then calls
/// [`WorkQueue::finish_slice`].
pub struct Taken {
    /// The job.
    pub job: Job,
    stage: Stage,
}

/// A queue of jobs, by owner.
pub struct WorkQueue {
    bounds: WorkBounds,
    waiting: FairQueue<JobOwner, Waiting>,
    shares: BTreeMap<JobOwner, Share>,
    resumed: usize,
    taken: usize,
}

impl WorkQueue {
    /// Creates an empty queue.
    #[must_use]
    pub fn new(bounds: WorkBounds) -> WorkQueue {
        let waiting = FairQueue::new(bounds.jobs_max);
        WorkQueue { bounds, waiting, shares: BTreeMap::new(), resumed: 0, taken: 0 }
    }

    /// Adds a job.
    ///
    /// # Errors
    /// [`NotDone::Busy`] if too many of its owner wait.
    pub fn add(&mut self, job: Job) -> Result<(), NotDone> {
        let owner = job.owner();
        if !self.has_room(owner) {
            // Removes abandoned jobs of this owner only, unless the whole queue is full: a refusal must
            // cost little.
            self.waiting.retain_of(&owner, is_kept);
            if self.waiting.is_full() {
                self.waiting.retain(|_, waiting| is_kept(waiting));
            }
            if !self.has_room(owner) {
                return Err(NotDone::Busy);
            }
        }
        self.waiting.append(owner, Waiting { job, stage: Stage::New });
        Ok(())
    }

    fn has_room(&self, owner: JobOwner) -> bool {
        let own = self.waiting.len_of(&owner);
        let is_within_share = owner == JobOwner::NONE || own < self.bounds.jobs_per_owner_max;
        is_within_share && (own == 0 || !self.waiting.is_full())
    }

    /// Takes the next job for a worker. Jobs whose callers are gone are dropped on the way.
    pub fn take(&mut self) -> Option<Taken> {
        let WorkQueue { bounds, waiting, shares, resumed, taken } = self;
        loop {
            let (owner, Waiting { job, stage }) =
                waiting.pop(|owner| readiness(bounds, shares, *resumed, *owner))?;
            if stage != Stage::Resumed && job.is_abandoned() {
                continue;
            }
            let is_resumed_now = stage == Stage::Begun;
            let stage = if is_resumed_now { Stage::Resumed } else { stage };
            change(shares, owner, |share| {
                share.workers += 1;
                share.resumed += usize::from(is_resumed_now);
            });
            *resumed += usize::from(is_resumed_now);
            *taken += 1;
            return Some(Taken { job, stage });
        }
    }

    /// Whether [`WorkQueue::take`] would return a job.
    #[must_use]
    pub fn has_ready(&self) -> bool {
        let WorkQueue { bounds, waiting, shares, resumed, .. } = self;
        waiting.has_ready(|owner| readiness(bounds, shares, *resumed, *owner))
    }

    /// Ends a slice of a taken job. A job with more slices is queued again, behind all others of its
    /// owner. Returns a finished job, which the caller must drop without holding a lock.
    pub fn finish_slice(&mut self, taken: Taken, progress: Progress) -> Option<Job> {
        let Taken { job, stage } = taken;
        let owner = job.owner();
        self.taken -= 1;
        let is_over = progress == Progress::Finished;
        let leaves = is_over && stage == Stage::Resumed;
        self.resumed -= usize::from(leaves);
        change(&mut self.shares, owner, |share| {
            share.workers -= 1;
            share.resumed -= usize::from(leaves);
        });
        if is_over {
            return Some(job);
        }
        let stage = if stage == Stage::New { Stage::Begun } else { stage };
        self.waiting.append(owner, Waiting { job, stage });
        None
    }

    /// Whether no job waits and none is taken.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.taken == 0
    }
}

/// Whether a job stays in a full queue. It does if its caller waits. A resumed job stays too: it may
/// hold much memory, so a worker must drop it, without the lock.
fn is_kept(waiting: &Waiting) -> bool {
    waiting.stage == Stage::Resumed || !waiting.job.is_abandoned()
}

/// Returns the test for the jobs of an owner that a worker may take, or `None` if the owner has its
/// maximum of workers.
fn readiness(
    bounds: &WorkBounds,
    shares: &BTreeMap<JobOwner, Share>,
    resumed: usize,
    owner: JobOwner,
) -> Option<impl Fn(&Waiting) -> bool + use<>> {
    let Share { workers, resumed: own } = shares.get(&owner).copied().unwrap_or_default();
    let has_worker = owner == JobOwner::NONE || workers < bounds.workers_per_owner;
    let may_resume = own < bounds.resumed_per_owner_max && resumed < bounds.resumed_max;
    has_worker.then_some(move |waiting: &Waiting| waiting.stage != Stage::Begun || may_resume)
}

/// Changes an owner's share. An empty share is removed from the map.
fn change(shares: &mut BTreeMap<JobOwner, Share>, owner: JobOwner, change: impl FnOnce(&mut Share)) {
    let share = shares.entry(owner).or_default();
    change(share);
    if share.workers == 0 && share.resumed == 0 {
        shares.remove(&owner);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::file::Fs;
    use crate::job::Task;
    use crate::sim::{Faults, Sim};

    const BOUNDS: WorkBounds = WorkBounds {
        jobs_max: 8,
        jobs_per_owner_max: 3,
        workers_per_owner: 1,
        resumed_per_owner_max: 1,
        resumed_max: 2,
    };

    /// A job of this many slices.
    struct Slices(usize, Arc<AtomicBool>);

    impl Task for Slices {
        fn run_slice(&mut self, _: &dyn Fs) -> Progress {
            self.0 -= 1;
            if self.0 == 0 { Progress::Finished } else { Progress::Unfinished }
        }

        fn is_abandoned(&self) -> bool {
            self.1.load(Ordering::Relaxed)
        }
    }

    fn job(owner: i64, slices: usize) -> Job {
        Job::new(JobOwner::account(owner), Slices(slices, Arc::default()))
    }

    /// Takes a job, runs a slice, and returns the job's owner.
    fn run_slice(queue: &mut WorkQueue) -> Option<JobOwner> {
        let mut taken = queue.take()?;
        let disk = Arc::clone(Sim::new(0, Faults::none()).host("one").disk());
        let progress = taken.job.run_slice(&*disk);
        let owner = taken.job.owner();
        queue.finish_slice(taken, progress);
        Some(owner)
    }

    #[test]
    fn a_long_job_leaves_other_owners_their_turns_after_each_slice() {
        let mut queue = WorkQueue::new(BOUNDS);
        queue.add(job(1, 3)).unwrap();
        queue.add(job(2, 1)).unwrap();
        queue.add(job(3, 2)).unwrap();
        let owners: Vec<_> = std::iter::from_fn(|| run_slice(&mut queue)).collect();
        assert_eq!(owners, [1, 2, 3, 1, 3, 1].map(JobOwner::account));
        assert!(queue.is_idle() && queue.shares.is_empty() && queue.resumed == 0);
    }

    #[test]
    fn an_owner_has_so_many_workers_and_others_have_the_rest() {
        let mut queue = WorkQueue::new(BOUNDS);
        queue.add(job(1, 1)).unwrap();
        queue.add(job(1, 1)).unwrap();
        let first = queue.take().unwrap();
        assert!(!queue.has_ready() && queue.take().is_none(), "its second job waits for its first");
        queue.add(job(2, 1)).unwrap();
        assert_eq!(queue.take().unwrap().job.owner(), JobOwner::account(2));
        assert!(queue.finish_slice(first, Progress::Finished).is_some());
        assert!(queue.has_ready());
    }

    #[test]
    fn an_owner_with_many_jobs_waiting_is_refused_and_others_are_not() {
        let mut queue = WorkQueue::new(BOUNDS);
        for owner in [1, 2, 3] {
            let added = (0..4).filter(|_| queue.add(job(owner, 1)).is_ok()).count();
            assert_eq!(added, if owner == 3 { 2 } else { 3 }, "eight fit in all");
        }
        assert!(queue.add(job(4, 1)).is_ok(), "none of its jobs waits");
        assert_eq!(queue.add(job(4, 1)), Err(NotDone::Busy));
    }

    #[test]
    fn jobs_without_a_caller_make_room() {
        let mut queue = WorkQueue::new(BOUNDS);
        let gone = Arc::new(AtomicBool::new(false));
        for _ in 0..3 {
            queue.add(Job::new(JobOwner::account(1), Slices(1, Arc::clone(&gone)))).unwrap();
        }
        assert_eq!(queue.add(job(1, 1)), Err(NotDone::Busy));
        queue.add(job(2, 1)).unwrap();
        gone.store(true, Ordering::Relaxed);
        queue.add(job(1, 1)).unwrap();
        assert_eq!(queue.waiting.len_of(&JobOwner::account(1)), 1);
        queue.add(Job::new(JobOwner::account(3), Slices(1, gone))).unwrap();
        let owners: Vec<_> = std::iter::from_fn(|| run_slice(&mut queue)).collect();
        assert_eq!(owners, [2, 1].map(JobOwner::account), "none is done that nobody waits for");
    }

    #[test]
    fn short_jobs_are_done_while_long_ones_of_the_same_owner_wait_to_be_resumed() {
        let mut queue = WorkQueue::new(BOUNDS);
        queue.add(job(1, 3)).unwrap();
        queue.add(job(1, 3)).unwrap();
        queue.add(job(1, 1)).unwrap();
        for _ in 0..3 {
            run_slice(&mut queue);
        }
        assert_eq!(
            (queue.waiting.len_of(&JobOwner::account(1)), queue.resumed),
            (2, 0),
            "the short one is done"
        );
        run_slice(&mut queue);
        run_slice(&mut queue);
        assert_eq!(
            (queue.waiting.len_of(&JobOwner::account(1)), queue.resumed),
            (1, 0),
            "one after the other"
        );
        run_slice(&mut queue);
        run_slice(&mut queue);
        assert!(queue.is_idle() && queue.shares.is_empty());
    }
}
