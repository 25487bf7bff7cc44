//! Profilers: which functions of a server cost the most.
//!
//! It starts nothing: it has the words before a server's command, and reads what the profilers write.
//! Invariants: a damaged or incomplete profile is refused; a share is of the cost of the whole process.

mod callgrind;
mod limits;
mod perf;

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use crate::conditions::find_program;
use limits::FUNCTIONS_MAX;

/// A profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Profiler {
    /// Valgrind's callgrind: counts the instructions of each function, without the kernel's. The server is
    /// many times slower under it.
    Callgrind,
    /// Linux's perf: samples of the CPU time, with that in the kernel. It hardly slows the server down.
    Perf,
}

/// The profile of a process with its children.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The whole cost: instructions or samples.
    pub total: u64,
    /// The functions with the largest cost of their own, the largest first.
    pub functions: Vec<FunctionCost>,
}

/// The cost of a function.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionCost {
    /// Its name.
    pub name: String,
    /// The file name of its program or library.
    pub object: String,
    /// The share of the whole cost that is its own.
    pub own: f64,
    /// The same with the functions that it calls.
    pub inclusive: f64,
}

impl Profiler {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Profiler::Callgrind => "callgrind",
            Profiler::Perf => "perf",
        }
    }

    /// Returns the unit of its costs.
    pub fn unit(self) -> &'static str {
        match self {
            Profiler::Callgrind => "instructions",
            Profiler::Perf => "samples",
        }
    }

    /// Returns the command that finds out whether a machine can run it.
    pub(crate) fn check(self) -> Vec<String> {
        words(match self {
            Profiler::Callgrind => &["valgrind", "--version"],
            // It needs the right to sample, too.
            Profiler::Perf => &["perf", "record", "--quiet", "-g", "--output", "/dev/null", "--", "true"],
        })
    }

    /// Returns what to do if the check fails.
    pub(crate) fn remedy(self) -> &'static str {
        match self {
            Profiler::Callgrind => "--profile callgrind needs valgrind: install the package valgrind",
            Profiler::Perf => {
                "--profile perf needs perf and the right to sample: install linux-perf (linux-tools on \
                 Ubuntu), and run it as root or set kernel.perf_event_paranoid to 1"
            }
        }
    }

    /// Refuses it if this machine does not have its program.
    ///
    /// # Errors
    /// The remedy.
    pub(crate) fn ensure_installed(self) -> Result<()> {
        let program = &self.check()[0];
        ensure!(find_program(program).is_some(), "{program} is not installed. {}", self.remedy());
        Ok(())
    }

    /// Returns the words before the command of a process. The profile goes to a file of `folder`, whose
    /// name begins with [`Profiler::file_prefix`].
    pub(crate) fn command_prefix(self, folder: &str, process: &str) -> Vec<String> {
        let start = self.file_prefix(process);
        match self {
            // A process that forks writes a file for each child.
            Profiler::Callgrind => {
                let output = format!("--callgrind-out-file={folder}/{start}%p");
                let mut all = words(&["valgrind", "--quiet", "--tool=callgrind"]);
                all.push(output);
                all
            }
            Profiler::Perf => {
                let output = format!("{folder}/{start}data");
                let mut all = words(&["perf", "record", "--quiet", "-g", "--freq", "997", "--output"]);
                all.extend([output, "--".to_owned()]);
                all
            }
        }
    }

    /// Returns the beginning of the names of a process's files.
    pub(crate) fn file_prefix(self, process: &str) -> String {
        let process = plain_name(process).replace('.', "-");
        match self {
            Profiler::Callgrind => format!("callgrind.out.{process}."),
            Profiler::Perf => format!("perf.{process}."),
        }
    }

    /// Returns the command whose output [`Profiler::read`] reads, for a file.
    pub(crate) fn read_command(self, file: &str) -> Vec<String> {
        match self {
            Profiler::Callgrind => words(&["cat", file]),
            Profiler::Perf => {
                let fields = "overhead_children,overhead,dso,sym";
                let report = ["perf", "report", "--stdio", "--children", "--call-graph", "none"];
                let format = ["--field-separator", "\t", "--fields", fields, "--input", file];
                words(&[&report[..], &format].concat())
            }
        }
    }

    /// Reads the profiles of a process and its children.
    ///
    /// # Errors
    /// A file is damaged or incomplete.
    pub fn read(self, outputs: &[String]) -> Result<Profile> {
        match self {
            Profiler::Callgrind => {
                let mut costs = callgrind::Costs::default();
                outputs.iter().try_for_each(|output| costs.add(output))?;
                Ok(costs.profile())
            }
            Profiler::Perf => perf::read(outputs),
        }
    }
}

/// Returns a name with letters, digits and a few other characters only, for the name of a file.
pub(crate) fn plain_name(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '=' | '-');
    name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect()
}

/// Returns the profile with the given costs, each a share of the whole.
fn profile(total: u64, costs: BTreeMap<(String, String), (f64, f64)>) -> Profile {
    let cost = |((name, object), (own, inclusive))| {
        // A function that calls itself through others is counted again at each call.
        FunctionCost { name, object, own, inclusive: f64::min(inclusive, 1.0) }
    };
    let mut functions: Vec<FunctionCost> = costs.into_iter().map(cost).collect();
    functions.sort_by(|one, other| other.own.total_cmp(&one.own));
    functions.truncate(FUNCTIONS_MAX);
    Profile { total, functions }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// Returns the last component of a path.
fn file_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_runs_behind_its_profiler_and_its_files_are_found_by_their_names() {
        let prefix = Profiler::Callgrind.command_prefix("/d", "front/a.b");
        assert_eq!(prefix[3], "--callgrind-out-file=/d/callgrind.out.front-a-b.%p");
        assert!("callgrind.out.front-a-b.77".starts_with(&Profiler::Callgrind.file_prefix("front/a.b")));
        let prefix = Profiler::Perf.command_prefix("/d", "server");
        assert_eq!(prefix.last().map(String::as_str), Some("--"));
        assert!(prefix.contains(&"/d/perf.server.data".to_owned()));
    }
}
