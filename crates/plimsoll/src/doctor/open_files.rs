//! The limit of open files: how many connections there can be.
//!
//! It leaves the limit as it was for everybody else. What must hold: it counts as the server does.

use plimsoll_engine::Kind;

use super::Finding;
use crate::config::Config;
use crate::open_files;

/// With fewer connections, a few browsers fill the server.
const CONNECTIONS_FEW: usize = 1000;
/// With fewer than these, nobody is served well.
const CONNECTIONS_LEAST: usize = 16;
/// What is asked for at least: a common limit, of some 30,000 connections.
const ASKED_LEAST: u64 = 65_536;
/// The powers of two that are tried for the limit that is needed.
const TRIED: std::ops::RangeInclusive<u32> = 6..=30;

pub(super) fn check(config: &Config) -> Vec<Finding> {
    if config.fixed.engine == Kind::Process {
        // Each connection has a process' limit for itself, which is never so low. That of the program, which
        // they ask for accounts and files, is looked at with their number (`processes`).
        return Vec::new();
    }
    let soft = open_files::soft();
    vec![judge(soft, open_files::raise(), config)]
}

fn judge(soft: u64, hard: u64, config: &Config) -> Finding {
    let connections = open_files::connections_max(config, hard);
    let raised = if soft < hard { format!(", raised from {soft} at the start") } else { String::new() };
    let seen = format!("{hard} may be open{raised}, which is {connections} connections");
    let needed = needed(config);
    let short = format!("{seen}; {CONNECTIONS_FEW} take a limit of {needed}");
    let finding = match connections {
        CONNECTIONS_FEW.. => return Finding::ok("open files", seen),
        CONNECTIONS_LEAST.. => Finding::warn("open files", short),
        _ => Finding::fail("open files", short),
    };
    let asked = needed.max(ASKED_LEAST);
    finding.mend(
        format!("sudo prlimit --pid $$ --nofile={asked}:{asked}, and start the server from this shell"),
        format!(
            "LimitNOFILE={asked} in the service's unit, or `* - nofile {asked}` in /etc/security/limits.d/"
        ),
    )
}

/// A limit, a power of two, that will do for `CONNECTIONS_FEW`.
fn needed(config: &Config) -> u64 {
    let mut limits = TRIED.map(|power| 1 << power);
    let is_enough = |limit: &u64| open_files::connections_max(config, *limit) >= CONNECTIONS_FEW;
    limits.find(is_enough).unwrap_or(ASKED_LEAST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn few_open_files_are_a_warning_and_very_few_a_failure() {
        let config = Config::of(&[]);
        assert_eq!(judge(65_536, 65_536, &config).verdict, Verdict::Ok);
        assert_eq!(judge(1_024, 1_024, &config).verdict, Verdict::Warn);
        assert_eq!(judge(64, 64, &config).verdict, Verdict::Fail);
    }

    #[test]
    fn the_soft_limit_is_told_where_the_server_raises_it() {
        let config = Config::of(&[]);
        let seen = judge(1_024, 65_536, &config).seen;
        assert!(seen.starts_with("65536 may be open, raised from 1024 at the start, which is "), "{seen}");
        let seen = judge(65_536, 65_536, &config).seen;
        assert!(!seen.contains("raised"), "{seen}");
    }

    #[test]
    fn what_is_needed_depends_on_what_a_connection_takes() {
        let needed_by = |args: &[&str]| needed(&Config::of(args));
        assert_eq!(needed_by(&["--engine", "epoll", "--accounts", "false"]), 4_096);
        assert_eq!(needed_by(&["--engine", "thread", "--ftp", ":2121"]), 8_192);
        let short = judge(1_024, 1_024, &Config::of(&["--engine", "epoll", "--accounts", "false"]));
        assert!(short.seen.ends_with("; 1000 take a limit of 4096"), "{}", short.seen);
        assert!(short.now.unwrap().contains("--nofile=65536:65536"));
    }
}
