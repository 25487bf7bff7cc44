//! Finds environment variables that look like settings but are none.
//!
//! It reads no values. Invariant: the variables of all arguments and passwords are known.

use clap::{Command, CommandFactory as _};
use plimsoll_wire::nearest::nearest;

use crate::cli::Plimsoll;
use crate::tiers::DIRECTORY_PASSWORD;

const PREFIX: &str = "PLIMSOLL_";
/// The variables of passwords, which belong to no argument.
const PASSWORDS: [&str; 3] = [DIRECTORY_PASSWORD, "PLIMSOLL_PASSWORD", "PLIMSOLL_NEW_PASSWORD"];

/// Returns a warning for each unknown variable.
pub(crate) fn unknown_variables() -> Vec<String> {
    let set = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    unknown(set)
}

fn unknown(set: impl Iterator<Item = String>) -> Vec<String> {
    let mut known = PASSWORDS.map(str::to_owned).to_vec();
    add_known(&Plimsoll::command(), &mut known);
    let mut unknown: Vec<String> =
        set.filter(|name| name.starts_with(PREFIX) && !known.contains(name)).collect();
    unknown.sort_unstable();
    unknown.into_iter().map(|name| message(&name, &known)).collect()
}

fn message(name: &str, known: &[String]) -> String {
    let end = |name: &str| name.trim_start_matches(PREFIX).to_owned();
    let ends: Vec<String> = known.iter().map(|name| end(name)).collect();
    match nearest(&end(name), ends.iter().map(String::as_str)) {
        Some(near) => format!("{name}: there is no such setting; did you mean {PREFIX}{near}?"),
        None => format!("{name}: there is no such setting"),
    }
}

fn add_known(command: &Command, known: &mut Vec<String>) {
    let variables = command.get_arguments().filter_map(|arg| arg.get_env()?.to_str());
    known.extend(variables.map(str::to_owned));
    for command in command.get_subcommands() {
        add_known(command, known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> Vec<String> {
        unknown(names.iter().map(|name| (*name).to_owned()))
    }

    #[test]
    fn variables_of_arguments_are_known_and_others_are_reported_with_the_nearest() {
        let known = ["CONFIG", "HTTP", "LAB_SYNC_EACH", "SERVER", "ACCOUNT", "PASSWORD", "NEW_PASSWORD"];
        assert!(of(&known.map(|name| format!("PLIMSOLL_{name}")).each_ref().map(String::as_str)).is_empty());
        assert!(of(&["PATH", "HTTP"]).is_empty());
        let messages = of(&["PLIMSOLL_HTPP", "PLIMSOLL_COLOUR"]);
        assert_eq!(messages.len(), 2, "{messages:?}");
        assert!(
            messages[0].starts_with("PLIMSOLL_COLOUR: ") && !messages[0].contains("mean"),
            "{messages:?}"
        );
        assert!(messages[1].ends_with("did you mean PLIMSOLL_HTTP?"), "{messages:?}");
    }
}
