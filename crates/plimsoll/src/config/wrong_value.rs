//! The error of a value that an argument's parser refuses, as one line.
//!
//! It judges no value. Invariant: the line names the flag or the variable that has the value, as the operator
//! wrote it.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue};
use plimsoll_cli::WrongUsage;

use super::ServerCommand;

/// Returns the error as a line for the operator of `command`. `typed` are the flags of `plimsoll serve` with
/// the same effect as those of the command.
pub(super) fn wrong_usage(error: &clap::Error, typed: &[OsString], command: ServerCommand) -> WrongUsage {
    let (help, reason) = (command.name(), reason_of(error));
    let value = value_of(error).unwrap_or_default();
    WrongUsage(match id_of(error) {
        Some(id) => {
            let source = source_of(&id, typed, command);
            format!("invalid value '{value}' for {source}: {reason}; see {help} --help")
        }
        None => format!("{reason}; see {help} --help"),
    })
}

/// Returns the refused value.
pub(super) fn value_of(error: &clap::Error) -> Option<&str> {
    match error.get(ContextKind::InvalidValue) {
        Some(ContextValue::String(value)) => Some(value),
        _ => None,
    }
}

/// Returns the reason of a clap error, without its advice for a command line.
pub(super) fn reason_of(error: &clap::Error) -> String {
    match (std::error::Error::source(error), error.get(ContextKind::ValidValue)) {
        (Some(reason), _) => reason.to_string(),
        (None, Some(ContextValue::Strings(valid))) => format!("write one of: {}", valid.join(", ")),
        (None, _) => error.kind().to_string(),
    }
}

/// Returns the name of the setting: `grace` of `--grace <TIME>`.
fn id_of(error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(usage)) = error.get(ContextKind::InvalidArg) else { return None };
    let long = usage.strip_prefix("--")?.split([' ', '=', '[']).next()?;
    Some(long.replace('-', "_"))
}

/// Returns the flag of the command, if it was typed, else the variable. The values of the file are checked
/// when it is read.
fn source_of(id: &str, typed: &[OsString], command: ServerCommand) -> String {
    let long = format!("--{}", id.replace('_', "-"));
    let is_flag = |typed: &OsString| {
        let typed = typed.to_string_lossy();
        typed.strip_prefix(&long).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    if typed.iter().any(is_flag) { command.flag(id) } else { format!("PLIMSOLL_{}", id.to_uppercase()) }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command};

    use super::super::Config;
    use super::*;

    fn refused(typed: &[&str], flags: &[&str], command: ServerCommand) -> String {
        let parser = Config::augment_args(Command::new("typed").no_binary_name(true));
        let error = parser.try_get_matches_from(typed).unwrap_err();
        let flags: Vec<OsString> = flags.iter().map(OsString::from).collect();
        wrong_usage(&error, &flags, command).to_string()
    }

    #[test]
    fn a_wrong_value_is_one_line_with_the_flag_that_was_typed() {
        let of = |flag: &str| refused(&[flag], &[flag], ServerCommand::Proxy);
        assert_eq!(
            of("--grace=5"),
            "invalid value '5' for --grace: 5 has no unit; write 5s, 5m, 5h or 5d; see plimsoll proxy --help"
        );
        for (flag, words) in [
            ("--threads=0", &["--threads: ", "from 1 to"][..]),
            ("--queue=foo", &["--queue: ", "block", "refuse"]),
            ("--channel-slots=65", &["'65'", "--channel-slots: ", "from 1 to 64"]),
            ("--proxy-cache-size=ten", &["'ten'", " --cache-size: "]),
            ("--proxy-header=v3", &["'v3'", " --send-proxy-protocol: ", "write one of: off, v1, v2"]),
            ("--proxy-protocol=gopher", &[" --proxy-protocol: ", "classic"]),
            ("--http=8080", &[" --listen: ", "IP:PORT"]),
        ] {
            let line = of(flag);
            assert_eq!(line.lines().count(), 1, "{line}");
            assert!(words.iter().all(|word| line.contains(word)), "{words:?}: {line}");
        }
        let of_store = refused(&["--threads=0"], &["--threads=0"], ServerCommand::Store);
        assert!(of_store.contains(" for --threads: ") && of_store.contains("plimsoll store --help"));
    }

    #[test]
    fn a_wrong_value_that_no_flag_has_is_one_of_the_variable() {
        let line = refused(&["--proxy-connect-time=9"], &["--proxy-connect=1"], ServerCommand::Proxy);
        assert!(
            line.starts_with("invalid value '9' for PLIMSOLL_PROXY_CONNECT_TIME: 9 has no unit"),
            "{line}"
        );
    }
}
