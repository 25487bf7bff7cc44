//! Checks the limits of processes and open files under the engine `process`, which forks for each
//! connection.
//!
//! Other engines are not checked here, although the threads of `thread` count against the same limit.
//! Invariants: connections are counted as the server counts them. The remedy raises the limit that is
//! reached first.

use plimsoll_engine::ProcessBound;

use super::Finding;
use crate::config::Config;
use crate::open_files::{self, Bound};

/// With fewer connections, a few browsers fill the server.
const CONNECTIONS_FEW: usize = 1000;
/// Fewer than these are too few to serve any client well.
const CONNECTIONS_LEAST: usize = 16;
/// The limit of processes that the remedy names: enough for the server and for other programs.
const ASKED: u64 = 8192;
/// The limit of open files that the remedy names, if the main process's limit is reached first.
const ASKED_FILES: u64 = 65_536;

pub(super) fn check(config: &Config) -> Vec<Finding> {
    let is_asked = config.fixed.engine.forks();
    let judged = is_asked.then(|| {
        let (connections, bound) = open_files::connections_bound(config, open_files::raise());
        judge(connections, &bound)
    });
    judged.into_iter().collect()
}

fn judge(connections: usize, bound: &Bound) -> Finding {
    let seen =
        format!("there may be {connections} connections, each of which is a process: {}", bound_text(bound));
    let finding = match connections {
        CONNECTIONS_FEW.. => return Finding::ok("processes", seen),
        CONNECTIONS_LEAST.. => Finding::warn("processes", seen),
        _ => Finding::fail("processes", seen),
    };
    let (now, lasting) = fixes(bound);
    finding.with_fix(now, lasting)
}

fn bound_text(bound: &Bound) -> String {
    match bound {
        Bound::Files => "the program has no open files for what more would ask of it".to_owned(),
        Bound::Processes(ProcessBound::Engine) => "the engine makes no more".to_owned(),
        Bound::Processes(ProcessBound::Account) => "the account may have no more".to_owned(),
        Bound::Processes(ProcessBound::Group(file)) => format!("{} allows no more", file.display()),
    }
}

/// Returns the commands that raise the limit now and permanently.
fn fixes(bound: &Bound) -> (String, String) {
    match bound {
        Bound::Files => (
            format!(
                "sudo prlimit --pid $$ --nofile={ASKED_FILES}:{ASKED_FILES}, and start the server from this \
                 shell"
            ),
            format!(
                "LimitNOFILE={ASKED_FILES} in the service's unit, or `* - nofile {ASKED_FILES}` in \
                 /etc/security/limits.d/"
            ),
        ),
        Bound::Processes(ProcessBound::Group(file)) => (
            format!("echo {ASKED} | sudo tee {}", file.display()),
            format!("TasksMax={ASKED} in the service's unit, or --pids-limit {ASKED} for a container"),
        ),
        Bound::Processes(_) => (
            format!("sudo prlimit --pid $$ --nproc={ASKED}:{ASKED}, and start the server from this shell"),
            format!(
                "LimitNPROC={ASKED} in the service's unit, or `* - nproc {ASKED}` in /etc/security/limits.d/"
            ),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    const OF_ACCOUNT: Bound = Bound::Processes(ProcessBound::Account);

    #[test]
    fn few_processes_are_a_warning_and_very_few_a_failure() {
        assert_eq!(
            [4_096, 100, 5].map(|few| judge(few, &OF_ACCOUNT).verdict),
            [Verdict::Ok, Verdict::Warn, Verdict::Fail]
        );
    }

    #[test]
    fn the_suggested_fix_raises_the_bound_that_applies() {
        let group = Bound::Processes(ProcessBound::Group("/sys/fs/cgroup/a/pids.max".into()));
        let fixes = |bound: &Bound| {
            let finding = judge(100, bound);
            (finding.now.unwrap(), finding.lasting.unwrap())
        };
        for (bound, now, lasting) in [
            (&OF_ACCOUNT, "--nproc=8192:8192", "LimitNPROC=8192"),
            (&Bound::Files, "--nofile=65536:65536", "LimitNOFILE=65536"),
            (&group, "echo 8192 | sudo tee /sys/fs/cgroup/a/pids.max", "TasksMax=8192"),
        ] {
            let (now_text, lasting_text) = fixes(bound);
            assert!(now_text.contains(now) && lasting_text.contains(lasting), "{now_text}; {lasting_text}");
        }
    }

    #[test]
    fn they_are_looked_at_where_connections_are_processes_and_nowhere_else() {
        let found = |engine: &str| check(&Config::of(&["--engine", engine])).len();
        assert_eq!(["process", "thread", "pool", "epoll", "uring"].map(found), [1, 0, 0, 0, 0]);
    }
}
