//! The profiles of a run: a file `profiles/NAME.json` for each contender and case, and beside it the files
//! of the profiler.
//!
//! They are no figures: a contender is slower under a profiler. Invariant: a profile is in the folder
//! completely or not at all; one that failed is replaced by the next of the same name.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};

use super::folder::replace;
use crate::experiment::template::Values;
use crate::profile::{Profile, Profiler};

const FOLDER: &str = "profiles";

/// A profile of a contender at a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FinishedProfile {
    /// The name of the contender.
    pub contender: String,
    /// The values of the variables that concern it.
    pub point: Values,
    /// The profiler.
    pub profiler: Profiler,
    /// The time of its start (RFC 3339).
    pub begun: String,
    /// How it ended.
    pub result: ProfileResult,
}

/// How the trial of a profile ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileResult {
    /// With a profile of each process.
    Profiled {
        /// Complete and correct responses in the measured time.
        requests: u64,
        /// The processes.
        processes: Vec<ProcessProfile>,
    },
    /// Without one, for this reason.
    Failed(String),
}

/// The profile of a process and its children.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessProfile {
    /// The name in the experiment.
    pub name: String,
    /// The costs of its functions.
    pub profile: Profile,
    /// The profiler's files in the folder `profiles`.
    pub files: Vec<String>,
}

impl FinishedProfile {
    /// Returns whether it has no profile.
    pub fn is_failed(&self) -> bool {
        matches!(self.result, ProfileResult::Failed(_))
    }
}

/// Reads the profiles of a results folder, in the order of their names.
///
/// # Errors
/// A damaged file.
pub(super) fn read(results: &Path) -> Result<Vec<FinishedProfile>> {
    let folder = results.join(FOLDER);
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut paths = fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let text = super::folder::read(path)?;
        serde_json::from_str(&text).with_context(|| format!("{} is damaged", path.display()))
    };
    paths.iter().map(read).collect()
}

/// Reads the profile of a name, if there is one.
pub(super) fn read_one(results: &Path, name: &str) -> Result<Option<FinishedProfile>> {
    let path = results.join(FOLDER).join(format!("{name}.json"));
    if !path.exists() {
        return Ok(None);
    }
    let text = super::folder::read(&path)?;
    serde_json::from_str(&text).with_context(|| format!("{} is damaged", path.display())).map(Some)
}

/// Writes a profile, after the profiler's files: their names and contents.
pub(super) fn write(
    results: &Path,
    name: &str,
    done: &FinishedProfile,
    files: &[(String, Vec<u8>)],
) -> Result<()> {
    let folder = results.join(FOLDER);
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for (file, contents) in files {
        replace(&folder.join(file), contents)?;
    }
    replace(&folder.join(format!("{name}.json")), serde_json::to_string_pretty(done)?.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_written_with_its_files_and_replaces_one_that_failed() {
        let folder = tempfile::tempdir().unwrap();
        assert!(read(folder.path()).unwrap().is_empty());
        let mut done = FinishedProfile {
            contender: "a".to_owned(),
            point: Values::new(),
            profiler: Profiler::Callgrind,
            begun: "2026-11-25T00:00:00Z".to_owned(),
            result: ProfileResult::Failed("it hung".to_owned()),
        };
        write(folder.path(), "1-a", &done, &[]).unwrap();
        assert!(read_one(folder.path(), "1-a").unwrap().unwrap().is_failed());
        let files = vec!["callgrind.out.1-a.7".to_owned()];
        let process = ProcessProfile { name: "server".to_owned(), profile: Profile::default(), files };
        done.result = ProfileResult::Profiled { requests: 5, processes: vec![process] };
        let file = ("callgrind.out.1-a.7".to_owned(), b"totals: 0\n".to_vec());
        write(folder.path(), "1-a", &done, &[file]).unwrap();
        assert_eq!(read(folder.path()).unwrap(), [done]);
        assert_eq!(read_one(folder.path(), "2-a").unwrap(), None);
        fs::write(folder.path().join("profiles/2-a.json"), "{").unwrap();
        assert!(read(folder.path()).unwrap_err().to_string().contains("2-a.json is damaged"));
    }
}
