//! A configuration file: TOML whose keys are the names of the flags.
//!
//! It has no list of keys of its own: it looks up each key among the arguments. The argument's own parser
//! checks the value, so that file and command line cannot disagree. `limits.head_time` is
//! `--limits-head-time`. Invariants: an unknown key or an invalid value is an error with its line. No key
//! is ignored.

use std::fmt;
use std::ops::Range;

use clap::{Arg, Args as _, Command};
use plimsoll_wire::nearest::nearest;
use toml::de::{DeTable, DeValue};

use super::Config;
use super::server_command::PROXY_PROTOCOL;
use super::wrong_value::{reason_of, value_of};

/// The tables; an argument's name that begins with one of these belongs to it.
const TABLES: [&str; 6] = ["lab", "limits", "log", "proxy", "quota", "session"];

/// Keys that a flag of `plimsoll proxy` suggests, and the right ones.
const KEYS_OF_FLAGS: [(&str, &str); 2] =
    [("proxy.listen", "http"), ("proxy.send_proxy_protocol", "proxy.header")];

/// A key and its values, as an argument.
pub(super) struct Setting {
    /// The name of the argument for clap.
    pub(super) id: String,
    /// The arguments as they would be typed, one for each value.
    pub(super) typed: Vec<String>,
}

/// An error in a file, and its line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ConfigError {
    line: usize,
    problem: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.problem)
    }
}

/// Parses the text of a file into settings.
pub(super) fn settings(text: &str) -> Result<Vec<Setting>, ConfigError> {
    let root = DeTable::parse(text).map_err(|error| {
        wrong(text, &error.span().unwrap_or_default(), format!("it is no TOML: {}", error.message()))
    })?;
    let command = Config::augment_args(Command::new("file").no_binary_name(true));
    let mut reader = Reader { text, command, settings: Vec::new() };
    reader.read(root.get_ref(), "")?;
    Ok(reader.settings)
}

/// Returns the key of an argument.
pub(super) fn key_of(id: &str) -> String {
    let in_table = id.split_once('_').filter(|(table, _)| TABLES.contains(table) && id != PROXY_PROTOCOL);
    in_table.map_or_else(|| id.to_owned(), |(table, rest)| format!("{table}.{rest}"))
}

struct Reader<'a> {
    text: &'a str,
    command: Command,
    settings: Vec<Setting>,
}

impl Reader<'_> {
    fn read(&mut self, table: &DeTable<'_>, prefix: &str) -> Result<(), ConfigError> {
        for (name, value) in table {
            let key = format!("{prefix}{}", name.get_ref());
            match value.get_ref() {
                DeValue::Table(inner) if self.arg(&key).is_none() => self.read(inner, &format!("{key}."))?,
                value => self.set(&key, &name.span(), value)?,
            }
        }
        Ok(())
    }

    fn arg(&self, key: &str) -> Option<&Arg> {
        self.command.get_arguments().find(|arg| key_of(arg.get_id().as_str()) == key)
    }

    fn set(&mut self, key: &str, at: &Range<usize>, value: &DeValue<'_>) -> Result<(), ConfigError> {
        let arg = self.arg(key).ok_or_else(|| wrong(self.text, at, self.unknown(key)))?;
        let values = texts(value).ok_or_else(|| {
            wrong(self.text, at, format!("{key} cannot be a {}: write a string", value.type_str()))
        })?;
        if values.is_empty() && !arg.get_default_values().is_empty() {
            let problem = format!("{key} has no value: give it one, or leave the key out for the default");
            return Err(wrong(self.text, at, problem));
        }
        if values.len() > 1 && arg.get_action().takes_values() && !is_list(arg) {
            return Err(wrong(self.text, at, format!("{key} takes one value, not a list")));
        }
        let (id, long) = (arg.get_id().to_string(), arg.get_long().unwrap_or_default());
        let typed: Vec<String> = values.iter().map(|value| format!("--{long}={value}")).collect();
        self.judge(&typed).map_err(|problem| wrong(self.text, at, format!("{key}: {problem}")))?;
        self.settings.push(Setting { id, typed });
        Ok(())
    }

    fn unknown(&self, key: &str) -> String {
        let missing = format!("there is no key {key:?}");
        let of_proxy = key.strip_prefix("proxy.");
        if let Some((_, right)) = KEYS_OF_FLAGS.iter().find(|(flag, _)| *flag == key) {
            return format!("{missing}; the key is {right:?}{}", place_of(right));
        }
        // A proxy has some settings of `plimsoll serve`, such as `engine`.
        if let Some(right) = of_proxy.filter(|name| self.arg(name).is_some()) {
            return format!("{missing}; the key is {right:?}{}", place_of(right));
        }
        let keys: Vec<String> =
            self.command.get_arguments().map(|arg| key_of(arg.get_id().as_str())).collect();
        match nearest(key, keys.iter().map(String::as_str)) {
            Some(near) => format!("{missing}; did you mean {near:?}?"),
            None if of_proxy.is_some() => format!("{missing}; `plimsoll proxy --help` has them, as flags"),
            None => format!("{missing}; `plimsoll serve --help` has them all, as flags"),
        }
    }

    /// Checks the values by the arguments' own parsers.
    fn judge(&self, typed: &[String]) -> Result<(), String> {
        let judged = self.command.clone().try_get_matches_from(typed);
        judged.map(drop).map_err(|error| said_by(&error))
    }
}

/// Returns where a key is written, if it is in no table.
fn place_of(key: &str) -> &'static str {
    if key.contains('.') { "" } else { ", above the first table" }
}

/// Returns whether an argument may be given several times.
fn is_list(arg: &Arg) -> bool {
    matches!(arg.get_action(), clap::ArgAction::Append)
}

/// Returns the text of a value, or of each value in a list; `None` for other types.
fn texts(value: &DeValue<'_>) -> Option<Vec<String>> {
    match value {
        DeValue::Array(values) => values.iter().map(|value| text_of(value.get_ref())).collect(),
        value => text_of(value).map(|text| vec![text]),
    }
}

fn text_of(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        // Underscores between digits have no meaning.
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().replace('_', "")),
        DeValue::Boolean(value) => Some(value.to_string()),
        _ => None,
    }
}

/// Returns the reason of a clap error, without its advice for a command line.
fn said_by(error: &clap::Error) -> String {
    let value = value_of(error).map(|value| format!("{value:?} will not do; ")).unwrap_or_default();
    format!("{value}{}", reason_of(error))
}

fn wrong(text: &str, at: &Range<usize>, problem: String) -> ConfigError {
    let before = &text.as_bytes()[..at.start.min(text.len())];
    ConfigError { line: before.iter().filter(|&&byte| byte == b'\n').count() + 1, problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        settings(text).map(|_| ()).unwrap_err().to_string()
    }

    fn typed(text: &str) -> Vec<String> {
        settings(text).unwrap().into_iter().flat_map(|setting| setting.typed).collect()
    }

    #[test]
    fn keys_and_tables_become_the_flags_of_the_same_names() {
        assert_eq!(typed("data = \"/srv\"\nthreads = 1_000"), ["--data=/srv", "--threads=1000"]);
        assert_eq!(typed("[limits]\nhead_time = \"5s\""), ["--limits-head-time=5s"]);
        assert_eq!(typed("log.format = \"json\""), ["--log-format=json"]);
        assert_eq!(typed("http = [\":1\", \":2\"]"), ["--http=:1", "--http=:2"]);
        assert_eq!(typed("accounts = false\n[lab]\nfast_passwords = true").len(), 2);
        assert!(typed("site = []").is_empty());
    }

    #[test]
    fn a_key_that_is_unknown_is_named_with_its_line_and_the_nearest() {
        assert_eq!(refused("\nhtpp = \":1\""), "line 2: there is no key \"htpp\"; did you mean \"http\"?");
        assert!(refused("access-log = \"-\"").contains("\"access_log\""));
        assert!(
            refused("[limits]\n\nheadtime = 5").starts_with("line 3: there is no key \"limits.headtime\"")
        );
        assert!(refused("[limit]\nhead_time = 5").contains("\"limits.head_time\""));
        assert!(refused("colour = 1").contains("--help"));
        assert!(refused("[proxy]\ncolour = 1").ends_with("`plimsoll proxy --help` has them, as flags"));
        assert!(refused("config = \"x\"").contains("no key"), "a file names no other file");
    }

    #[test]
    fn a_flag_of_a_proxy_that_is_another_key_in_the_file_is_named_with_that_key() {
        assert_eq!(
            refused("[proxy]\nsend_proxy_protocol = \"v2\""),
            "line 2: there is no key \"proxy.send_proxy_protocol\"; the key is \"proxy.header\""
        );
        for (flag, key) in [("listen", "http"), ("engine", "engine"), ("metrics", "metrics")] {
            let text = format!("[proxy]\n{flag} = \"x\"");
            let end = format!("\"proxy.{flag}\"; the key is {key:?}, above the first table");
            assert!(refused(&text).ends_with(&end), "{}", refused(&text));
        }
        // The right keys are keys.
        for (_, right) in KEYS_OF_FLAGS {
            assert!(!refused(&format!("{right} = \"none such\"")).contains("no key"), "{right}");
        }
    }

    #[test]
    fn a_value_that_is_none_is_named_with_its_line_and_what_to_write() {
        assert!(refused("\n\nengine = \"steam\"").starts_with("line 3: engine: "));
        assert!(refused("http = \"8080\"").contains("IP:PORT"));
        assert!(refused("accounts = \"maybe\"").contains("true"));
        assert!(refused("threads = 0").contains("from 1 to"));
        assert!(refused("data = 1.5").contains("write a string"));
        assert!(refused("http = []").contains("no value"));
        assert!(refused("data = [\"a\", \"b\"]").contains("takes one value"));
        assert!(refused("[data]\nx = 1").contains("data cannot be a table"));
        assert!(refused("data = ").starts_with("line 1: it is no TOML: "));
        assert!(refused("data = \"a\"\ndata = \"b\"").starts_with("line 2: it is no TOML: "));
    }
}
