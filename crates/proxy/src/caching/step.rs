//! The steps of a request that the cache takes part in.
//!
//! Each step has the data that it needs, and its work yields the next one. Invariant: when another step than
//! Rest and Done begins, no byte has been sent to the client. In the row of a step, an `x` marks each step
//! that may come next. The loop of the steps asserts the table as it stands here, and so does each test of a
//! proxy.
//!
//! | step | LookUp | Slices | Join | Follow | Fetch | Plain | Rest | Done |
//! | --- | --- | --- | --- | --- | --- | --- | --- | --- |
//! | LookUp | x | x | x | - | - | x | x | x |
//! | Slices | x | - | x | - | - | x | x | x |
//! | Join | - | - | - | x | x | x | - | x |
//! | Follow | x | - | - | - | x | x | x | x |
//! | Fetch | x | - | - | - | - | - | x | x |
//! | Plain | - | - | - | - | - | - | x | x |
//! | Rest | - | - | - | - | - | - | - | x |
//! | Done | - | - | - | - | - | - | - | - |

use super::Rest;
use crate::cache::fetch::{Follower, Lead};
use crate::exchange::{Outcome, OutcomeEnding};

/// The next step of a request.
pub(super) enum Step {
    /// Look it up, and answer with a stored object that needs no validation.
    LookUp,
    /// Answer a range from slices.
    Slices,
    /// Join the fetch of another request, or start one.
    Join,
    /// Answer with the response that another request fetches.
    Follow(Follower),
    /// Fetch the response for the client and the cache.
    Fetch(Lead),
    /// Forward the request as it is, for its client only.
    Plain,
    /// Get the part of the response that the client lacks from an origin.
    Rest { sent: Outcome, rest: Box<Rest>, keep: bool },
    /// The exchange has ended.
    Done(Outcome),
}

impl Step {
    /// Returns the step after an exchange, or after a response from the cache was sent.
    pub(super) fn after(mut outcome: Outcome) -> Step {
        match std::mem::replace(&mut outcome.ending, OutcomeEnding::Aborted) {
            OutcomeEnding::Repeat => Step::LookUp,
            OutcomeEnding::Unfinished { rest, keep } => Step::Rest { sent: outcome, rest, keep },
            ending => Step::Done(Outcome { ending, ..outcome }),
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Step::LookUp => "LookUp",
            Step::Slices => "Slices",
            Step::Join => "Join",
            Step::Follow(_) => "Follow",
            Step::Fetch(_) => "Fetch",
            Step::Plain => "Plain",
            Step::Rest { .. } => "Rest",
            Step::Done(_) => "Done",
        }
    }
}

/// Whether the documented table has a mark for `next` after a step.
pub(super) fn is_documented(step: &str, next: &str) -> bool {
    let mut rows =
        include_str!("step.rs").lines().filter_map(|line| line.strip_prefix("//! | ")?.strip_suffix(" |"));
    let column = rows.next().and_then(|names| names.split(" | ").position(|name| name == next));
    let row = rows.find(|row| row.split(" | ").next() == Some(step));
    row.zip(column).is_some_and(|(row, column)| row.split(" | ").nth(column) == Some("x"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_leads_to_the_end_and_none_leads_from_it() {
        let steps = ["LookUp", "Slices", "Join", "Follow", "Fetch", "Plain", "Rest"];
        assert!(steps.iter().all(|step| is_documented(step, "Done")));
        assert!(steps.iter().all(|step| !is_documented("Done", step)));
        assert!(is_documented("Slices", "LookUp") && !is_documented("Plain", "LookUp"));
    }
}
