//! One user's life: get ready, wait for all others, ask until it is over, leave.
//!
//! Protocols are behind [`Protocol`]; nothing of them is here. What must hold: a request that takes too
//! long is an error and is given up; after an error a user goes on, but not at once.

use std::rc::Rc;
use std::time::Duration;

use crate::load::course::Course;
use crate::load::failure::Failure;
use crate::load::keeping::Keeping;
use crate::load::limits::{LEAVE_TIME_MAX, PAUSE_AFTER_ERROR};
use crate::load::measure::Right;

/// How a user asks: a protocol, and what is asked for.
pub(crate) trait Protocol {
    /// Connects, logs in, and fetches what bodies are compared with: everything that is not measured.
    async fn get_ready(&mut self) -> Result<(), Failure>;

    /// Asks once, and receives the whole answer. `request` counts this user's from zero. When the future is
    /// dropped, the connection that it was using is.
    async fn ask(&mut self, request: u64) -> Result<Right, Failure>;

    /// Fetches what was uploaded, and compares it with what was sent.
    async fn verify_upload(&mut self, target: &str) -> Result<(), Failure>;

    /// Ends what is open, as a client that is done does.
    async fn leave(self);
}

/// Lives until it is over.
pub(crate) async fn live<P: Protocol>(
    mut protocol: P,
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
    while let Some(start) = course.next(request, free_since).await {
        deadline.after(timeout);
        let asked = deadline.within(protocol.ask(request)).await.unwrap_or(Err(Failure::Timeout));
        request += 1;
        course.done(&start, &asked);
        free_since = course.io.now();
        let is_wrong = asked.is_err();
        if !settle(asked, &course, keeping.as_deref()).await {
            break;
        }
        if is_wrong {
            // The pause is no think time: what errors cost is missing from Little's law.
            free_since = course.io.now();
        }
    }
    deadline.after(LEAVE_TIME_MAX);
    // Who is kept waiting goes anyway.
    let _ = deadline.within(protocol.leave()).await;
}

/// What comes after an answer and is not measured; whether to go on.
async fn settle(asked: Result<Right, Failure>, course: &Course, keeping: Option<&Keeping>) -> bool {
    match (asked, keeping) {
        (Ok(Right { kept: Some((name, body)), .. }), Some(keeping)) => {
            if let Err(error) = keeping.keep(&course.io, &name, body).await {
                course.measure().wrong(&Failure::Keeping(error));
            }
            true
        }
        (Ok(_), _) => true,
        (Err(_), _) => course.sleep(PAUSE_AFTER_ERROR).await.is_some(),
    }
}
