//! Builds the configuration from the command line, the environment and an optional file.
//!
//! It has no side effects: a reload loads again. Invariant: a value of the file counts only if neither a
//! flag nor the environment gives one.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args as _, Command, CommandFactory as _, FromArgMatches as _};

use super::wrong_value::wrong_usage;
use super::{Config, Configured, Fixed, ServerCommand, file};
use crate::cli::Plimsoll;

/// The position of the file's settings among the arguments: after the program and its command.
const BEHIND_COMMAND: usize = 2;

/// Adapts a configuration to another kind of server. The function tells whether a setting was given by
/// name.
type Adjust = fn(&mut Config, &dyn Fn(&str) -> bool);

/// A configuration and its sources.
#[derive(Clone)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    command: ServerCommand,
    typed: Vec<OsString>,
    file: Option<PathBuf>,
    /// Adapts the configuration to another kind of server.
    adjust: Adjust,
    /// The names of the settings that a flag, the environment or the file gives.
    given: BTreeSet<String>,
    /// The values of the fixed settings as written, to find those that a reload would change.
    fixed: BTreeMap<String, Vec<OsString>>,
}

impl Configured {
    /// Loads the configuration of this process.
    pub(crate) fn load(self) -> anyhow::Result<Loaded> {
        load(ServerCommand::Serve, std::env::args_os().collect(), self.config)
    }
}

pub(super) fn load(
    command: ServerCommand,
    typed: Vec<OsString>,
    file: Option<PathBuf>,
) -> anyhow::Result<Loaded> {
    let matches_of = |arguments: Vec<OsString>| {
        let matches = Plimsoll::command().try_get_matches_from(arguments);
        let matches = matches.map_err(|error| wrong_usage(&error, &typed, command))?;
        let (_, of_command) = matches.subcommand().context("no command was typed")?;
        anyhow::Ok(of_command.clone())
    };
    let mut all = typed.clone();
    if let Some(path) = &file {
        let given = matches_of(typed.clone())?;
        let missing = settings(path)?.into_iter().filter(|setting| !is_given(&given, &setting.id));
        let missing: Vec<OsString> = missing.flat_map(|setting| setting.typed).map(OsString::from).collect();
        all.splice(BEHIND_COMMAND..BEHIND_COMMAND, missing);
    }
    let matches = matches_of(all)?;
    let Configured { settings: mut config, .. } = Configured::from_arg_matches(&matches)?;
    config.fixed.command = command;
    config.fixed.settle();
    Ok(Loaded {
        config,
        command,
        typed,
        file,
        adjust: |_, _| {},
        given: given_of(&matches),
        fixed: fixed_of(&matches),
    })
}

fn settings(path: &Path) -> anyhow::Result<Vec<file::Setting>> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the configuration {shown}; --config names a TOML file"))?;
    file::settings(&text).map_err(|wrong| anyhow::anyhow!("{shown}, {wrong}"))
}

fn is_given(matches: &ArgMatches, id: &str) -> bool {
    matches!(matches.value_source(id), Some(ValueSource::CommandLine | ValueSource::EnvVariable))
}

fn given_of(matches: &ArgMatches) -> BTreeSet<String> {
    let command = Config::augment_args(Command::new("given"));
    let ids = command.get_arguments().map(|arg| arg.get_id().to_string());
    ids.filter(|id| is_given(matches, id)).collect()
}

fn fixed_of(matches: &ArgMatches) -> BTreeMap<String, Vec<OsString>> {
    let command = Fixed::augment_args(Command::new("fixed"));
    let written = |arg: &clap::Arg| {
        let values = matches.get_raw(arg.get_id().as_str()).into_iter().flatten();
        (arg.get_id().to_string(), values.map(ToOwned::to_owned).collect())
    };
    command.get_arguments().map(written).collect()
}

impl Loaded {
    /// Loads the configuration of `command` from flags of `plimsoll serve`, a file and the environment, and
    /// adapts it by `adjust`.
    pub(crate) fn of(
        command: ServerCommand,
        flags: Vec<OsString>,
        file: Option<PathBuf>,
        adjust: Adjust,
    ) -> anyhow::Result<Loaded> {
        let typed = ["plimsoll", "serve"].map(OsString::from).into_iter().chain(flags).collect();
        Ok(load(command, typed, file)?.adjusted(adjust))
    }

    fn adjusted(mut self, adjust: Adjust) -> Loaded {
        adjust(&mut self.config, &|id| self.given.contains(id));
        self.adjust = adjust;
        self
    }

    /// Loads the configuration again, with the present contents of the file.
    pub(crate) fn again(&self) -> anyhow::Result<Loaded> {
        Ok(load(self.command, self.typed.clone(), self.file.clone())?.adjusted(self.adjust))
    }

    /// Returns the keys of the fixed settings that differ in `other`.
    pub(crate) fn changes_of_fixed(&self, other: &Loaded) -> Vec<String> {
        let differs = |(id, values): &(&String, &Vec<OsString>)| other.fixed.get(*id) != Some(*values);
        self.fixed.iter().filter(differs).map(|(id, _)| file::key_of(id)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Proxied;
    use super::*;

    fn serve(args: &[&str]) -> Loaded {
        let typed: Vec<OsString> = ["plimsoll", "serve"].iter().chain(args).map(OsString::from).collect();
        let file = args.iter().skip_while(|arg| **arg != "--config").nth(1).map(PathBuf::from);
        load(ServerCommand::Serve, typed, file).unwrap()
    }

    fn packaged() -> String {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/plimsoll.toml");
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn the_packaged_file_has_every_key_and_its_default() {
        let lines = packaged();
        let setting = |line: &'_ str| -> Option<String> {
            let text = line.strip_prefix('#').unwrap_or(line);
            (!text.starts_with(' ') && !text.is_empty()).then(|| text.to_owned())
        };
        let text: String = lines.lines().filter_map(setting).map(|line| line + "\n").collect();
        let path = std::env::temp_dir().join(format!("plimsoll-defaults-{}.toml", std::process::id()));
        std::fs::write(&path, &text).unwrap();
        let from_file = serve(&["--config", path.to_str().unwrap()]);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(from_file.config, serve(&[]).config);
        let mut written: Vec<String> = file::settings(&text).unwrap().into_iter().map(|s| s.id).collect();
        let known = Config::augment_args(Command::new("known"));
        let mut known: Vec<String> = known.get_arguments().map(|arg| arg.get_id().to_string()).collect();
        written.sort();
        known.sort();
        assert_eq!(written, known);
    }

    #[test]
    fn every_setting_can_be_a_flag_and_a_variable_of_its_name() {
        for arg in Config::augment_args(Command::new("known")).get_arguments() {
            let id = arg.get_id().as_str();
            assert_eq!(arg.get_long(), Some(id.replace('_', "-").as_str()));
            let variable = format!("PLIMSOLL_{}", id.to_uppercase());
            assert_eq!(arg.get_env(), Some(std::ffi::OsStr::new(&variable)));
        }
    }

    #[test]
    fn the_folder_of_data_is_where_the_rest_is_kept_unless_it_is_put_elsewhere() {
        let moved = serve(&["--data", "/srv/files"]).config.fixed;
        assert_eq!(moved.directory, "sqlite:/srv/files/directory.sqlite");
        assert_eq!(moved.transfer_log.to_string(), "/srv/files/transfers.jsonl");
        let remote = serve(&["--directory", "sqlite:/db/a.sqlite", "--transfer-log", "off"]).config.fixed;
        assert_eq!(remote.directory, "sqlite:/db/a.sqlite");
        assert_eq!(remote.transfer_log.to_string(), "off");
    }

    #[test]
    fn without_accounts_the_transfer_log_is_off_by_default() {
        let guests = serve(&["--accounts", "false", "--ftp", ":2121"]).config.fixed;
        assert_eq!(guests.transfer_log.to_string(), "off");
        let named = serve(&["--accounts", "false", "--transfer-log", "/log/transfers"]).config.fixed;
        assert_eq!(named.transfer_log.to_string(), "/log/transfers");
    }

    #[test]
    fn sign_up_is_closed_by_default_also_on_loopback() {
        assert!(!serve(&[]).config.sign_up_is_open());
        assert!(serve(&["--signup", "open"]).config.sign_up_is_open());
    }

    #[test]
    fn the_proxy_protocol_is_for_all_listeners_or_for_those_of_some_protocols() {
        let expects = |args: &[&str]| {
            let spoken = serve(args).config.fixed.proxy_protocol;
            let is_spoken = |protocol| spoken.iter().any(|protocols| protocols.includes(protocol));
            [Proxied::Http, Proxied::Ftp, Proxied::Classic].map(is_spoken)
        };
        assert_eq!(expects(&[]), [false; 3]);
        assert_eq!(expects(&["--proxy-protocol"]), [true; 3]);
        assert_eq!(expects(&["--proxy-protocol=http,ftp"]), [true, true, false]);
    }

    #[test]
    fn a_proxy_cache_of_less_than_a_mebibyte_is_refused() {
        for flag in ["--proxy-cache-size", "--proxy-cache-memory"] {
            let of = |size: &str| {
                let typed = ["plimsoll", "serve", flag, size].iter().map(OsString::from).collect();
                load(ServerCommand::Proxy, typed, None).map(|loaded| loaded.config)
            };
            for size in ["0", "1023KiB"] {
                let refused = of(size).unwrap_err().to_string();
                assert!(refused.contains("it must be from 1MiB to "), "{refused}");
            }
            assert!(of("1MiB").is_ok());
        }
    }

    #[test]
    fn a_change_of_a_fixed_setting_is_reported_by_name() {
        let (old, new) = (serve(&["--grace", "5s"]), serve(&["--grace", "6s", "--signup", "open"]));
        assert_eq!(old.changes_of_fixed(&new), ["grace"]);
        let new =
            serve(&["--grace", "5s", "--proxy-cache", "/cache", "--log-format", "json", "--http", ":1"]);
        assert_eq!(old.changes_of_fixed(&new), ["http", "log.format", "proxy.cache"]);
    }
}
