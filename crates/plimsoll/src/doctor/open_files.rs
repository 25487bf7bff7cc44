//! Checks the limit of open files, which bounds the number of connections.
//!
//! It raises the limit of its own process only. Invariant: connections are counted as the server counts
//! them.

use super::Finding;
use crate::config::Config;
use crate::open_files;

/// With fewer connections, a few browsers fill the server.
const CONNECTIONS_FEW: usize = 1000;
/// Fewer than these are too few to serve any client well.
const CONNECTIONS_LEAST: usize = 16;
/// The lowest limit that the remedy names: a common one, for some 30,000 connections.
const ASKED_LEAST: u64 = 65_536;
/// The powers of two that are tried when the required limit is computed.
const TRIED: std::ops::RangeInclusive<u32> = 6..=30;

pub(super) fn check(config: &Config) -> Vec<Finding> {
    if config.fixed.engine.forks() {
        // Each connection process has the limit for itself, which is never so low. The main process's limit
        // is checked together with the number of processes (`processes`).
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
    finding.with_fix(
        format!("sudo prlimit --pid $$ --nofile={asked}:{asked}, and start the server from this shell"),
        format!(
            "LimitNOFILE={asked} in the service's unit, or `* - nofile {asked}` in /etc/security/limits.d/"
        ),
    )
}

/// Returns the least power of two that is a sufficient limit for `CONNECTIONS_FEW`.
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
    fn the_soft_limit_is_stated_where_the_server_raises_it() {
        let config = Config::of(&[]);
        let seen = judge(1_024, 65_536, &config).seen;
        assert!(seen.starts_with("65536 may be open, raised from 1024 at the start, which is "), "{seen}");
        let seen = judge(65_536, 65_536, &config).seen;
        assert!(!seen.contains("raised"), "{seen}");
    }

    #[test]
    fn the_needed_limit_depends_on_the_descriptors_of_a_connection() {
        let needed_by = |args: &[&str]| needed(&Config::of(args));
        assert_eq!(needed_by(&["--engine", "epoll", "--accounts", "false"]), 4_096);
        assert_eq!(needed_by(&["--engine", "thread", "--ftp", ":2121"]), 8_192);
        let short = judge(1_024, 1_024, &Config::of(&["--engine", "epoll", "--accounts", "false"]));
        assert!(short.seen.ends_with("; 1000 take a limit of 4096"), "{}", short.seen);
        assert!(short.now.unwrap().contains("--nofile=65536:65536"));
    }
}
