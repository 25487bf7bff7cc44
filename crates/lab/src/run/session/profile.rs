//! The trial of a profile: a contender runs behind a profiler, and is ended, so that the profile is written.
//!
//! Its figures count for nothing. Invariant: the next trial of the contender starts it again, without the
//! profiler.

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use super::super::limits::PROFILE_BYTES_MAX;
use super::{Session, plain};
use crate::agent::{Output, Request};
use crate::experiment::Trial;
use crate::profile::Profiler;
use crate::results::{ProcessProfile, ProfileResult};

/// The files of a profiler: their names in the results folder, and their contents.
type ProfileFiles = Vec<(String, Vec<u8>)>;

impl Session<'_> {
    /// Refuses a profiler that the machine of a contender cannot run.
    pub(in crate::run) fn check_profiler(&mut self, profiler: Profiler) -> Result<()> {
        let is_profiled =
            |at: &usize| self.takes_part(*at) && !self.experiment.contenders[*at].processes.is_empty();
        let contenders: Vec<usize> = (0..self.experiment.contenders.len()).filter(is_profiled).collect();
        for contender in contenders {
            let name = &self.experiment.contenders[contender].name;
            let why = || format!("contender {name:?}: {}", profiler.remedy());
            let output = self.output_of(contender, profiler.check()).with_context(why)?;
            ensure!(output.code == Some(0), "{} ({})", why(), output.stderr.trim());
        }
        Ok(())
    }

    /// Runs a trial with the contender behind a profiler. `name` is for the names of the files.
    pub(in crate::run) fn profile(
        &mut self,
        trial: &Trial,
        profiler: Profiler,
        name: &str,
    ) -> Result<(ProfileResult, ProfileFiles)> {
        self.forget(trial.contender);
        self.profiler = Some(profiler);
        let measured = self.trial(trial);
        self.profiler = None;
        let state = self.contenders[trial.contender].as_ref().context("it was left out")?;
        let folder = state.running.as_ref().and_then(|running| running.run.get("dir").cloned());
        self.forget(trial.contender);
        let contender = self.experiment.contenders[trial.contender].name.clone();
        // The profile is written when the process ends.
        self.agent(trial.contender)?.call::<()>(&Request::Stop { name: contender })?;
        let requests = measured?.load.requests;
        let folder = folder.context("it did not start")?;
        let (mut processes, mut all) = (Vec::new(), Vec::new());
        for process in &self.experiment.contenders[trial.contender].processes {
            let paths = self.files_of(trial.contender, &folder, &profiler.file_prefix(&process.name))?;
            ensure!(!paths.is_empty(), "process {:?} wrote no profile when it ended", process.name);
            let (mut outputs, mut files) = (Vec::new(), Vec::new());
            for path in paths {
                outputs.push(self.successful(trial.contender, profiler.read_command(&path))?);
                let file = path.rsplit('/').next().unwrap_or_default();
                files.push(format!("{file}.{name}"));
                all.push((format!("{file}.{name}"), self.contents(trial.contender, &path)?));
            }
            let profile = profiler.read(&outputs).with_context(|| format!("process {:?}", process.name))?;
            processes.push(ProcessProfile { name: process.name.clone(), profile, files });
        }
        Ok((ProfileResult::Profiled { requests, processes }, all))
    }

    /// Has the contender started again at its next trial.
    fn forget(&mut self, contender: usize) {
        if let Some(state) = &mut self.contenders[contender] {
            state.running = None;
        }
    }

    /// Returns the paths of the files of a folder on a contender's machine whose names begin with `prefix`.
    fn files_of(&mut self, contender: usize, folder: &str, prefix: &str) -> Result<Vec<String>> {
        let pattern = format!("{prefix}*");
        let words =
            ["find", folder, "-maxdepth", "1", "-type", "f", "-name", &pattern, "-printf", "%s %p\\n"];
        let found = self.successful(contender, words.map(str::to_owned).to_vec())?;
        let mut paths = Vec::new();
        for (size, path) in found.lines().filter_map(|line| line.split_once(' ')) {
            let size: u64 = size.parse().with_context(|| format!("{path} has no size"))?;
            ensure!(
                size <= PROFILE_BYTES_MAX,
                "a profile has {size} bytes, and {PROFILE_BYTES_MAX} are possible: shorten `time` of `load`"
            );
            paths.push(path.to_owned());
        }
        paths.sort();
        Ok(paths)
    }

    /// Returns the contents of a file on a contender's machine.
    fn contents(&mut self, contender: usize, path: &str) -> Result<Vec<u8>> {
        let words = ["base64", "--wrap=0", path].map(str::to_owned).to_vec();
        let text = self.successful(contender, words)?;
        BASE64_STANDARD.decode(text.trim()).ok().with_context(|| format!("{path} cannot be copied"))
    }

    fn successful(&mut self, contender: usize, words: Vec<String>) -> Result<String> {
        let command = words.join(" ");
        let output = self.output_of(contender, words)?;
        ensure!(output.code == Some(0), "{command} failed: {}", output.stderr.trim());
        Ok(output.stdout)
    }

    fn output_of(&mut self, contender: usize, words: Vec<String>) -> Result<Output> {
        self.agent(contender)?.call(&Request::Run(plain(words)))
    }
}
