//! The users of one thread, as tasks for whatever runs them: an engine or the simulator.
//!
//! It starts no thread. What must hold: with the same workload, the same number of threads and the same
//! chance, users ask for the same.

use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_io::{Io, LocalFuture, Stop};

use crate::load::classic::ClassicUser;
use crate::load::course::{self, Course, Shared};
use crate::load::failure::Failure;
use crate::load::ftp::FtpUser;
use crate::load::http::HttpUser;
use crate::load::keeping::Keeping;
use crate::load::measure::Measure;
use crate::load::noted::Noted;
use crate::load::outcome::Outcome;
use crate::load::place::Scheme;
use crate::load::plan::{Plan, Uploaded};
use crate::load::ten::{self, TenUser};
use crate::load::user::{Protocol, live};
use crate::load::workload::{Ask, Pace, Workload};

/// Who the users are, and what they need.
#[derive(Clone)]
enum Users {
    Http(Arc<Plan>),
    Ftp(Arc<Plan>),
    Classic(Arc<Plan>),
    Ten(Arc<ten::Plan>),
}

impl Users {
    fn new(workload: &Workload, run: u64) -> io::Result<Users> {
        if let Ask::Ten { mix, bytes } = workload.ask {
            return Ok(Users::Ten(Arc::new(ten::Plan::new(workload, mix, bytes, run)?)));
        }
        let plan = Arc::new(Plan::new(workload, run)?);
        Ok(match workload.place.scheme {
            Scheme::Http => Users::Http(plan),
            Scheme::Ftp => Users::Ftp(plan),
            Scheme::Classic => Users::Classic(plan),
        })
    }
}

/// What all threads of a trial have in common.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) workload: Arc<Workload>,
    users: Users,
    pub(crate) shared: Arc<Shared>,
}

impl Common {
    /// Makes ready what users send; `run` is a number that no other run has.
    ///
    /// # Errors
    /// What cannot be asked for, or compared with.
    pub(crate) fn new(workload: &Workload, stop: &Stop, noted: &Arc<Noted>, run: u64) -> io::Result<Common> {
        Ok(Common {
            users: Users::new(workload, run)?,
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
        // Threads take turns, so that all of their starts together are in even steps.
        let (pace, first_after) = match workload.pace {
            Pace::Open { per_second } => (
                Pace::Open { per_second: per_second * users.len() as f64 / workload.users as f64 },
                Duration::from_secs_f64(thread as f64 / per_second),
            ),
            closed @ Pace::Closed { .. } => (closed, Duration::ZERO),
        };
        let plan = course::Plan { pace, first_after, end: workload.end, warm_up: workload.warm_up };
        let course = Course::new(io, &common.shared, thread, plan, Measure::new(workload.ask.kinds().len())?);
        let crowd = Crowd { common: common.clone(), course, uploaded: Uploaded::default() };
        let tasks = crowd.tasks(io, thread, users);
        Ok((crowd, tasks))
    }

    fn tasks(&self, io: &Io, thread: usize, users: Range<usize>) -> Vec<LocalFuture> {
        let keep = self.common.workload.keep.clone();
        let keeping = keep.map(|folder| Rc::new(Keeping::new(folder, thread)));
        let mut tasks: Vec<LocalFuture> = vec![Box::pin(Rc::clone(&self.course).keep_time())];
        tasks.extend(users.map(|number| {
            let number = number as u64;
            match &self.common.users {
                Users::Http(plan) => self.life(HttpUser::new(io, plan, number, &self.uploaded), &keeping),
                Users::Ftp(plan) => self.life(FtpUser::new(io, plan, number, &self.uploaded), &keeping),
                Users::Classic(plan) => self.life(ClassicUser::new(io, plan, number), &keeping),
                Users::Ten(plan) => self.life(TenUser::new(io, plan, number), &keeping),
            }
        }));
        tasks
    }

    fn life(&self, user: impl Protocol + 'static, keeping: &Option<Rc<Keeping>>) -> LocalFuture {
        Box::pin(live(user, Rc::clone(&self.course), keeping.clone(), self.common.workload.timeout))
    }

    /// Uploads that are to be verified after the end.
    pub(crate) fn to_verify(&self) -> Vec<String> {
        self.uploaded.take()
    }

    /// Fetches uploads and verifies them; a future of its own, for after the end.
    pub(crate) fn verifying(&self, io: &Io, targets: Vec<String>) -> LocalFuture {
        let none = Uploaded::default();
        match &self.common.users {
            Users::Http(plan) => Box::pin(self.verify(HttpUser::new(io, plan, 0, &none), io, targets)),
            Users::Ftp(plan) => Box::pin(self.verify(FtpUser::new(io, plan, 0, &none), io, targets)),
            // There are no uploads; or what was uploaded was downloaded in the same life.
            Users::Classic(_) | Users::Ten(_) => Box::pin(std::future::ready(())),
        }
    }

    fn verify<P: Protocol>(
        &self,
        mut user: P,
        io: &Io,
        targets: Vec<String>,
    ) -> impl Future<Output = ()> + use<P> {
        let (course, deadline, timeout) =
            (Rc::clone(&self.course), io.deadline(), self.common.workload.timeout);
        async move {
            for target in targets {
                deadline.after(timeout);
                let verified = deadline.within(user.verify_upload(&target)).await;
                match verified.unwrap_or(Err(Failure::Timeout)) {
                    Ok(()) => course.measure().verified += 1,
                    Err(failure) => course.measure().wrong(&failure),
                }
            }
            user.leave().await;
        }
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
