//! The limit of open files: how many connections there can be.
//!
//! It leaves the limit as it was for everybody else. What must hold: it counts as the server does.

use super::Finding;
use crate::config::Config;
use crate::open_files;

/// With fewer connections, a few browsers fill the server.
const CONNECTIONS_FEW: usize = 1000;
/// With fewer than these, nobody is served well.
const CONNECTIONS_LEAST: usize = 16;

pub(super) fn check(config: &Config) -> Vec<Finding> {
    vec![judge(open_files::raise(), config)]
}

fn judge(limit: u64, config: &Config) -> Finding {
    let connections = open_files::connections_max(config, limit);
    let seen = format!("{limit} may be open, which is {connections} connections");
    let finding = match connections {
        CONNECTIONS_FEW.. => return Finding::ok("open files", seen),
        CONNECTIONS_LEAST.. => Finding::warn("open files", seen),
        _ => Finding::fail("open files", seen),
    };
    finding.mend(
        "sudo prlimit --pid $$ --nofile=65536:65536, and start the server from this shell",
        "LimitNOFILE=65536 in the service's unit, or `* - nofile 65536` in /etc/security/limits.d/",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn few_open_files_are_a_warning_and_very_few_a_failure() {
        let config = Config::of(&[]);
        assert_eq!(judge(65_536, &config).verdict, Verdict::Ok);
        assert_eq!(judge(1_024, &config).verdict, Verdict::Warn);
        assert_eq!(judge(64, &config).verdict, Verdict::Fail);
    }
}
