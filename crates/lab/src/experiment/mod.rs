//! Experiments: which contenders get which load under which conditions, in which order, as a TOML file says
//! it.
//!
//! Nothing is started or measured here. Invariants: [`Experiment::parse`] finds every mistake that the file
//! alone shows, before anything is started; the trials and their order depend on the file alone.

mod check;
pub mod conditions;
pub mod contender;
pub mod document;
pub mod files;
mod inherit;
pub mod limits;
pub mod load;
pub mod load_tool;
mod mistake;
pub mod open_loop;
pub mod order;
mod outline;
pub(crate) mod plan;
mod sweep;
pub mod template;
mod value;

use std::collections::BTreeSet;

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use conditions::Conditions;
use contender::Contender;
use document::DocumentTable;
use files::{FileSet, Files};
pub use inherit::{BuiltIn, built_in, built_in_names};
pub(crate) use inherit::{copy_from_earlier, name_of};
use limits::EXPERIMENT_BYTES_MAX;
use load::Load;
pub use mistake::FileMistake;
use open_loop::OpenLoops;
use order::Order;
pub use outline::Outline;
pub use plan::Trial;
use sweep::{points, swept};
use template::{Values, fill, variables};
pub use value::{Scalar, core_list};

/// The variables that the laboratory sets for the texts of a contender, besides its ports.
const RUN_VARIABLES: [&str; 8] =
    ["root", "dir", "config", "plimsoll", "host", "file", "repetition", "results"];

/// An experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The name, which names its results.
    pub name: String,
    /// The question that it answers, in a line or two.
    pub about: String,
    /// The seed of all random choices.
    pub seed: u64,
    /// The file sets.
    pub files: Vec<FileSet>,
    /// The contenders.
    pub contenders: Vec<Contender>,
    /// The conditions.
    pub conditions: Conditions,
    /// The order of the trials.
    pub order: Order,
    /// The open-loop trials after the closed loops.
    pub open_loop: OpenLoops,
    /// The tables of the document that it repeats.
    pub documents: Vec<DocumentTable>,
    load: Load,
    /// The variables of the sweep and their values, the outermost first.
    sweep: Vec<(String, Vec<Scalar>)>,
    /// The points of all variables.
    points: Vec<Values>,
}

/// The file, before the points are known.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    name: String,
    #[serde(default)]
    about: String,
    #[serde(default = "seed")]
    seed: u64,
    #[serde(default)]
    files: Vec<FileSet>,
    contenders: Vec<toml::Table>,
    #[serde(default)]
    load: Load,
    #[serde(default)]
    sweep: toml::Table,
    #[serde(default)]
    points: Vec<toml::Table>,
    #[serde(default)]
    conditions: Conditions,
    #[serde(default)]
    order: Order,
    #[serde(default)]
    open_loop: OpenLoops,
    #[serde(default, rename = "document")]
    documents: Vec<DocumentTable>,
}

fn seed() -> u64 {
    1
}

/// Everything that the texts of the file say about one trial.
#[derive(Clone, Debug, PartialEq)]
pub struct TrialSettings {
    /// The load.
    pub load: load::Settings,
    /// The files, if the experiment has some.
    pub files: Option<Files>,
    /// The conditions.
    pub conditions: conditions::Settings,
}

impl Experiment {
    /// Returns the first contender behind a prefix.
    pub(crate) fn first_behind(&self, prefix: &[String]) -> Option<&Contender> {
        self.contenders.iter().find(|contender| contender.prefix == prefix)
    }

    /// Parses an experiment and checks it.
    ///
    /// # Errors
    /// The first mistake: where it is, and what to write instead.
    pub fn parse(text: &str) -> Result<Experiment> {
        ensure!(
            text.len() <= EXPERIMENT_BYTES_MAX,
            "an experiment file may have {EXPERIMENT_BYTES_MAX} bytes at most"
        );
        let _: toml::Table = text.parse().map_err(|error| FileMistake::of_syntax(text, &error))?;
        let mut document: Document =
            toml::from_str(text).map_err(|error| FileMistake::of_value(text, &error))?;
        copy_from_earlier(&mut document.contenders);
        let sweep = swept(document.sweep)?;
        let points = points(&sweep, &document.points)?;
        let read =
            |(at, table)| Contender::read(table).map_err(|error| FileMistake::of_contender(text, at, &error));
        let contenders = document.contenders.into_iter().enumerate().map(read);
        let contenders = contenders.collect::<Result<Vec<_>, FileMistake>>()?;
        let Document { name, about, seed, files, load, conditions, order, open_loop, documents, .. } =
            document;
        let experiment = Experiment {
            name,
            about,
            seed,
            files,
            contenders,
            conditions,
            order,
            open_loop,
            documents,
            load,
            sweep,
            points,
        };
        experiment.check()?;
        Ok(experiment)
    }

    /// Returns the names of the variables, in the order of the file.
    pub fn variables(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.sweep.iter().map(|(name, _)| name.as_str()).collect();
        for name in self.points.iter().flat_map(|point| point.keys()) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }

    /// Returns what the file says about a trial.
    ///
    /// # Errors
    /// A value that is wrong at this point.
    pub fn settings(&self, trial: &Trial) -> Result<TrialSettings> {
        let mut load = self.load_of(&trial.point)?;
        if let Some(open_loop) = &trial.open_loop {
            load.open(open_loop.rate);
        }
        let mut values = load.0.clone();
        values.extend(trial.point.clone());
        values.insert("repetition".to_owned(), trial.repetition.to_string());
        let fill = |text: &str| fill(text, &values);
        let set = if self.has_load_tool(trial.contender) { None } else { self.file_set(&load)? };
        let files = set.map(|set| set.files(load.users()?, &fill)).transpose()?;
        let conditions = self.conditions.settings(&fill).context("`conditions`")?;
        Ok(TrialSettings { load, files, conditions })
    }

    /// Returns whether a tool other than `plimsoll load` puts the load on a contender.
    pub fn has_load_tool(&self, contender: usize) -> bool {
        self.contenders.get(contender).is_some_and(|contender| contender.load_tool.is_some())
    }

    /// Returns whether the contender of this name has a load tool.
    pub fn is_tool(&self, name: &str) -> bool {
        self.contenders.iter().any(|contender| contender.name == name && contender.load_tool.is_some())
    }

    /// Returns the values of all variables in the texts of a trial's contender: `run` has those that the
    /// laboratory sets.
    ///
    /// # Errors
    /// A value that is wrong at this point.
    pub fn values(&self, trial: &Trial, settings: &TrialSettings, run: Values) -> Result<Values> {
        let contender = &self.contenders[trial.contender];
        let mut values = settings.load.0.clone();
        values.extend(trial.point.clone());
        values.extend(run);
        values.insert("repetition".to_owned(), trial.repetition.to_string());
        if !values.contains_key(load::USERS) {
            values.insert(load::USERS.to_owned(), settings.load.users()?.to_string());
        }
        if let Some(files) = &settings.files {
            values.insert("file".to_owned(), format!("{}/{}", files.folder, files.pattern));
        }
        if !values.contains_key("host") {
            values.insert("host".to_owned(), fill(&contender.host, &values)?);
        }
        let own = contender.own_values(&values)?;
        values.extend(own);
        Ok(values)
    }

    /// Returns the values of all variables of a trial, before a run: ports are 1, and a folder stands for
    /// itself, as `{dir}`. `plimsoll` is the path of the program on the contender's machine.
    ///
    /// # Errors
    /// A value that is wrong at this point.
    pub(crate) fn planned_values(
        &self,
        trial: &Trial,
        settings: &TrialSettings,
        plimsoll: &str,
    ) -> Result<Values> {
        let ports = self.contenders[trial.contender].ports();
        let mut run: Values = ports.into_iter().map(|port| (port, "1".to_owned())).collect();
        for name in ["root", "dir", "config", "results"] {
            run.insert(name.to_owned(), format!("{{{name}}}"));
        }
        run.insert("plimsoll".to_owned(), plimsoll.to_owned());
        self.values(trial, settings, run)
    }

    /// Returns the conditions of the trials of some contenders, each once.
    ///
    /// # Errors
    /// A value that is wrong at a point.
    pub fn conditions_of(&self, select: impl Fn(&Contender) -> bool) -> Result<Vec<conditions::Settings>> {
        let mut all = Vec::new();
        for trial in self.trials().iter().filter(|trial| select(&self.contenders[trial.contender])) {
            let conditions = self.settings(trial)?.conditions;
            if !all.contains(&conditions) {
                all.push(conditions);
            }
        }
        Ok(all)
    }

    fn load_of(&self, point: &Values) -> Result<load::Settings> {
        let mut settings = load::Settings::default();
        for (name, value) in &self.load.0 {
            let value = fill(&value.0, point).with_context(|| format!("`load.{name}`"))?;
            settings.0.insert(name.clone(), value);
        }
        let swept = point.iter().filter(|(name, _)| load::is_setting(name));
        settings.0.extend(swept.map(|(name, value)| (name.clone(), value.clone())));
        Ok(settings)
    }

    fn file_set(&self, load: &load::Settings) -> Result<Option<&FileSet>> {
        match (load.files(), self.files.as_slice()) {
            (Some(name), sets) => {
                let set = sets.iter().find(|set| set.name == name);
                let names: Vec<&str> = sets.iter().map(|set| set.name.as_str()).collect();
                let unknown = || format!("no file set is called {name:?}; there are {}", names.join(", "));
                set.with_context(unknown).map(Some)
            }
            (None, []) => Ok(None),
            (None, [only]) => Ok(Some(only)),
            (None, _) => bail!("there are several file sets: select one by `files` of `load` or of `sweep`"),
        }
    }

    /// Returns the names of the variables in the texts that concern a contender.
    fn used_by(&self, contender: &Contender) -> BTreeSet<String> {
        let load = self.load.0.values().map(|value| value.0.as_str());
        let files = self.files.iter().flat_map(|set| {
            let numbers = [&set.count, &set.per_user, &set.budget].into_iter().flatten();
            numbers.chain([&set.size]).map(|value| value.0.as_str()).chain([set.pattern.as_str()])
        });
        let texts = contender.texts().chain(contender.load_texts()).chain(self.conditions.texts());
        let texts = texts.chain(load);
        if contender.load_tool.is_some() {
            return texts.flat_map(variables).map(str::to_owned).collect();
        }
        let mut used: BTreeSet<String> = texts.chain(files).flat_map(variables).map(str::to_owned).collect();
        let settings = self.variables().into_iter().filter(|name| load::is_setting(name));
        used.extend(settings.map(str::to_owned));
        used
    }
}

#[cfg(test)]
mod tests;
