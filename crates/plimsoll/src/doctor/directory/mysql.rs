//! Judges MySQL and MariaDB: their durability, and their free connections.
//!
//! It sends no query. Invariant: a setting that can lose accounts is at least a warning.

use plimsoll_auth::directory::MysqlInfo;

use super::{CHECK, room};
use crate::doctor::Finding;

pub(super) fn judge(facts: &MysqlInfo) -> Vec<Finding> {
    vec![durability(facts), connections(facts)]
}

fn durability(facts: &MysqlInfo) -> Finding {
    let (MysqlInfo { version, flush, .. }, server) = (facts, name(facts));
    let loses = match flush {
        1 => return Finding::ok(CHECK, format!("{server} {version} keeps what it confirms")),
        2 => "a power cut takes the accounts of the last second",
        _ => "its end takes the accounts of the last second",
    };
    let seen = format!(
        "{server} {version} syncs later than it confirms (innodb_flush_log_at_trx_commit is {flush}): {loses}"
    );
    Finding::warn(CHECK, seen).with_fix(set("innodb_flush_log_at_trx_commit = 1"), KEEP)
}

/// Returns the server's name, which MariaDB's version has.
fn name(facts: &MysqlInfo) -> &'static str {
    if facts.version.contains("MariaDB") { "MariaDB" } else { "MySQL" }
}

const KEEP: &str = "the same line under [mysqld] in a file of /etc/mysql/conf.d";

fn connections(facts: &MysqlInfo) -> Finding {
    room(facts.connections_max, facts.connections_taken)
        .unwrap_or_else(|full| full.with_fix(set("max_connections = 500"), KEEP))
}

fn set(setting: &str) -> String {
    format!("sudo mysql -e \"SET GLOBAL {setting}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;
    use crate::doctor::directory::CONNECTIONS;

    #[test]
    fn a_database_that_can_lose_commits_or_lacks_connections_is_reported() {
        let facts = |flush, taken| MysqlInfo {
            version: "10.11.6-MariaDB".to_owned(),
            flush,
            connections_max: 11 + CONNECTIONS,
            connections_taken: taken,
        };
        let verdicts = |facts: &MysqlInfo| [durability(facts).verdict, connections(facts).verdict];
        assert!(durability(&facts(1, 11)).seen.starts_with("MariaDB 10.11.6"));
        assert_eq!(verdicts(&facts(1, 11)), [Verdict::Ok, Verdict::Ok]);
        assert_eq!(verdicts(&facts(2, 11)), [Verdict::Warn, Verdict::Ok]);
        assert_eq!(verdicts(&facts(0, 12)), [Verdict::Warn, Verdict::Warn]);
    }
}
