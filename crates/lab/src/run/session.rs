//! The agents and running contenders of a run.
//!
//! It plans nothing. Invariants: a contender runs with exactly the texts of its trial; dropping the session
//! ends everything.

mod profile;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use anyhow::{Context as _, Result, ensure};

use super::Options;
use super::limits::{COMMAND_SECONDS_MAX, TOOL_ATTEMPTS, TOOL_RETRY_TIME};
use super::machines::{machine_behind, remote_program};
use super::requirements::{Requirements, local_findings};
use super::trial::{command, figures, marks, tool_command, tool_figures};
use crate::agent::{Agent, Command, FileSet, Folders, Location, Output, Process, Request, Use, clock};
use crate::conditions::Obstacle;
use crate::experiment::conditions::{Cache, Settings};
use crate::experiment::contender::{Contender, Process as ContenderProcess};
use crate::experiment::files::{Files, Renewed};
use crate::experiment::order::Restart;
use crate::experiment::template::{Values, fill};
use crate::experiment::{Experiment, Trial, TrialSettings, core_list};
use crate::profile::Profiler;
use crate::results::{Entrant, LoadFigures, Machine, Measured};

/// A running experiment.
pub(super) struct Session<'a> {
    experiment: &'a Experiment,
    options: &'a Options<'a>,
    /// The agent that runs the generator.
    generator: Agent<'a>,
    /// The agents by the words before their command.
    agents: BTreeMap<Vec<String>, Agent<'a>>,
    /// The state of each contender; `None` for one that was left out.
    contenders: Vec<Option<State>>,
    notes: Vec<String>,
    /// The profiler behind which contenders are started.
    profiler: Option<Profiler>,
}

/// A contender that takes part.
struct State {
    version: String,
    machine: Option<Machine>,
    /// The ports of its processes, by the names of their variables.
    ports: Values,
    running: Option<RunningContender>,
}

/// A contender that runs.
struct RunningContender {
    /// Its texts, with placeholders for the folders of this start.
    texts: Vec<String>,
    /// The point of the trial for which it was started.
    point: Values,
    /// The values that the laboratory set at its start: ports and folders.
    run: Values,
}

impl<'a> Session<'a> {
    /// Starts the agents, and finds out which contenders take part.
    pub(super) fn start(experiment: &'a Experiment, options: &'a Options<'a>) -> Result<Session<'a>> {
        let program = options.program.display().to_string();
        let generator = Agent::start(&[], &program, options.work, options.stop)?;
        let (agents, contenders, notes) = (BTreeMap::new(), Vec::new(), Vec::new());
        let mut session =
            Session { experiment, options, generator, agents, contenders, notes, profiler: None };
        session.start_agents()?;
        session.check_machines()?;
        for contender in &experiment.contenders {
            let state = match session.admit(contender) {
                Ok(state) => Some(state),
                Err(error) => {
                    session.notes.push(format!("contender {:?} was left out: {error:#}", contender.name));
                    None
                }
            };
            session.contenders.push(state);
        }
        Ok(session)
    }

    /// Starts an agent on each machine with contenders.
    fn start_agents(&mut self) -> Result<()> {
        for contender in &self.experiment.contenders {
            if !self.agents.contains_key(&contender.prefix) {
                let program = self.program(contender)?;
                let agent = Agent::start(&contender.prefix, &program, self.options.work, self.options.stop);
                let agent = agent.with_context(|| {
                    let machine = machine_behind(self.experiment, &contender.prefix);
                    format!("{} cannot be asked", machine.text())
                })?;
                self.agents.insert(contender.prefix.clone(), agent);
            }
        }
        Ok(())
    }

    /// Refuses the run for what `lab check` finds: conditions that a machine cannot set, and missing programs
    /// and cores with which trials would fail.
    fn check_machines(&mut self) -> Result<()> {
        let mut faults = local_findings(self.experiment, &self.options.program)?.faults;
        for (prefix, agent) in &mut self.agents {
            let all = self.experiment.conditions_of(|contender| contender.prefix == *prefix)?;
            let obstacles: Vec<Obstacle> = agent.call(&Request::Obstacles(all))?;
            let lines: Vec<String> = obstacles.iter().map(ToString::to_string).collect();
            let name = machine_behind(self.experiment, prefix).text();
            let machine = if prefix.is_empty() { String::new() } else { format!(" on {name}") };
            ensure!(lines.is_empty(), "conditions cannot be set{machine}: {}", lines.join("; "));
            if let (false, Some(contender)) = (prefix.is_empty(), self.experiment.first_behind(prefix)) {
                let required = Requirements::of(self.experiment, prefix, remote_program(contender))?;
                let missing: Vec<String> = agent.call(&Request::MissingPrograms(required.programs()))?;
                faults.extend(required.findings(&missing, agent.greeting.machine.cores, &name).faults);
            }
        }
        ensure!(faults.is_empty(), "trials would fail: {}", faults.join("; "));
        Ok(())
    }

    /// Returns whether an agent has ended, so that no further trial can succeed.
    pub(super) fn has_lost_an_agent(&mut self) -> bool {
        self.generator.has_ended() || self.agents.values_mut().any(Agent::has_ended)
    }

    pub(super) fn takes_part(&self, contender: usize) -> bool {
        self.contenders.get(contender).is_some_and(Option::is_some)
    }

    pub(super) fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Describes the contenders that take part.
    pub(super) fn entrants(&self) -> Vec<Entrant> {
        let both = self.experiment.contenders.iter().zip(&self.contenders);
        let taking_part = both.filter_map(|(contender, state)| Some((contender, state.as_ref()?)));
        let entrants = taking_part.map(|(contender, state)| Entrant {
            name: contender.name.clone(),
            about: contender.about.clone(),
            version: state.version.clone(),
            reference: contender.reference,
            machine: state.machine.clone(),
        });
        entrants.collect()
    }

    /// Runs one trial.
    pub(super) fn trial(&mut self, trial: &Trial) -> Result<Measured> {
        let settings = self.experiment.settings(trial)?;
        let location = self.set_conditions(trial.contender, &settings.conditions)?;
        let set = settings.files.as_ref().map(|files| self.file_set(files));
        if let Some(set) = &set {
            self.agent(trial.contender)?.call::<()>(&Request::MakeFiles(set.clone()))?;
        }
        let measured = self.with_files(trial, &settings, &location, set.as_ref());
        let is_renewed = settings.files.as_ref().is_some_and(|files| files.renewed == Renewed::Trial);
        if let Some(set) = set.filter(|_| is_renewed) {
            self.agent(trial.contender)?.call::<()>(&Request::RemoveFiles(set))?;
        }
        measured
    }

    /// Sets the conditions of a trial on the machine of its contender. Contenders that must not run under
    /// them are ended.
    fn set_conditions(&mut self, contender: usize, conditions: &Settings) -> Result<Location> {
        let agent = self.agent(contender)?;
        let set: Result<Location> = agent.call(&Request::SetConditions(Box::new(conditions.clone())));
        // The agent has ended all contenders also if it could not set the conditions.
        let is_new = set.as_ref().map_or(true, |location| location.is_new);
        let prefix = &self.experiment.contenders[contender].prefix;
        // The memory limit is one for all processes: each contender has it alone. A contender that is started
        // for each trial may have processes that put load on the machine, which ends with the trial.
        let is_alone = conditions.memory.is_some() || self.experiment.order.restart == Restart::Trial;
        let mut ended = Vec::new();
        for (at, state) in self.contenders.iter_mut().enumerate() {
            let other = &self.experiment.contenders[at];
            let is_ended = is_new || (is_alone && at != contender);
            if let Some(state) = state.as_mut().filter(|_| is_ended && other.prefix == *prefix)
                && state.running.take().is_some()
            {
                ended.push(other.name.clone());
            }
        }
        for name in ended {
            self.agent(contender)?.call::<()>(&Request::Stop { name })?;
        }
        set
    }

    fn with_files(
        &mut self,
        trial: &Trial,
        settings: &TrialSettings,
        location: &Location,
        set: Option<&FileSet>,
    ) -> Result<Measured> {
        let values = self.run_contender(trial, settings, location)?;
        let mut cached = None;
        if let Some(set) = set {
            let request = Request::PrepareCache(settings.conditions.cache, set.clone());
            cached = self.agent(trial.contender)?.call(&request)?;
        }
        let mut measured = self.load(trial.contender, settings, &values, &location.root)?;
        let bytes = set.map_or(0, |set| set.count.saturating_mul(set.bytes));
        measured.marks.extend(cached.and_then(|cached| cache_mark(settings.conditions.cache, cached, bytes)));
        Ok(measured)
    }

    /// Puts the load on a contender, and samples it meanwhile. `root` is the folder that it serves.
    fn load(
        &mut self,
        contender: usize,
        settings: &TrialSettings,
        values: &Values,
        root: &Path,
    ) -> Result<Measured> {
        let settle = self.experiment.order.settle()?;
        let tested = &self.experiment.contenders[contender];
        let Contender { name, prefix, load_tool, .. } = tested;
        let root = prefix.is_empty().then_some(root);
        let name = name.clone();
        let agent = self.agent(contender)?;
        let settled: bool = agent.call(&Request::Settle(settle.as_secs_f64()))?;
        agent.call::<()>(&Request::StartProbe { name })?;
        let program = self.options.program.display().to_string();
        let command = match load_tool {
            Some(tool) => tool_command(tool, settings, values)?,
            None => command(&program, settings, (tested, values), root)?,
        };
        let attempts = if load_tool.is_some() { TOOL_ATTEMPTS } else { 1 };
        let request = Request::Run(command);
        let mut attempt = || {
            let output: Result<Output> = self.generator.call(&request);
            let end = clock();
            let figures = output.and_then(|output| match load_tool {
                Some(tool) => tool_figures(tool, &output, settings),
                None => figures(&output, settings),
            });
            (figures, end)
        };
        let (mut figures, mut end) = attempt();
        for _ in 1..attempts {
            if figures.is_ok() || self.options.stop.load(Ordering::Relaxed) {
                break;
            }
            std::thread::sleep(TOOL_RETRY_TIME);
            (figures, end) = attempt();
        }
        let (from, to) = figures.as_ref().map_or((end, end), |figures| window(figures, end));
        let agent = self.agent(contender)?;
        let (from, to) = (agent.its_time(from), agent.its_time(to));
        let used: Use = agent.call(&Request::EndProbe { from, to })?;
        let Use { processes, machine, drops } = used;
        let mut measured = Measured { load: figures?, processes, machine, marks: Vec::new() };
        measured.marks = marks(&measured, settled, settle);
        if drops == Some(0) {
            measured
                .marks
                .push("the trial was shorter than the interval at which files are dropped".to_owned());
        }
        Ok(measured)
    }

    /// Starts a contender, unless it runs with the same texts. Returns the values of its variables.
    fn run_contender(
        &mut self,
        trial: &Trial,
        settings: &TrialSettings,
        location: &Location,
    ) -> Result<Values> {
        let contender = &self.experiment.contenders[trial.contender];
        let state = self.contenders[trial.contender].as_ref().context("it was left out")?;
        let mut run = state.ports.clone();
        run.insert("root".to_owned(), location.root.display().to_string());
        run.extend(location.address.map(|address| ("host".to_owned(), address.to_string())));
        run.insert("plimsoll".to_owned(), self.program(contender)?);
        run.insert("results".to_owned(), std::path::absolute(self.options.out)?.display().to_string());
        for placeholder in ["dir", "config"] {
            run.insert(placeholder.to_owned(), format!("{{{placeholder}}}"));
        }
        let values = self.experiment.values(trial, settings, run.clone())?;
        let texts = contender.texts().map(|text| fill(text, &values)).collect::<Result<Vec<_>>>()?;
        let kept = state.running.as_ref().filter(|running| !self.is_due(running, &texts, trial));
        let run = match kept {
            Some(running) => running.run.clone(),
            None => self.start_contender(trial, settings, run)?,
        };
        if let Some(state) = &mut self.contenders[trial.contender] {
            let (point, run) = (trial.point.clone(), run.clone());
            state.running = Some(RunningContender { texts, point, run });
        }
        // The URL may change although the contender does not.
        self.experiment.values(trial, settings, run)
    }

    /// Returns whether a running contender must be started again for a trial.
    fn is_due(&self, running: &RunningContender, texts: &[String], trial: &Trial) -> bool {
        running.texts != texts
            || match self.experiment.order.restart {
                Restart::Change => false,
                Restart::Point => running.point != trial.point,
                Restart::Trial => true,
            }
    }

    /// Ends a contender and starts it with the values of a trial. Returns the values that the laboratory set.
    fn start_contender(
        &mut self,
        trial: &Trial,
        settings: &TrialSettings,
        mut run: Values,
    ) -> Result<Values> {
        let contender = &self.experiment.contenders[trial.contender];
        let name = contender.name.clone();
        if let Some(state) = &mut self.contenders[trial.contender] {
            state.running = None;
        }
        let agent = self.agent(trial.contender)?;
        agent.call::<()>(&Request::Stop { name: name.clone() })?;
        let folders: Folders = agent.call(&Request::Folder { name: name.clone() })?;
        run.insert("dir".to_owned(), folders.data.display().to_string());
        run.insert("config".to_owned(), String::new());
        let (mut values, mut named) = (self.experiment.values(trial, settings, run.clone())?, Vec::new());
        let mut processes = Vec::new();
        for process in &contender.processes {
            let config = folders.control.join(format!("{}.config", process.name));
            run.insert("config".to_owned(), config.display().to_string());
            values = self.experiment.values(trial, settings, run.clone())?;
            let mut filled = filled_process(process, &values, config, &mut named)?;
            if let Some(profiler) = self.profiler {
                let prefix = profiler.command_prefix(&folders.data.display().to_string(), &process.name);
                filled.words.splice(0..0, prefix);
            }
            processes.push(filled);
        }
        self.run_all(&contender.before, trial.contender, &values)?;
        self.agent(trial.contender)?.call::<()>(&Request::Start { name, processes })?;
        self.run_all(&contender.after, trial.contender, &values)?;
        Ok(run)
    }

    /// Runs commands of a contender on its machine; each must succeed.
    fn run_all(&mut self, commands: &[Vec<String>], contender: usize, values: &Values) -> Result<()> {
        for words in commands {
            let words = filled(words, values)?;
            let text = words.join(" ");
            let output: Output = self.agent(contender)?.call(&Request::Run(plain(words)))?;
            ensure!(
                output.code == Some(0),
                "{text} failed: {}{}",
                output.stdout.trim(),
                output.stderr.trim()
            );
        }
        Ok(())
    }

    /// Finds out whether a contender can take part.
    fn admit(&mut self, contender: &Contender) -> Result<State> {
        let program = self.program(contender)?;
        let agent = self.agents.get_mut(&contender.prefix).context("it has no agent")?;
        let mut values: Values = [("plimsoll".to_owned(), program)].into();
        if !contender.requires.is_empty() {
            let folders: Folders = agent.call(&Request::Folder { name: contender.name.clone() })?;
            values.insert("dir".to_owned(), folders.data.display().to_string());
        }
        let mut run = |words: &[String]| -> Result<Output> {
            let output = agent.call(&Request::Run(plain(filled(words, &values)?)))?;
            Ok(output)
        };
        if !contender.requires.is_empty() {
            let output = run(&contender.requires)?;
            ensure!(output.code == Some(0), "{}", output.stderr.trim());
        }
        let version = match contender.version.is_empty() {
            true => String::new(),
            false => run(&contender.version).map(|output| first_line(&output))?,
        };
        let names = contender.ports();
        let ports: Vec<u16> = agent.call(&Request::Ports(names.len()))?;
        let ports = names.into_iter().zip(ports.iter().map(u16::to_string)).collect();
        let machine = (!contender.prefix.is_empty()).then(|| agent.greeting.machine.clone());
        Ok(State { version, machine, ports, running: None })
    }

    fn agent(&mut self, contender: usize) -> Result<&mut Agent<'a>> {
        self.agents.get_mut(&self.experiment.contenders[contender].prefix).context("it has no agent")
    }

    /// Returns the path of plimsoll on the machine of a contender.
    fn program(&self, contender: &Contender) -> Result<String> {
        Ok(match (&contender.plimsoll, contender.prefix.is_empty()) {
            (None, true) => self.options.program.display().to_string(),
            _ => remote_program(contender).to_owned(),
        })
    }

    fn file_set(&self, files: &Files) -> FileSet {
        FileSet {
            folder: files.folder.clone(),
            pattern: files.pattern.clone(),
            bytes: files.bytes,
            count: files.count,
            seed: self.experiment.seed,
        }
    }
}

/// Returns a process with the values of its variables. `named` has the ports that earlier processes name,
/// and gets those of this one: a process opens the ports that it is the first to name.
fn filled_process(
    process: &ContenderProcess,
    values: &Values,
    config: PathBuf,
    named: &mut Vec<String>,
) -> Result<Process> {
    let host = values.get("host").map_or("127.0.0.1", String::as_str);
    let mut ready = Vec::new();
    for name in process.ports() {
        if !named.iter().any(|named| named == name) {
            named.push(name.to_owned());
            ready.extend(values.get(name).map(|port| format!("{host}:{port}")));
        }
    }
    let environment =
        process.environment.iter().map(|(name, value)| Ok((name.clone(), fill(value, values)?)));
    let cores = process.cores.as_ref().map(|cores| core_list(&fill(&cores.0, values)?)).transpose()?;
    Ok(Process {
        name: process.name.clone(),
        words: filled(&process.command, values)?,
        environment: environment.collect::<Result<_>>()?,
        config: (config, fill(&process.config, values)?),
        cores: cores.unwrap_or_default(),
        ready,
    })
}

/// Returns the mark of a trial whose files were not in the page cache as its condition says.
fn cache_mark(cache: Cache, cached: u64, bytes: u64) -> Option<String> {
    match cache {
        Cache::Prefetched if cached < bytes => {
            Some(format!("the page cache had {cached} of the {bytes} bytes of the files at the start"))
        }
        Cache::Cold | Cache::Dropped(_) if cached > 0 => {
            Some(format!("{cached} bytes of the files stayed in the page cache"))
        }
        _ => None,
    }
}

/// Returns the measured time by our clock: as the generator reports it, or up to its end.
fn window(figures: &LoadFigures, end: f64) -> (f64, f64) {
    figures.window.map_or((end - figures.seconds, end), |window| (window.from, window.to))
}

fn filled(words: &[String], values: &Values) -> Result<Vec<String>> {
    let words = words.iter().map(|word| fill(word, values));
    words.filter(|word| !word.as_ref().is_ok_and(String::is_empty)).collect()
}

fn plain(words: Vec<String>) -> Command {
    Command { words, seconds_max: COMMAND_SECONDS_MAX, ..Command::default() }
}

fn first_line(output: &Output) -> String {
    let lines = output.stdout.lines().chain(output.stderr.lines());
    lines.map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
}
