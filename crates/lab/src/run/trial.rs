//! The command of the generator for a trial, and the marks of a distorted measurement.
//!
//! It starts nothing. Invariant: the generator's figures are adopted unchanged.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;

use super::limits::{COUNTED_TRIAL_SECONDS_MAX, OVERTIME_SECONDS_MAX, QUOTED_CHARACTERS_MAX};
use crate::agent::{Command, Output};
use crate::experiment::conditions::Cache;
use crate::experiment::contender::Contender;
use crate::experiment::load_tool::LoadTool;
use crate::experiment::template::{Values, fill};
use crate::experiment::{TrialSettings, core_list};
use crate::results::{BEGAN_BUSY, LoadFigures, Measured, ProcessUse};
use plimsoll_load::limits::START_SPREAD_SHARE;

/// How far Little's law may be off.
const LITTLE_SHARE: f64 = 0.05;
/// The share of a core above which the sampling itself disturbs.
const PROBE_SHARE: f64 = 0.02;

/// The output of the generator for a test file of document 003's client.
#[derive(Deserialize)]
struct TestFigures {
    tests: Vec<LoadFigures>,
}

/// Returns the generator's arguments with a placeholder for the URL.
pub(super) fn plain_arguments(settings: &TrialSettings) -> Result<Vec<String>> {
    let url = if settings.files.is_some() && settings.load.xml().is_none() {
        "http://127.0.0.1:1/{}"
    } else {
        "http://127.0.0.1:1/"
    };
    arguments(settings, url, None)
}

/// Returns the generator's arguments. `root` is the folder with the files, if the generator can read them.
fn arguments(settings: &TrialSettings, url: &str, root: Option<&Path>) -> Result<Vec<String>> {
    let mut arguments = vec![url.to_owned(), "--json".to_owned(), "--quiet".to_owned()];
    let numbered = settings.files.as_ref().filter(|_| url.contains("{}"));
    if let Some(files) = numbered {
        arguments.extend(["--files".to_owned(), format!("0..{}", files.count)]);
    }
    arguments.extend(settings.load.arguments());
    let is_warm = matches!(settings.conditions.cache, Cache::Warm | Cache::Prefetched);
    match root.zip(numbered) {
        // Under a memory limit, the pages that the generator reads would be outside of the limit.
        Some((root, files)) if is_warm && settings.conditions.memory.is_none() => {
            let folder = root.join(&files.folder).display().to_string();
            arguments.extend(["--against".to_owned(), folder]);
        }
        _ => {}
    }
    if !is_warm && !settings.load.0.contains_key("verify") {
        // The generator reads the expected bodies before the start, which would warm the cache.
        arguments.extend(["--verify".to_owned(), "none".to_owned()]);
    }
    Ok(arguments)
}

/// Returns the command of the generator for a contender, with the values of the variables. `root` is the
/// folder with the files, if the generator can read them.
pub(super) fn command(
    program: &str,
    settings: &TrialSettings,
    (contender, values): (&Contender, &Values),
    root: Option<&Path>,
) -> Result<Command> {
    let url = fill(&contender.url, values)?;
    let words = [program.to_owned(), "load".to_owned()].into_iter().chain(arguments(settings, &url, root)?);
    let words = words.chain(tls_arguments(settings, contender, values)?);
    let mut environment = std::collections::BTreeMap::new();
    if let Some(password) = settings.load.password() {
        environment.insert("PLIMSOLL_PASSWORD".to_owned(), password.to_owned());
    }
    Ok(Command {
        words: words.collect(),
        environment,
        cores: Vec::new(),
        seconds_max: seconds_max(settings)?,
        input: settings.load.xml().unwrap_or_default().to_owned(),
    })
}

/// Returns the generator's arguments for a contender with TLS. They cannot be checked before it has made its
/// certificate.
fn tls_arguments(settings: &TrialSettings, contender: &Contender, values: &Values) -> Result<Vec<String>> {
    let mut arguments = Vec::new();
    if let Some(ca) = &contender.ca {
        arguments.extend(["--ca".to_owned(), fill(ca, values)?]);
        let resume = settings.load.tls_resume();
        arguments.extend(resume.into_iter().flat_map(|resume| ["--tls-resume", resume].map(str::to_owned)));
    }
    Ok(arguments)
}

/// Returns the command of a load tool, on the cores of the generator.
pub(super) fn tool_command(tool: &LoadTool, settings: &TrialSettings, values: &Values) -> Result<Command> {
    let cores = settings.load.cores().map(core_list).transpose()?;
    Ok(Command {
        words: tool.words(values)?,
        cores: cores.unwrap_or_default(),
        seconds_max: seconds_max(settings)?,
        ..Command::default()
    })
}

/// Returns the time after which the load is ended.
fn seconds_max(settings: &TrialSettings) -> Result<f64> {
    let planned = settings.load.planned_time()?.map(|time| time.as_secs_f64() + OVERTIME_SECONDS_MAX);
    Ok(planned.unwrap_or(COUNTED_TRIAL_SECONDS_MAX))
}

/// Parses the output of a load tool.
///
/// # Errors
/// The tool failed, or its figures are missing.
pub(super) fn tool_figures(
    tool: &LoadTool,
    output: &Output,
    settings: &TrialSettings,
) -> Result<LoadFigures> {
    let printed: String =
        output.stderr.chars().chain(output.stdout.chars()).take(QUOTED_CHARACTERS_MAX).collect();
    ensure!(output.code == Some(0), "the load tool failed: {}", printed.trim());
    let (bytes, seconds) = tool.read(&output.stdout)?;
    #[allow(clippy::cast_precision_loss, reason = "a count below 2^52")]
    let bytes_per_second = bytes as f64 / seconds;
    let users = settings.load.users()?;
    Ok(LoadFigures { users, seconds, bytes, bytes_per_second, ..LoadFigures::of_tool() })
}

/// Parses the generator's output, which has figures also after errors.
///
/// # Errors
/// There are no figures, or bodies of another length than that of the files.
pub(super) fn figures(output: &Output, settings: &TrialSettings) -> Result<LoadFigures> {
    let why = || format!("the generator printed no figures: {}", output.stderr.trim());
    let figures: LoadFigures = match settings.load.xml() {
        None => serde_json::from_str(&output.stdout).with_context(why)?,
        Some(_) => {
            let mut outcomes: TestFigures = serde_json::from_str(&output.stdout).with_context(why)?;
            outcomes.tests.pop().with_context(why)?
        }
    };
    if let Some(files) = settings.files.as_ref().filter(|_| settings.load.is_download()) {
        let expected = figures.requests.saturating_mul(files.bytes);
        ensure!(
            figures.bytes == expected,
            "the contender sent {} bytes in {} responses; its files have {} each",
            figures.bytes,
            figures.requests,
            files.bytes
        );
    }
    Ok(figures)
}

/// Returns the marks of a trial: signs that its figures are distorted.
pub(super) fn marks(measured: &Measured, settled: bool, settle: Duration) -> Vec<String> {
    let load = &measured.load;
    let mut marks = Vec::new();
    if load.generator.is_the_limit {
        marks.push("the generator may have been the limit: give it more cores or threads".to_owned());
    }
    let errors = load.errors_all();
    if errors > 0 {
        let kinds: Vec<String> = load.errors.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        marks.push(format!("{errors} requests failed: {}", kinds.join(", ")));
    }
    for (kind, count) in &load.failed_checks {
        marks.push(format!("{count} responses failed a later check: {kind}"));
    }
    if load.requests > 0 && (load.littles_law.ratio - 1.0).abs() > LITTLE_SHARE {
        marks.push(format!("Little's law is off: X(R+Z)/N is {:.2}", load.littles_law.ratio));
    }
    // The starts of an open loop are planned at intervals.
    let starts = load.starts.filter(|_| load.pace == "closed");
    if let Some(starts) = starts.filter(|starts| starts.spread_seconds > load.seconds * START_SPREAD_SHARE) {
        marks.push(format!("the first requests were spread over {:.1} ms", starts.spread_seconds * 1000.0));
    }
    if load.verified == 0 && load.requests > 0 {
        marks.push("no body was compared with the expected bytes; their lengths were".to_owned());
    }
    if !settled && !settle.is_zero() {
        marks.push(BEGAN_BUSY.to_owned());
    }
    let has_no_time = |process: &&ProcessUse| process.cpu_seconds().is_none();
    if let Some(process) = measured.processes.iter().find(has_no_time) {
        marks.push(format!(
            "processes of {:?} ended with their CPU time: run the agent as root, with control groups",
            process.name
        ));
    }
    if let Some((core, busy)) = measured.machine.as_ref().and_then(|machine| machine.impossible_core()) {
        marks.push(format!(
            "core {core} was busy for {:.0} % of the time, which is impossible: no figure of cores is used",
            busy * 100.0
        ));
    }
    if measured.machine.as_ref().is_some_and(|machine| machine.probe_share > PROBE_SHARE) {
        marks.push("the sampling used more than 2 % of a core".to_owned());
    }
    marks
}
