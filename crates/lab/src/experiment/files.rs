//! File sets: the files that contenders serve during a trial.
//!
//! It writes no file. Invariant: a set that its budget makes smaller than planned says so.

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::value::{Scalar, count, size};
use plimsoll_load::limits::FILES_MAX;

/// Files of one size in a folder of their own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSet {
    /// The name, and the folder below `{root}`.
    pub name: String,
    /// The size of each file.
    pub size: Scalar,
    /// The number of files.
    #[serde(default)]
    pub count: Option<Scalar>,
    /// The number of files for each user.
    #[serde(default)]
    pub per_user: Option<Scalar>,
    /// The most bytes that all files together may take.
    #[serde(default)]
    pub budget: Option<Scalar>,
    /// The name of a file; `{}` stands for its number from 0.
    #[serde(default = "pattern")]
    pub pattern: String,
    /// Whether the files are new for each trial, or for all of them.
    #[serde(default)]
    pub renewed: Renewed,
}

/// When the files of a set are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Renewed {
    /// Once, before the first trial that needs them.
    #[default]
    Never,
    /// Before each trial, and removed after it.
    Trial,
}

/// The files of a set in a trial.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The folder below `{root}`.
    pub folder: String,
    /// The name of a file; `{}` stands for its number.
    pub pattern: String,
    /// Bytes of each file.
    pub bytes: u64,
    /// The number of files that are made.
    pub count: u64,
    /// The number of files that the experiment asks for.
    pub planned: u64,
    /// When they are made.
    pub renewed: Renewed,
}

fn pattern() -> String {
    "f{}".to_owned()
}

impl FileSet {
    /// Returns the files for `users`. `fill` replaces the variables of a text.
    ///
    /// # Errors
    /// A value that is no size or no number, or a budget below one file.
    pub fn files(&self, users: u64, fill: &dyn Fn(&str) -> Result<String>) -> Result<Files> {
        self.made(users, fill).with_context(|| format!("file set {:?}", self.name))
    }

    fn made(&self, users: u64, fill: &dyn Fn(&str) -> Result<String>) -> Result<Files> {
        let bytes = size(&fill(&self.size.0)?).context("`size`")?;
        let planned = match (&self.count, &self.per_user) {
            (Some(all), None) => count(&fill(&all.0)?).context("`count`")?,
            (None, Some(each)) => count(&fill(&each.0)?).context("`per_user`")?.saturating_mul(users),
            (None, None) => 1,
            (Some(_), Some(_)) => anyhow::bail!("it has `count` and `per_user`: leave one out"),
        };
        let affordable = match &self.budget {
            Some(budget) => {
                size(&fill(&budget.0)?).context("`budget`")?.checked_div(bytes).unwrap_or(u64::MAX)
            }
            None => u64::MAX,
        };
        ensure!(affordable > 0, "its `budget` is smaller than one file");
        let count = planned.min(affordable);
        ensure!(count <= FILES_MAX, "it would have {count} files; {FILES_MAX} are possible");
        let (folder, pattern) = (self.name.clone(), fill(&self.pattern)?);
        ensure!(count == 1 || pattern.contains("{}"), "`pattern` needs {{}} for the number of a file");
        ensure!(!pattern.contains('/') && !pattern.starts_with('.'), "`pattern` must be a plain file name");
        Ok(Files { folder, pattern, bytes, count, planned, renewed: self.renewed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(text: &str, users: u64) -> Result<Files> {
        toml::from_str::<FileSet>(text).unwrap().files(users, &|text| Ok(text.to_owned()))
    }

    #[test]
    fn a_set_has_files_for_each_user_up_to_its_budget() {
        let text = "name = \"s\"\nsize = \"1MB\"\nper_user = 2000\nbudget = \"100MB\"";
        let made = files(text, 10).unwrap();
        assert_eq!((made.count, made.planned, made.bytes), (100, 20_000, 1_000_000));
        assert_eq!(files("name = \"s\"\nsize = \"1B\"\ncount = 7", 10).unwrap().count, 7);
        assert_eq!(files("name = \"s\"\nsize = \"1B\"", 10).unwrap().count, 1);
    }

    #[test]
    fn a_wrong_set_is_refused_with_the_reason() {
        for (text, why) in [
            ("size = \"1MB\"\nbudget = \"1kB\"", "smaller than one file"),
            ("size = \"big\"", "`size`"),
            ("size = 1\ncount = 1\nper_user = 1", "leave one out"),
            ("size = 1\ncount = 2\npattern = \"a\"", "{}"),
            ("size = 1\npattern = \"../a\"", "plain"),
            ("size = 1\ncount = 2000000", "1000000"),
        ] {
            let refused = format!("{:#}", files(&format!("name = \"s\"\n{text}"), 1).unwrap_err());
            assert!(refused.contains(why), "{refused}");
        }
    }
}
