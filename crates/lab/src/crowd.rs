//! The users of one thread, as tasks for whatever runs them: an engine or the simulator.
//!
//! It starts no thread. What must hold: with the same workload, the same number of threads and the same chance,
//! users ask for the same.

use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::{Io, LocalFuture, Stop};

use crate::course::{self, Course, Shared};
use crate::failure::Failure;
use crate::http::{self, HttpUser, Uploaded};
use crate::keeping::Keeping;
use crate::measure::Measure;
use crate::noted::Noted;
use crate::outcome::Outcome;
use crate::user::live;
use crate::workload::{Pace, Workload};

/// What all threads of a trial have in common.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) workload: Arc<Workload>,
    pub(crate) plan: Arc<http::Plan>,
    pub(crate) shared: Arc<Shared>,
}

impl Common {
    /// Makes ready what users send; `run` is a number that no other run has.
    ///
    /// # Errors
    /// What cannot be asked for, or compared with.
    pub(crate) fn new(workload: &Workload, stop: &Stop, noted: &Arc<Noted>, run: u64) -> io::Result<Common> {
        Ok(Common {
            plan: Arc::new(http::Plan::new(workload, run)?),
            shared: Shared::new(workload.users, workload.end, stop, noted),
            workload: Arc::new(workload.clone()),
        })
    }
}

/// The users of one thread.
pub struct Crowd {
    common: Common,
    course: Rc<Course>,
    uploaded: Uploaded,
}

impl Crowd {
    /// All users of a workload on one thread that is driven from outside: its tasks are to be run until all
    /// have ended. They end at the end of the workload, or when `stop` is ordered.
    ///
    /// # Errors
    /// What cannot be asked for, or compared with.
    pub fn gather(workload: &Workload, io: &Io, stop: &Stop) -> io::Result<(Crowd, Vec<LocalFuture>)> {
        let common = Common::new(workload, stop, &Arc::default(), 0)?;
        Crowd::of(&common, io, 0, 1)
    }

    /// Those of a thread, of so many.
    pub(crate) fn of(
        common: &Common,
        io: &Io,
        thread: usize,
        threads: usize,
    ) -> io::Result<(Crowd, Vec<LocalFuture>)> {
        let workload = &common.workload;
        let users = share(workload.users, thread, threads);
        let pace = match workload.pace {
            Pace::Open { per_second } => {
                Pace::Open { per_second: per_second * users.len() as f64 / workload.users as f64 }
            }
            closed @ Pace::Closed { .. } => closed,
        };
        let plan = course::Plan { pace, end: workload.end, warm_up: workload.warm_up };
        let course = Course::new(io, &common.shared, thread, plan, Measure::new(1)?);
        let crowd = Crowd { common: common.clone(), course, uploaded: Rc::new(RefCell::default()) };
        let tasks = crowd.tasks(io, thread, users);
        Ok((crowd, tasks))
    }

    fn tasks(&self, io: &Io, thread: usize, users: Range<usize>) -> Vec<LocalFuture> {
        let (workload, course) = (&self.common.workload, &self.course);
        let keeping = workload.keep.clone().map(|folder| Rc::new(Keeping::new(folder, thread)));
        let mut tasks: Vec<LocalFuture> = vec![Box::pin(Rc::clone(course).keep_time())];
        tasks.extend(users.map(|number| {
            let user = HttpUser::new(io, &self.common.plan, number as u64, &self.uploaded);
            Box::pin(live(user, Rc::clone(course), keeping.clone(), workload.timeout)) as LocalFuture
        }));
        tasks
    }

    /// Fetches uploads that are to be verified; a future of its own, for after the end.
    pub(crate) fn verifying(&self, io: &Io) -> LocalFuture {
        let mut user = HttpUser::new(io, &self.common.plan, 0, &self.uploaded);
        let (targets, course) = (self.uploaded.take(), Rc::clone(&self.course));
        let (deadline, timeout) = (io.deadline(), self.common.workload.timeout);
        Box::pin(async move {
            for target in targets {
                deadline.after(timeout);
                let verified = deadline.within(user.verify_upload(&target)).await;
                match verified.unwrap_or(Err(Failure::Timeout)) {
                    Ok(()) => course.measure().verified += 1,
                    Err(failure) => course.measure().wrong(&failure),
                }
            }
        })
    }

    /// Whether there is anything to be verified after the end.
    pub(crate) fn has_uploads(&self) -> bool {
        !self.uploaded.borrow().is_empty()
    }

    /// What was counted, and how many requests were never answered.
    pub(crate) fn counted(self) -> (Option<Measure>, u64) {
        let under_way = self.course.under_way();
        (Rc::into_inner(self.course).map(Course::into_measure), under_way)
    }

    /// The figures, when all tasks have ended.
    ///
    /// # Errors
    /// Why there was no start.
    pub fn outcome(self) -> Result<Outcome, String> {
        if let Some(why) = self.common.shared.barrier.given_up() {
            return Err(why);
        }
        let workload = Arc::clone(&self.common.workload);
        match self.counted() {
            (Some(measure), unanswered) => Ok(Outcome::new(&workload, &measure, 0.0, unanswered)),
            (None, _) => Err("its users have not ended".to_owned()),
        }
    }
}

/// Which of so many users a thread has.
fn share(users: usize, thread: usize, threads: usize) -> Range<usize> {
    users * thread / threads..users * (thread + 1) / threads
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_share_all_users_evenly_and_each_user_once() {
        for (users, threads) in [(1, 1), (64, 1), (64, 3), (3, 3), (10, 4)] {
            let shares: Vec<Range<usize>> =
                (0..threads).map(|thread| share(users, thread, threads)).collect();
            let all: Vec<usize> = shares.iter().cloned().flatten().collect();
            assert_eq!(all, (0..users).collect::<Vec<_>>());
            let (least, most) = (shares.iter().map(Range::len).min(), shares.iter().map(Range::len).max());
            assert!(most.unwrap() - least.unwrap() <= 1, "{shares:?}");
        }
    }
}
