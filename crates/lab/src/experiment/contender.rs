//! A contender: the processes of one system under test, and the URL of its files.
//!
//! It starts nothing. Invariant: every text of a contender is data of the experiment file or of a built-in
//! contender, so that a reader can add a system without a line of code.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use serde::Deserialize;

use super::RUN_VARIABLES;
use super::inherit::{name_of, with_built_in};
use super::load::USERS;
use super::load_tool::LoadTool;
use super::mistake::without_position;
use super::template::{Values, fill, variables};
use super::value::Scalar;

/// The URL of the files of a contender that states none.
const URL: &str = "http://{host}:{port}/{file}";
/// A system under test.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contender {
    /// The name in tables and plots.
    pub name: String,
    /// Its distinguishing feature, in one line.
    #[serde(default)]
    pub about: String,
    /// The contender whose values it has where it states none.
    #[serde(default)]
    pub like: Option<String>,
    /// Whether the other contenders are compared with it, and with it over several runs.
    #[serde(default)]
    pub reference: bool,
    /// The pattern of the requested URLs.
    #[serde(default = "url")]
    pub url: String,
    /// The path of the certificate by which the generator trusts it, on the generator's machine.
    #[serde(default)]
    pub ca: Option<String>,
    /// The address of the machine on which it runs, as the generator reaches it.
    #[serde(default = "host")]
    pub host: String,
    /// The words before a command that run it on that machine, such as `ssh HOST`; none for this machine.
    #[serde(default)]
    pub prefix: Vec<String>,
    /// The path of plimsoll on that machine.
    #[serde(default)]
    pub plimsoll: Option<String>,
    /// A command that prints its version.
    #[serde(default)]
    pub version: Vec<String>,
    /// A command that must succeed; if it fails, the contender is left out.
    #[serde(default)]
    pub requires: Vec<String>,
    /// Commands that run before its processes start, such as the creation of an account.
    #[serde(default)]
    pub before: Vec<Vec<String>>,
    /// Commands that run when its processes accept connections.
    #[serde(default)]
    pub after: Vec<Vec<String>>,
    /// Its processes, in the order in which they start. None: the server at `url` runs already.
    #[serde(default)]
    pub processes: Vec<Process>,
    /// More processes, which start after these: they run beside those of the contender that it is like.
    #[serde(default)]
    companions: Vec<Process>,
    /// The tool that puts the load on it, if `plimsoll load` does not.
    #[serde(default)]
    pub load_tool: Option<LoadTool>,
    /// The command of a contender with one process.
    #[serde(default)]
    command: Vec<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default)]
    config: String,
    #[serde(default)]
    cores: Option<Scalar>,
    /// More variables for its texts.
    #[serde(default)]
    pub variables: BTreeMap<String, Scalar>,
    /// The value of `{logs}` if requests are logged, and otherwise.
    #[serde(default)]
    logs_on: String,
    #[serde(default)]
    logs_off: String,
    /// Whether requests are logged: `on` or `off`.
    #[serde(default = "off")]
    logs: Scalar,
    /// The Debian package of its program.
    #[serde(default)]
    pub package: Option<String>,
    /// Whether it is plimsoll; the others are peers.
    #[serde(default)]
    pub ours: bool,
}

/// A process of a contender.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Process {
    /// The name in tables and plots.
    pub name: String,
    /// The command that runs it in the foreground; it must end at SIGTERM.
    pub command: Vec<String>,
    /// Additions to the inherited environment.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Its configuration file, `{config}` in its texts.
    #[serde(default)]
    pub config: String,
    /// The cores that it may use, such as `0` or `0,1`; all if absent.
    #[serde(default)]
    pub cores: Option<Scalar>,
}

fn url() -> String {
    URL.to_owned()
}

fn off() -> Scalar {
    Scalar("off".to_owned())
}

fn host() -> String {
    "127.0.0.1".to_owned()
}

impl Contender {
    /// Reads a contender of an experiment: the values of a built-in one, replaced by its own. Values of an
    /// earlier contender are in `own` already.
    ///
    /// # Errors
    /// An unknown key, an unknown built-in contender, or neither a command nor a URL.
    pub(super) fn read(own: toml::Table) -> Result<Contender> {
        let name = name_of(&own).context("a contender has no `name`")?.to_owned();
        Contender::merged(own).with_context(|| format!("contender {name:?}"))
    }

    fn merged(own: toml::Table) -> Result<Contender> {
        let has_url = own.contains_key("url");
        let table = with_built_in(own)?;
        let read = table.try_into::<Contender>();
        let mut contender = read.map_err(|error| anyhow!(without_position(&error)))?;
        contender.join_short_form()?;
        contender.processes.append(&mut contender.companions);
        ensure!(
            has_url || !contender.processes.is_empty(),
            "it has no `command`, no `processes` and no `url`: say how to start it, or where it runs"
        );
        contender.check_names()?;
        contender.check_load_tool()?;
        Ok(contender)
    }

    /// Turns `command`, `config` and so on into a process.
    fn join_short_form(&mut self) -> Result<()> {
        if self.command.is_empty() {
            let is_alone = self.config.is_empty() && self.environment.is_empty() && self.cores.is_none();
            ensure!(is_alone, "`config`, `environment` and `cores` need a `command` beside them");
            return Ok(());
        }
        ensure!(self.processes.is_empty(), "it has `command` and `processes`: write all as `processes`");
        self.processes.push(Process {
            name: "server".to_owned(),
            command: std::mem::take(&mut self.command),
            environment: std::mem::take(&mut self.environment),
            config: std::mem::take(&mut self.config),
            cores: self.cores.take(),
        });
        Ok(())
    }

    fn check_names(&self) -> Result<()> {
        for (at, process) in self.processes.iter().enumerate() {
            ensure!(!process.command.is_empty(), "process {:?} has an empty `command`", process.name);
            let is_twice = self.processes[..at].iter().any(|other| other.name == process.name);
            ensure!(!is_twice, "two processes are called {:?}", process.name);
        }
        Ok(())
    }

    fn check_load_tool(&self) -> Result<()> {
        let Some(tool) = &self.load_tool else { return Ok(()) };
        ensure!(!self.reference, "`reference = true` needs a contender without a `load_tool`");
        tool.check()
    }

    /// Returns the texts of the load on it: the URL and the certificate, or the command of its load tool.
    pub fn load_texts(&self) -> impl Iterator<Item = &str> {
        let words: &[String] = match &self.load_tool {
            Some(tool) => &tool.command,
            None => std::slice::from_ref(&self.url),
        };
        words.iter().chain(&self.ca).map(String::as_str)
    }

    /// Returns all texts that may have variables, but for those of the load.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        let commands = [&self.version, &self.requires, &self.prefix].into_iter();
        let words = commands.chain(&self.before).chain(&self.after).flatten();
        let words = words.chain([&self.host]).map(String::as_str);
        let variables = self.variables.values().map(|value| value.0.as_str());
        let logs = [&self.logs.0, &self.logs_on, &self.logs_off].into_iter().map(String::as_str);
        words.chain(logs).chain(variables).chain(self.processes.iter().flat_map(Process::texts))
    }

    /// Returns the names of the ports that it uses: `port`, `port.auth` and so on, each once, in the order
    /// in which its processes name them.
    pub fn ports(&self) -> Vec<String> {
        let mut ports: Vec<String> = Vec::new();
        for name in self.processes.iter().flat_map(Process::ports).chain(self.load_texts().flat_map(ports_of))
        {
            if !ports.iter().any(|port| port == name) {
                ports.push(name.to_owned());
            }
        }
        ports
    }

    /// Returns the variables that an experiment must set for it: by `variables`, the sweep or the load.
    pub(super) fn needed_variables(&self) -> BTreeSet<&str> {
        let is_set = |name: &str| {
            let is_own = self.variables.contains_key(name) || ["logs", USERS].contains(&name);
            is_own || is_port(name) || RUN_VARIABLES.contains(&name)
        };
        self.texts().chain(self.load_texts()).flat_map(variables).filter(|name| !is_set(name)).collect()
    }

    /// Returns the variables of its own and `{logs}`, filled with `values`.
    ///
    /// # Errors
    /// An unknown variable.
    pub(super) fn own_values(&self, values: &Values) -> Result<Values> {
        let mut own = Values::new();
        let logs = match fill(&self.logs.0, values)?.as_str() {
            "on" => &self.logs_on,
            "off" => &self.logs_off,
            other => bail!("`logs` is {other:?}: write on or off"),
        };
        own.insert("logs".to_owned(), fill(logs, values)?);
        for (name, value) in &self.variables {
            own.insert(name.clone(), fill(&value.0, values)?);
        }
        Ok(own)
    }
}

impl Process {
    fn texts(&self) -> impl Iterator<Item = &str> {
        let words = self.command.iter().chain(self.environment.values()).chain([&self.config]);
        words.map(String::as_str).chain(self.cores.iter().map(|cores| cores.0.as_str()))
    }

    /// Returns the names of the ports in its texts.
    pub fn ports(&self) -> impl Iterator<Item = &str> {
        self.texts().flat_map(ports_of)
    }
}

fn ports_of(text: &str) -> impl Iterator<Item = &str> {
    variables(text).filter(|name| is_port(name))
}

/// Returns whether a variable is a port that the laboratory chooses.
pub(super) fn is_port(name: &str) -> bool {
    name == "port" || name.starts_with("port.")
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::experiment::inherit::built_in_names;

    fn read(text: &str) -> Result<Contender> {
        Contender::read(text.parse().unwrap())
    }

    #[test]
    fn companions_start_after_the_processes_of_the_built_in_contender() {
        let text = "like = \"nginx-tuned\"\nname = \"mine\"\ncores = 0\n\
                    [[companions]]\nname = \"readers\"\ncommand = [\"read\", \"{port}\"]\n";
        let contender = read(text).unwrap();
        let names: Vec<&str> = contender.processes.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["server", "readers"]);
        let twice = format!("{:#}", read(&text.replace("readers", "server")).unwrap_err());
        assert!(twice.contains("two processes are called"), "{twice}");
    }

    #[test]
    fn every_built_in_contender_can_be_read() {
        for name in built_in_names() {
            let contender = read(&format!("like = \"{name}\"")).unwrap();
            assert_eq!(contender.name, name);
            assert!(!contender.processes.is_empty() && contender.ports().contains(&"port".to_owned()));
        }
    }

    #[test]
    fn own_values_replace_those_of_the_built_in_contender() {
        let contender = read("like = \"nginx-tuned\"\nname = \"mine\"\ncores = 0\nlogs = \"on\"").unwrap();
        assert_eq!(contender.name, "mine");
        assert_eq!(contender.processes[0].cores, Some(Scalar("0".to_owned())));
        let values: Values = [("dir".to_owned(), "/own".to_owned())].into();
        assert!(contender.own_values(&values).unwrap()["logs"].starts_with("access_log /own/access.log"));
    }

    #[test]
    fn the_ports_of_all_processes_are_found_once() {
        let contender = read(
            "name = \"three\"\nurl = \"ftp://{host}:{port}/{file}\"\n\
             [[processes]]\nname = \"db\"\ncommand = [\"db\", \"{port.db}\"]\n\
             [[processes]]\nname = \"auth\"\ncommand = [\"auth\", \"{port.auth}\", \"{port.db}\"]\n\
             [[processes]]\nname = \"front\"\ncommand = [\"front\"]\nconfig = \"{port} {port.auth}\"",
        )
        .unwrap();
        assert_eq!(contender.ports(), ["port.db", "port.auth", "port"]);
    }

    #[test]
    fn a_wrong_contender_is_refused_with_the_reason() {
        for (text, why) in [
            ("name = \"a\"", "say how to start it"),
            ("name = \"a\"\ncomand = [\"b\"]", "comand"),
            ("name = \"a\"\nconfig = \"b\"\nurl = \"http://h/\"", "need a `command`"),
            ("like = \"nginx\"", "nginx-tuned"),
            ("about = \"b\"", "no `name`"),
            ("like = \"iperf3\"\nreference = true", "without a `load_tool`"),
            ("name = \"a\"\ncommand = [\"b\"]\n[[processes]]\nname = \"c\"\ncommand = [\"d\"]", "write all"),
            ("name = \"a\"\n[[processes]]\nname = \"c\"\ncommand = []", "empty `command`"),
        ] {
            let refused = format!("{:#}", read(text).unwrap_err());
            assert!(refused.contains(why), "{refused}");
        }
    }
}
