//! `plimsoll load --xml`: the tests of document 003's client.
//!
//! It sends no request itself. Invariant: every thread of a test has a line, with the time from the common
//! start to the end of its last request.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;
use plimsoll_cli::WrongUsage;
use plimsoll_load::{End, FileTest, Outcome, Requests, Target, Workload, size};

use super::Load;

impl Load {
    /// Reads the tests of a file.
    pub(super) fn tests(&self, path: &Path) -> anyhow::Result<Vec<FileTest>> {
        let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        FileTest::parse(&text).with_context(|| format!("{} is no test file", path.display()))
    }

    /// Returns the workload of a test.
    pub(super) fn workload_of(&self, test: &FileTest) -> anyhow::Result<Workload> {
        let place = Target::parse(&self.url).map_err(|bad| WrongUsage(bad.to_string()))?;
        anyhow::ensure!(
            place.scheme.is_http() && place.pattern == "/",
            WrongUsage("the test file names the files: write http://HOST:PORT".to_owned())
        );
        let (files, pick) = test.requests();
        let workload =
            self.workload(Target { pattern: "{}".to_owned(), ..place }, Requests::Download(files))?;
        Ok(Workload { users: test.threads, pick, end: End::RequestsEach(test.iterations), ..workload })
    }
}

/// Formats the time of each thread, and the totals.
pub(super) fn text(number: usize, of: usize, test: &FileTest, outcome: &Outcome) -> String {
    let FileTest { threads, iterations, files } = test;
    let mut text = format!(
        "test {number} of {of}: {threads} threads, {iterations} iterations, {} files\n\n\
         {:>6}  {:>10}  {:>9}  {:>11}  {:>6}  file\n",
        files.len(),
        "thread",
        "seconds",
        "requests",
        "bytes",
        "errors"
    );
    for user in &outcome.users_each {
        let index = usize::try_from(user.user).unwrap_or_default() % files.len();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:>6}  {:>10.3}  {:>9}  {:>11}  {:>6}  {}",
            user.user + 1,
            user.time.as_secs_f64(),
            user.requests,
            size(user.bytes as f64),
            user.errors,
            files[index]
        );
    }
    format!("{text}\n{}\n", outcome.text())
}
