//! The mistakes that an experiment file alone shows.
//!
//! It asks no machine. Invariant: each mistake is reported with its place in the file, and what to write
//! instead.

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, anyhow, ensure};

use super::contender::Contender;
use super::limits::TRIALS_MAX;
use super::plan::Trial;
use super::template::{UnknownVariable, Values, fill};
use super::value::core_list;
use super::{Experiment, RUN_VARIABLES, TrialSettings, contender, template};
use plimsoll_load::check_url;

impl Experiment {
    pub(super) fn check(&self) -> Result<()> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        ensure!(
            !self.name.is_empty() && self.name.chars().all(is_plain),
            "`name` is {:?}: use letters, digits and -, because it names a folder",
            self.name
        );
        self.load.check()?;
        self.order.check()?;
        self.check_contenders()?;
        self.check_variables()?;
        self.check_open_loops()?;
        let trials = self.trials();
        ensure!(
            trials.len() <= TRIALS_MAX,
            "there would be {} trials; {TRIALS_MAX} are possible: leave some values out",
            trials.len()
        );
        let first: Vec<Trial> = trials.into_iter().filter(|trial| trial.repetition == 1).collect();
        first.iter().try_for_each(|trial| self.check_trial(trial))?;
        self.check_use()?;
        self.documents.iter().try_for_each(|table| {
            table.check(self, &first).with_context(|| format!("[[document]] {:?}", table.source))
        })
    }

    fn check_contenders(&self) -> Result<()> {
        ensure!(!self.contenders.is_empty(), "there is no contender: write [[contenders]]");
        for (at, contender) in self.contenders.iter().enumerate() {
            let is_twice = self.contenders[..at].iter().any(|other| other.name == contender.name);
            ensure!(!is_twice, "two contenders are called {:?}", contender.name);
        }
        let references = self.contenders.iter().filter(|contender| contender.reference).count();
        ensure!(references <= 1, "{references} contenders have `reference = true`: one at most");
        for (at, set) in self.files.iter().enumerate() {
            let is_twice = self.files[..at].iter().any(|other| other.name == set.name);
            ensure!(!is_twice, "two file sets are called {:?}", set.name);
            ensure!(
                !set.name.is_empty() && !set.name.contains('/') && !set.name.starts_with('.'),
                "the name {:?} of a file set must be a plain folder name",
                set.name
            );
        }
        Ok(())
    }

    fn check_variables(&self) -> Result<()> {
        for name in self.variables() {
            ensure!(
                template::is_name(name),
                "{name:?} is no name of a variable: use lower-case letters and _"
            );
            let is_set_by_run = RUN_VARIABLES.contains(&name) || contender::is_port(name);
            ensure!(!is_set_by_run, "the laboratory sets {{{name}}} itself: choose another name");
            ensure!(
                !self.load.0.contains_key(name),
                "`load` and the sweep both set `{name}`: leave it out of `load`"
            );
        }
        Ok(())
    }

    /// Refuses variables that concern no contender.
    fn check_use(&self) -> Result<()> {
        let used: BTreeSet<String> = self.contenders.iter().flat_map(|one| self.used_by(one)).collect();
        for name in self.variables() {
            ensure!(
                used.contains(name),
                "nothing uses the variable `{name}` of the sweep: write {{{name}}} where it belongs"
            );
        }
        Ok(())
    }

    fn check_trial(&self, trial: &Trial) -> Result<()> {
        let contender = &self.contenders[trial.contender];
        self.check_texts(trial, contender).with_context(|| {
            let point: Vec<String> =
                trial.point.iter().map(|(name, value)| format!("{name} = {value}")).collect();
            let at = if point.is_empty() { "" } else { " at " };
            format!("contender {:?}{at}{}", contender.name, point.join(", "))
        })
    }

    fn check_texts(&self, trial: &Trial, contender: &Contender) -> Result<()> {
        let settings = self.settings(trial)?;
        if contender.load_tool.is_none() {
            settings.load.check()?;
        }
        self.check_filled(trial, contender, &settings).map_err(|error| match error.downcast_ref() {
            Some(unknown @ UnknownVariable { .. }) => anyhow!(unknown.in_contender()),
            None => error,
        })
    }

    /// Checks the texts with the values of a trial.
    fn check_filled(&self, trial: &Trial, contender: &Contender, settings: &TrialSettings) -> Result<()> {
        let values = self.planned_values(trial, settings, "plimsoll")?;
        for cores_of in contender.processes.iter().filter_map(|process| process.cores.as_ref()) {
            core_list(&fill(&cores_of.0, &values)?)?;
        }
        contender
            .texts()
            .chain(contender.load_texts())
            .try_for_each(|text| fill(text, &values).map(|_| ()))?;
        if contender.load_tool.is_none() {
            check_url_of(contender, settings, &values)?;
        }
        Ok(())
    }
}

/// Refuses a URL that the generator cannot request.
fn check_url_of(contender: &Contender, settings: &TrialSettings, values: &Values) -> Result<()> {
    let url = fill(&contender.url, values)?;
    check_url(&url).with_context(|| format!("`url` is {url:?}"))?;
    let is_numbered = url.contains("{}") && settings.load.is_download() && settings.load.xml().is_none();
    ensure!(
        !is_numbered || settings.files.is_some(),
        "`url` is {url:?}, and there are no files for its {{}}: add a [[files]] table, or write a file's name"
    );
    Ok(())
}
