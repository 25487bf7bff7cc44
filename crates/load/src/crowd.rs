//! The users of one thread, as tasks for an engine or the simulator.
//!
//! It starts no thread. Invariant: with the same workload, number of threads and seed, users send the same
//! requests.

use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_io::{Io, LocalFuture, Stop};

use crate::classic::ClassicUser;
use crate::course::{self, Course, ReadClock, Shared};
use crate::failure::Failure;
use crate::ftp::FtpUser;
use crate::http::HttpUser;
use crate::keeping::Keeping;
use crate::measure::Measure;
use crate::outcome::Outcome;
use crate::plan::{Plan, Uploaded};
use crate::progress::ProgressReporter;
use crate::target::Scheme;
use crate::ten::{self, TenUser};
use crate::user::{Protocol, live};
use crate::workload::{Pace, Requests, Workload};

/// The users' protocol, and the data that they share.
#[derive(Clone)]
enum Users {
    Http(Arc<Plan>),
    Ftp(Arc<Plan>),
    Classic(Arc<Plan>),
    Ten(Arc<ten::Plan>),
}

impl Users {
    fn new(workload: &Workload, run: u64) -> io::Result<Users> {
        if let Requests::Ten { mix, bytes } = workload.ask {
            return Ok(Users::Ten(Arc::new(ten::Plan::new(workload, mix, bytes, run)?)));
        }
        let plan = Arc::new(Plan::new(workload, run)?);
        Ok(match workload.place.scheme {
            Scheme::Http | Scheme::Https => Users::Http(plan),
            Scheme::Ftp | Scheme::FtpOverTls(_) => Users::Ftp(plan),
            Scheme::Classic => Users::Classic(plan),
        })
    }
}

/// The data shared by all threads of a trial.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) workload: Arc<Workload>,
    users: Users,
    pub(crate) shared: Arc<Shared>,
}

impl Common {
    /// Prepares the users' requests. `run` must be unique to the run.
    ///
    /// # Errors
    /// An error if a target is invalid, or a reference file cannot be read.
    pub(crate) fn new(
        workload: &Workload,
        stop: &Stop,
        progress: &Arc<ProgressReporter>,
        read_clock: ReadClock,
        run: u64,
    ) -> io::Result<Common> {
        Ok(Common {
            users: Users::new(workload, run)?,
            shared: Shared::new(workload.users, workload.end, stop, progress, read_clock),
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
    /// Returns all users of a workload on one thread, which the caller drives: it must run the tasks until
    /// all have ended. They end at the end of the workload, or when `stop` is ordered.
    ///
    /// # Errors
    /// An error if a target is invalid, or a reference file cannot be read.
    pub fn gather(workload: &Workload, io: &Io, stop: &Stop) -> io::Result<(Crowd, Vec<LocalFuture>)> {
        let common = Common::new(workload, stop, &Arc::default(), Io::now, 0)?;
        Crowd::of(&common, io, 0, 1)
    }

    /// Returns the users of thread number `thread` of `threads`.
    pub(crate) fn of(
        common: &Common,
        io: &Io,
        thread: usize,
        threads: usize,
    ) -> io::Result<(Crowd, Vec<LocalFuture>)> {
        let workload = &common.workload;
        let users = share(workload.users, thread, threads);
        // Staggers the threads, so that the starts of all threads together are evenly spaced.
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
                Users::Http(plan) => {
                    self.life(HttpUser::new(io, plan, number, &self.uploaded), number, &keeping)
                }
                Users::Ftp(plan) => {
                    self.life(FtpUser::new(io, plan, number, &self.uploaded), number, &keeping)
                }
                Users::Classic(plan) => self.life(ClassicUser::new(io, plan, number), number, &keeping),
                Users::Ten(plan) => self.life(TenUser::new(io, plan, number), number, &keeping),
            }
        }));
        tasks
    }

    fn life(&self, user: impl Protocol + 'static, number: u64, keeping: &Option<Rc<Keeping>>) -> LocalFuture {
        let (course, timeout) = (Rc::clone(&self.course), self.common.workload.timeout);
        Box::pin(live(user, number, course, keeping.clone(), timeout))
    }

    /// Returns the targets of the uploads to verify after the end.
    pub(crate) fn to_verify(&self) -> Vec<String> {
        self.uploaded.take()
    }

    /// Downloads and verifies uploads. The future runs after the end.
    pub(crate) fn verifying(&self, io: &Io, targets: Vec<String>) -> LocalFuture {
        let none = Uploaded::default();
        match &self.common.users {
            Users::Http(plan) => Box::pin(self.verify(HttpUser::new(io, plan, 0, &none), io, targets)),
            Users::Ftp(plan) => Box::pin(self.verify(FtpUser::new(io, plan, 0, &none), io, targets)),
            // Classic has no uploads; a mix downloads its uploads within the same life.
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
                    Err(failure) => course.measure().failed_check(&failure),
                }
            }
            user.leave().await;
        }
    }

    /// Returns the counts, and the number of requests without a response.
    pub(crate) fn counted(self) -> (Option<Measure>, u64) {
        let in_progress = self.course.in_progress();
        (Rc::into_inner(self.course).map(Course::into_measure), in_progress)
    }

    /// Returns the figures after all tasks have ended.
    ///
    /// # Errors
    /// Returns the reason why there was no start.
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

/// Returns the range of users that a thread has.
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
