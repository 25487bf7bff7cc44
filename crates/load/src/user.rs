//! The life cycle of one user: get ready, wait for all others, send requests until the end, leave.
//!
//! Protocols are behind [`Protocol`], and nothing here depends on one. Invariants: a request that exceeds
//! its timeout is an error and is cancelled; after an error a user continues, but not at once.

use std::rc::Rc;
use std::time::Duration;

use crate::course::Course;
use crate::failure::Failure;
use crate::keeping::Keeping;
use crate::limits::{LEAVE_TIME_MAX, PAUSE_AFTER_ERROR};
use crate::measure::{CorrectResponse, UserTime};

/// A protocol, and the requests of a user.
pub(crate) trait Protocol {
    /// Connects, logs in, and downloads reference bodies: everything that is not measured.
    async fn get_ready(&mut self) -> Result<(), Failure>;

    /// Sends one request, and receives the whole response. `request` counts this user's requests from zero.
    /// Dropping the future closes the connection in use.
    async fn ask(&mut self, request: u64) -> Result<CorrectResponse, Failure>;

    /// Downloads an upload, and compares it with the bytes sent.
    async fn verify_upload(&mut self, target: &str) -> Result<(), Failure>;

    /// Closes connections cleanly.
    async fn leave(self);
}

/// Runs a user until the end of the trial.
pub(crate) async fn live<P: Protocol>(
    mut protocol: P,
    number: u64,
    course: Rc<Course>,
    keeping: Option<Rc<Keeping>>,
    timeout: Duration,
) {
    let barrier = &course.shared.barrier;
    if let Err(failure) = protocol.get_ready().await {
        return barrier.give_up(format!("a user could not get ready: {failure}"));
    }
    barrier.arrive();
    if !barrier.started(&course.io).await {
        return;
    }
    let (deadline, mut request, mut free_since) = (course.io.deadline(), 0, course.io.now());
    let (mut counts, mut ended) = (UserTime { user: number, ..UserTime::default() }, free_since);
    while let Some(start) = course.next(request, free_since).await {
        deadline.after(timeout);
        let asked = deadline.within(protocol.ask(request)).await.unwrap_or(Err(Failure::Timeout));
        request += 1;
        course.done(&start, &asked);
        counts.count(&asked);
        free_since = course.io.now();
        ended = free_since;
        let is_wrong = asked.is_err();
        if !settle(asked, &course, keeping.as_deref()).await {
            break;
        }
        if is_wrong {
            // The pause after an error is not think time. Therefore errors appear as a deficit in Little's
            // law.
            free_since = course.io.now();
        }
    }
    course.user_ended(counts, ended);
    deadline.after(LEAVE_TIME_MAX);
    // After the deadline the user leaves without a clean close.
    let _ = deadline.within(protocol.leave()).await;
}

/// Does the work after a response that is not measured. Returns whether to continue.
async fn settle(asked: Result<CorrectResponse, Failure>, course: &Course, keeping: Option<&Keeping>) -> bool {
    match (asked, keeping) {
        (Ok(CorrectResponse { kept: Some((name, body)), .. }), Some(keeping)) => {
            if let Err(error) = keeping.keep(&course.io, &name, body).await {
                course.measure().failed_check(&Failure::Keeping(error));
            }
            true
        }
        (Ok(_), _) => true,
        (Err(_), _) => course.sleep(PAUSE_AFTER_ERROR).await.is_some(),
    }
}
