//! What became of several things that were to be done, one after the other.
//!
//! It does none of them. What must hold: what fails is told at once, keeps the rest from nothing, and makes
//! the command fail in the end.

use super::failure::Failure;
use super::progress::Progress;
use crate::cli::AlreadyTold;

/// What was tried so far.
#[derive(Default)]
pub(crate) struct Tried {
    /// What failed: what it was, and why.
    pub(crate) failed: Vec<(String, String)>,
}

impl Tried {
    /// Notes a failure; gives it back if everything else would fail in the same way.
    pub(crate) fn failed(
        &mut self,
        progress: &Progress,
        what: String,
        failure: Failure,
    ) -> anyhow::Result<()> {
        if failure.is_of_all() {
            return Err(anyhow::Error::new(failure).context(what));
        }
        self.note(progress, what, failure.to_string());
        Ok(())
    }

    /// Notes why something was not done.
    pub(crate) fn note(&mut self, progress: &Progress, what: String, why: String) {
        progress.say(&format!("plimsoll: {what}: {why}"));
        self.failed.push((what, why));
    }

    /// How it ends.
    pub(crate) fn end(self) -> anyhow::Result<()> {
        match self.failed.len() {
            0 => Ok(()),
            1 => Err(AlreadyTold.into()),
            many => anyhow::bail!("{many} things were not done; they are told above"),
        }
    }
}
