//! The results of several files or folders that a command handles in turn.
//!
//! It handles none of them. Invariants: a failure is reported at once and does not stop the rest. It makes
//! the command fail in the end. With `--json`, one document reports everything.

use serde::Serialize;

use crate::AlreadyReported;
use crate::failure::Failure;
use crate::output::print_json;
use crate::progress::Progress;

/// The failures so far.
#[derive(Default)]
pub(crate) struct Failures {
    /// Each failed item with its reason.
    pub(crate) failed: Vec<(String, String)>,
}

impl Failures {
    /// Records a failure; returns it if everything else would fail in the same way.
    pub(crate) fn failed(
        &mut self,
        progress: &Progress,
        subject: String,
        failure: Failure,
    ) -> anyhow::Result<()> {
        if failure.affects_all_requests() {
            return Err(anyhow::Error::new(failure).context(subject));
        }
        self.record(progress, subject, failure.to_string());
        Ok(())
    }

    /// Reports and records why something was not done.
    pub(crate) fn record(&mut self, progress: &Progress, subject: String, why: String) {
        progress.print_line(&format!("plimsoll: {subject}: {why}"));
        self.failed.push((subject, why));
    }

    /// Returns an error if anything failed.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        match self.failed.len() {
            0 => Ok(()),
            1 => Err(AlreadyReported.into()),
            many => anyhow::bail!("{many} things were not done; they are named above"),
        }
    }
}

/// The results of several paths that a command handles alike, for a JSON document.
pub(crate) struct PathResults {
    json: bool,
    failures: Failures,
    done: Vec<Done>,
    fatal: Option<anyhow::Error>,
}

/// A completed operation on a path, perhaps with a second one, or on a share.
#[derive(Serialize)]
pub(crate) struct Done {
    pub(crate) path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) to: Option<String>,
    /// The accounts whose shares ended with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) unshared_with: Vec<String>,
}

impl Done {
    /// An operation on one path.
    pub(crate) fn of(path: String) -> Done {
        Done { path, to: None, unshared_with: Vec::new() }
    }

    /// An operation from one path to another.
    pub(crate) fn from_to(path: String, to: String) -> Done {
        Done { to: Some(to), ..Done::of(path) }
    }
}

#[derive(Serialize)]
struct NotDone {
    path: String,
    error: String,
}

#[derive(Serialize)]
struct Document {
    done: Vec<Done>,
    failed: Vec<NotDone>,
    /// The error that prevented the rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl PathResults {
    /// Starts without results; `json` prints the document in the end.
    pub(crate) fn new(json: bool) -> PathResults {
        PathResults { json, failures: Failures::default(), done: Vec::new(), fatal: None }
    }

    /// Records the result of one path; returns whether to continue with the next.
    pub(crate) fn record(&mut self, done: Done, result: Result<(), Failure>) -> bool {
        match result {
            Ok(()) => self.done.push(done),
            Err(failure) => self.fatal = self.failures.failed(&Progress::none(), done.path, failure).err(),
        }
        self.fatal.is_none()
    }

    /// Prints the document if requested; returns an error if anything failed.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        let PathResults { json, failures, done, fatal } = self;
        if json {
            let failed =
                failures.failed.iter().cloned().map(|(path, error)| NotDone { path, error }).collect();
            let error = fatal.as_ref().map(|error| format!("{error:#}"));
            print_json(&Document { done, failed, error })?;
        }
        fatal.map_or_else(|| failures.end(), Err)
    }
}
