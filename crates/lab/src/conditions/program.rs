//! Runs the programs of the operating system that set conditions: `ip`, `tc`, `losetup`, `mount`, `mkfs.*`.
//!
//! It is not a shell: each argument reaches the program as it is. Invariant: a failure carries the
//! program's own message.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail};

/// Finds a program in `PATH`, or in Debian's folders for servers, which an unprivileged user's `PATH` may
/// lack.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    if name.contains('/') {
        return Path::new(name).is_file().then(|| name.into());
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(name)).find(|at| at.is_file())
}

/// Returns the programs of a list that are not installed on this machine.
pub(crate) fn missing_programs(programs: &[String]) -> Vec<String> {
    programs.iter().filter(|program| find_program(program).is_none()).cloned().collect()
}

/// Runs `program` to its end and returns its standard output.
///
/// # Errors
/// The program is not installed, or it failed: with its arguments and its standard error.
pub(super) fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let command = || format!("{program} {}", arguments.join(" "));
    let path = find_program(program).with_context(|| format!("{program} is not installed"))?;
    let output = Command::new(path).args(arguments).stdin(Stdio::null()).output().with_context(command)?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        bail!("{}: {} ({})", command(), message.trim(), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs `program` with the words of `arguments`, which contain no blanks themselves.
///
/// # Errors
/// As [`run`].
pub(super) fn run_words(program: &str, arguments: &str) -> Result<String> {
    run(program, &arguments.split_whitespace().collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_program_is_reported_with_its_arguments_and_its_message() {
        let failed = run("cat", &["/no such file"]).unwrap_err().to_string();
        assert!(failed.starts_with("cat /no such file: ") && failed.contains("No such file"), "{failed}");
        let missing = run("no-such-program", &[]).unwrap_err().to_string();
        assert_eq!(missing, "no-such-program is not installed");
    }
}
