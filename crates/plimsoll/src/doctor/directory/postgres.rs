//! Judges PostgreSQL: its durability, and its free connections.
//!
//! It sends no query. Invariant: a setting that can lose accounts is at least a warning.

use plimsoll_auth::directory::PostgresInfo;

use super::{CHECK, room};
use crate::doctor::Finding;

pub(super) fn judge(facts: &PostgresInfo) -> Vec<Finding> {
    vec![durability(facts), connections(facts)]
}

fn durability(facts: &PostgresInfo) -> Finding {
    let PostgresInfo { version, syncs, synchronous_commit, .. } = facts;
    if !syncs {
        let seen = format!("PostgreSQL {version} syncs nothing (fsync is off): a power cut takes it all");
        return Finding::fail(CHECK, seen).with_fix(set("fsync", "on"), "the same: it stays");
    }
    if synchronous_commit == "off" {
        let seen = format!(
            "PostgreSQL {version} confirms what is not on the disk yet (synchronous_commit is off): it can \
             lose the accounts of the last second"
        );
        return Finding::warn(CHECK, seen).with_fix(set("synchronous_commit", "on"), "the same: it stays");
    }
    Finding::ok(CHECK, format!("PostgreSQL {version} keeps what it confirms"))
}

fn connections(facts: &PostgresInfo) -> Finding {
    let lasting =
        format!("{}, and restart it; see also CONNECTION LIMIT of the user", set("max_connections", "200"));
    let now = "end programs that hold connections to it: SELECT * FROM pg_stat_activity";
    room(facts.connections_max, facts.connections_taken).unwrap_or_else(|full| full.with_fix(now, lasting))
}

fn set(setting: &str, value: &str) -> String {
    format!(
        "sudo -u postgres psql -c \"ALTER SYSTEM SET {setting} = {value}\" -c \"SELECT pg_reload_conf()\""
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;
    use crate::doctor::directory::CONNECTIONS;

    fn facts() -> PostgresInfo {
        PostgresInfo {
            version: "15.3".to_owned(),
            syncs: true,
            synchronous_commit: "on".to_owned(),
            connections_max: 11 + CONNECTIONS,
            connections_taken: 11,
        }
    }

    fn verdicts(facts: &PostgresInfo) -> Vec<Verdict> {
        judge(facts).into_iter().map(|finding| finding.verdict).collect()
    }

    #[test]
    fn a_database_that_can_lose_commits_or_lacks_connections_is_reported() {
        assert_eq!(verdicts(&facts()), [Verdict::Ok, Verdict::Ok]);
        let off = "off".to_owned();
        let late = PostgresInfo { synchronous_commit: off, ..facts() };
        assert_eq!(verdicts(&late), [Verdict::Warn, Verdict::Ok]);
        assert_eq!(verdicts(&PostgresInfo { syncs: false, ..late }), [Verdict::Fail, Verdict::Ok]);
        let full = PostgresInfo { connections_taken: 12, ..facts() };
        assert_eq!(verdicts(&full), [Verdict::Ok, Verdict::Warn]);
    }
}
