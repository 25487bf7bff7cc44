//! The limit of processes, where each connection is one.
//!
//! It is not asked under other engines, whose threads are few or, under `thread`, count like these. What must
//! hold: it counts as the server does.

use plimsoll_engine::Kind;

use super::Finding;
use crate::config::Config;
use crate::open_files;

/// With fewer connections, a few browsers fill the server.
const CONNECTIONS_FEW: usize = 1000;
/// With fewer than these, nobody is served well.
const CONNECTIONS_LEAST: usize = 16;
/// What is asked for: all that the server would make, and others beside it.
const ASKED: u64 = 8192;

pub(super) fn check(config: &Config) -> Vec<Finding> {
    let is_asked = config.fixed.engine == Kind::Process;
    let judged = is_asked.then(|| judge(open_files::connections_max(config, open_files::raise())));
    judged.into_iter().collect()
}

fn judge(connections: usize) -> Finding {
    let seen = format!("there may be {connections} connections, each of which is a process");
    let finding = match connections {
        CONNECTIONS_FEW.. => return Finding::ok("processes", seen),
        CONNECTIONS_LEAST.. => Finding::warn("processes", seen),
        _ => Finding::fail("processes", seen),
    };
    finding.mend(
        format!("sudo prlimit --pid $$ --nproc={ASKED}:{ASKED}, and start the server from this shell"),
        format!(
            "LimitNPROC={ASKED} and TasksMax={ASKED} in the service's unit, or `* - nproc {ASKED}` in \
             /etc/security/limits.d/"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn few_processes_are_a_warning_and_very_few_a_failure() {
        assert_eq!(
            [4_096, 100, 5].map(|few| judge(few).verdict),
            [Verdict::Ok, Verdict::Warn, Verdict::Fail]
        );
        assert!(judge(100).now.unwrap().contains("--nproc=8192:8192"));
    }

    #[test]
    fn they_are_looked_at_where_connections_are_processes_and_nowhere_else() {
        let found = |engine: &str| check(&Config::of(&["--engine", engine])).len();
        assert_eq!(["process", "thread", "pool", "epoll", "uring"].map(found), [1, 0, 0, 0, 0]);
    }
}
