//! A results folder on the disk.
//!
//! Invariants: a line of `trials.jsonl` is synced before the next trial starts; the rest of a line that a
//! kill has cut is removed when the run resumes; a folder of another experiment is not touched; no link in
//! the place of a file is followed.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::fs::OFlags;

use super::profiles::{self, FinishedProfile};
use super::{FinishedTrial, Run};
use crate::experiment::Experiment;
use crate::own_path;

const EXPERIMENT: &str = "experiment.toml";
const RUN: &str = "run.json";
const TRIALS: &str = "trials.jsonl";

/// The results of a run, as read from its folder.
#[derive(Clone, Debug)]
pub struct Results {
    /// The experiment.
    pub experiment: Experiment,
    /// The text of the experiment's file.
    pub text: String,
    /// What is known of the run.
    pub run: Run,
    /// The finished trials at the points of the experiment, in the order in which they ran.
    pub trials: Vec<FinishedTrial>,
    /// The finished open-loop trials at a share of the maximum throughput of these.
    pub open_loops: Vec<FinishedTrial>,
    /// The profiles.
    pub profiles: Vec<FinishedProfile>,
}

impl Results {
    /// Reads a results folder. The cut last line of a killed run is left out.
    ///
    /// # Errors
    /// A missing or damaged file.
    pub fn read(folder: &Path) -> Result<Results> {
        ensure!(
            folder.join(EXPERIMENT).is_file(),
            "{} holds no results: there is no {EXPERIMENT} in it",
            folder.display()
        );
        let text = read(&folder.join(EXPERIMENT))?;
        let experiment = Experiment::parse(&text).with_context(|| EXPERIMENT.to_owned())?;
        let run = serde_json::from_str(&read(&folder.join(RUN))?).with_context(|| RUN.to_owned())?;
        let trials =
            if folder.join(TRIALS).exists() { parse(&read(&folder.join(TRIALS))?)?.0 } else { Vec::new() };
        let (open_loops, trials) = trials.into_iter().partition(|trial| trial.open_loop.is_some());
        let profiles = profiles::read(folder)?;
        Ok(Results { experiment, text, run, trials, open_loops, profiles })
    }

    /// Returns all finished trials: first those at the points of the experiment.
    pub fn all(&self) -> impl Iterator<Item = &FinishedTrial> {
        self.trials.iter().chain(&self.open_loops)
    }
}

/// A results folder that a run writes to.
#[derive(Debug)]
pub struct ResultsFolder {
    path: PathBuf,
    trials: File,
}

impl ResultsFolder {
    /// Opens the folder of a run, which is created if it does not exist. Returns the trials that it has
    /// already. Those without figures are removed, so that they are repeated.
    ///
    /// # Errors
    /// The folder holds another experiment or other files, or it cannot be written, or other users can.
    pub fn open(path: &Path, text: &str) -> Result<(ResultsFolder, Vec<FinishedTrial>)> {
        // Contenders write to it, too, and may be root.
        check_owner(path)?;
        let own = path.join(EXPERIMENT);
        if own.exists() {
            ensure!(
                read(&own)? == text,
                "{} holds the results of another experiment: choose another folder by --out",
                path.display()
            );
        } else {
            fs::create_dir_all(path).with_context(|| format!("cannot create {}", path.display()))?;
            check_owner(path)?;
            let is_empty = path.read_dir()?.next().is_none();
            ensure!(
                is_empty,
                "{} is not empty, and holds no results: choose another folder by --out",
                path.display()
            );
            replace(&own, text.as_bytes())?;
        }
        let trials = open_trials(&path.join(TRIALS))?;
        let mut folder = ResultsFolder { path: path.to_owned(), trials };
        let finished = folder.resume()?;
        Ok((folder, finished))
    }

    /// Reads the finished trials, and removes those that failed, and a line that a kill has cut.
    fn resume(&mut self) -> Result<Vec<FinishedTrial>> {
        let mut bytes = Vec::new();
        self.trials.read_to_end(&mut bytes)?;
        let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        bytes.truncate(end);
        let text = String::from_utf8(bytes)?;
        let (trials, end) = parse(&text)?;
        let lines = text.split_inclusive('\n').zip(trials);
        let (measured, failed): (Vec<_>, Vec<_>) = lines.partition(|(_, trial)| trial.measured().is_some());
        if failed.is_empty() {
            self.trials.set_len(end)?;
        } else {
            let path = self.path.join(TRIALS);
            replace(&path, measured.iter().map(|(line, _)| *line).collect::<String>().as_bytes())?;
            self.trials = open_trials(&path)?;
        }
        self.trials.seek(SeekFrom::End(0))?;
        Ok(measured.into_iter().map(|(_, trial)| trial).collect())
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads what is known of the run, if a part of it has run before.
    ///
    /// # Errors
    /// A damaged file.
    pub fn run(&self) -> Result<Option<Run>> {
        let path = self.path.join(RUN);
        if !path.exists() {
            return Ok(None);
        }
        serde_json::from_str(&read(&path)?).with_context(|| RUN.to_owned()).map(Some)
    }

    /// Writes what is known of the run.
    ///
    /// # Errors
    /// The disk is full, or fails.
    pub fn write_run(&self, run: &Run) -> Result<()> {
        replace(&self.path.join(RUN), serde_json::to_string_pretty(run)?.as_bytes())
    }

    /// Reads the profile of a name, if there is one.
    ///
    /// # Errors
    /// A damaged file.
    pub fn profile(&self, name: &str) -> Result<Option<FinishedProfile>> {
        profiles::read_one(&self.path, name)
    }

    /// Writes a profile and the profiler's files: their names and contents.
    ///
    /// # Errors
    /// The disk is full, or fails.
    pub fn add_profile(&self, name: &str, done: &FinishedProfile, files: &[(String, Vec<u8>)]) -> Result<()> {
        profiles::write(&self.path, name, done, files)
    }

    /// Adds a finished trial, and syncs it.
    ///
    /// # Errors
    /// The disk is full, or fails. The folder is then as before.
    pub fn add(&mut self, trial: &FinishedTrial) -> Result<()> {
        let before = self.trials.metadata()?.len();
        let line = serde_json::to_string(trial)? + "\n";
        let written = self.trials.write_all(line.as_bytes()).and_then(|()| self.trials.sync_data());
        if written.is_err() {
            // Removes a part of the line; without room for it, the next start removes it.
            let _ = self.trials.set_len(before);
            let _ = self.trials.seek(SeekFrom::End(0));
        }
        written.with_context(|| {
            let path = self.path.join(TRIALS);
            format!("cannot write {}: make room, and run the same again to resume", path.display())
        })
    }
}

/// Parses complete lines. Returns the trials and the length of their text.
fn parse(text: &str) -> Result<(Vec<FinishedTrial>, u64)> {
    let (mut trials, mut end) = (Vec::new(), 0);
    for (number, line) in (1..).zip(text.split_inclusive('\n')) {
        if !line.ends_with('\n') {
            break;
        }
        match serde_json::from_str(line) {
            Ok(trial) => trials.push(trial),
            Err(error) => bail!("line {number} of {TRIALS} is damaged: {error}"),
        }
        end += line.len() as u64;
    }
    Ok((trials, end))
}

fn open_trials(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).read(true).write(true).custom_flags(NO_LINK);
    options.open(path).with_context(|| format!("cannot open {}", path.display()))
}

/// Refuses a results folder, or the nearest one above a missing one, that other users can change.
fn check_owner(path: &Path) -> Result<()> {
    match path.exists() {
        true => own_path::unwritable_by_others(path).map(|_| ()),
        false => own_path::irreplaceable_or_missing(path),
    }
    .context("--out")
}

/// Flags for a file that may not be a link. A fifo in its place is not waited for.
#[allow(clippy::cast_possible_wrap, reason = "the flags of Linux are small numbers")]
const NO_LINK: i32 = OFlags::NOFOLLOW.union(OFlags::NONBLOCK).bits() as i32;

/// Reads a file of a results folder, which another user may have made.
///
/// # Errors
/// It is missing, or no regular file.
pub(super) fn read(path: &Path) -> Result<String> {
    let read = || -> Result<String> {
        let mut file = OpenOptions::new().read(true).custom_flags(NO_LINK).open(path)?;
        ensure!(file.metadata()?.is_file(), "it is no regular file");
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        Ok(text)
    };
    read().with_context(|| format!("cannot read {}", path.display()))
}

/// Replaces a file, so that after a kill the old or the new contents are there.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> Result<()> {
    let write = || -> std::io::Result<()> {
        let staging = path.with_extension("new");
        // A killed process has left it, or another user a link to a file of this one.
        match fs::remove_file(&staging) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = File::create_new(&staging)?;
        file.write_all(contents)?;
        file.sync_all()?;
        fs::rename(&staging, path)?;
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::super::synthetic::{SyntheticPlan, System};
    use super::super::{Measured, TrialResult};
    use super::*;
    use crate::experiment::open_loop::OpenLoop;

    const TEXT: &str =
        "name = \"n\"\n[[contenders]]\nname = \"a\"\nurl = \"http://h/\"\n[load]\ntime = \"1s\"\n";

    fn trial(repetition: u32) -> FinishedTrial {
        FinishedTrial {
            contender: "a".to_owned(),
            point: [("users".to_owned(), "8".to_owned())].into(),
            open_loop: None,
            repetition,
            begun: "2026-11-25T00:00:00Z".to_owned(),
            seconds: 1.5,
            result: TrialResult::Measured(Box::default()),
        }
    }

    #[test]
    fn a_resumed_run_has_its_finished_trials() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results");
        let (mut results, none) = ResultsFolder::open(&path, TEXT).unwrap();
        assert!(none.is_empty() && results.run().unwrap().is_none());
        results.add(&trial(1)).unwrap();
        results
            .add(&FinishedTrial { result: TrialResult::Failed("it hung".to_owned()), ..trial(2) })
            .unwrap();
        let (_, finished) = ResultsFolder::open(&path, TEXT).unwrap();
        assert_eq!((finished.len(), finished[0].repetition), (1, 1));
        assert_eq!(finished[0].measured(), Some(&Measured::default()));
    }

    #[test]
    fn a_failed_trial_is_repeated_and_its_line_makes_room_for_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results");
        let (mut results, _) = ResultsFolder::open(&path, TEXT).unwrap();
        let failed =
            |number| FinishedTrial { result: TrialResult::Failed("it hung".to_owned()), ..trial(number) };
        for done in [trial(1), failed(2), trial(3), failed(4)] {
            results.add(&done).unwrap();
        }
        let (mut results, finished) = ResultsFolder::open(&path, TEXT).unwrap();
        assert_eq!(finished, [trial(1), trial(3)]);
        results.add(&trial(2)).unwrap();
        let lines = fs::read_to_string(path.join(TRIALS)).unwrap();
        let read: Vec<FinishedTrial> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(read, [trial(1), trial(3), trial(2)]);
    }

    #[test]
    fn open_loops_are_read_apart_from_the_trials_of_the_points() {
        let folder = tempfile::tempdir().unwrap();
        let (mut results, _) = ResultsFolder::open(folder.path(), TEXT).unwrap();
        let open_loop = Some(OpenLoop { percent: 70, rate: Some(1234.567) });
        let open = FinishedTrial { open_loop, ..trial(1) };
        results.add(&trial(1)).unwrap();
        results.add(&open).unwrap();
        let run = SyntheticPlan::default().results(&[System::simple("a", 0.1, 0.0)]).unwrap().run;
        results.write_run(&run).unwrap();
        let results = Results::read(folder.path()).unwrap();
        assert_eq!((&results.trials, &results.open_loops), (&vec![trial(1)], &vec![open]));
        assert_eq!(results.all().count(), 2);
        let lines = fs::read_to_string(folder.path().join(TRIALS)).unwrap();
        assert_eq!(lines.matches("open_loop").count(), 1, "records of closed loops are as before: {lines}");
    }

    #[test]
    fn a_line_that_a_kill_has_cut_is_removed_wherever_it_was_cut() {
        let folder = tempfile::tempdir().unwrap();
        let (mut results, _) = ResultsFolder::open(folder.path(), TEXT).unwrap();
        results.add(&trial(1)).unwrap();
        results.add(&trial(2)).unwrap();
        let file = folder.path().join(TRIALS);
        let whole = fs::read(&file).unwrap();
        let first = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for cut in first..whole.len() {
            fs::write(&file, &whole[..cut]).unwrap();
            let (mut results, finished) = ResultsFolder::open(folder.path(), TEXT).unwrap();
            assert_eq!(finished, [trial(1)]);
            results.add(&trial(2)).unwrap();
            assert_eq!(fs::read(&file).unwrap(), whole);
        }
    }

    #[test]
    fn a_folder_with_other_contents_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        ResultsFolder::open(folder.path(), TEXT).unwrap();
        let other = ResultsFolder::open(folder.path(), &format!("{TEXT}# more\n")).unwrap_err();
        assert!(other.to_string().contains("another experiment"), "{other}");
        let full = tempfile::tempdir().unwrap();
        fs::write(full.path().join("thesis.tex"), "").unwrap();
        let refused = ResultsFolder::open(full.path(), TEXT).unwrap_err();
        assert!(refused.to_string().contains("is not empty"), "{refused}");
        assert!(Results::read(full.path()).unwrap_err().to_string().contains("holds no results"));
    }

    #[test]
    fn a_damaged_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        ResultsFolder::open(folder.path(), TEXT).unwrap();
        fs::write(folder.path().join(TRIALS), "{}\n").unwrap();
        let refused = ResultsFolder::open(folder.path(), TEXT).unwrap_err();
        assert!(refused.to_string().starts_with("line 1 of trials.jsonl is damaged"), "{refused}");
    }
}
