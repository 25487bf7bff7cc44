//! Judges Redis: its durability, its eviction policy, and its free connections.
//!
//! It sends no command. Invariants: a setting that can lose accounts is at least a warning. An unreadable
//! setting is never reported as good.

use plimsoll_auth::directory::RedisInfo;

use super::{CHECK, room};
use crate::doctor::Finding;

pub(super) fn judge(facts: &RedisInfo) -> Vec<Finding> {
    vec![durability(facts), eviction(facts), connections(facts)]
}

fn durability(facts: &RedisInfo) -> Finding {
    let RedisInfo { version, appendonly, appendfsync, .. } = facts;
    if appendonly != "yes" {
        let seen = format!(
            "Redis {version} writes down nothing but now and then (appendonly is no): its end takes all that \
             came since"
        );
        return Finding::fail(CHECK, seen).with_fix(set("appendonly yes"), KEEP);
    }
    let loses = match appendfsync.as_str() {
        "always" => return Finding::ok(CHECK, format!("Redis {version} keeps what it confirms")),
        "everysec" => "the accounts of the last second or two",
        "no" => "the accounts of the last half minute",
        _ => {
            let seen = format!("Redis {version} does not say when it syncs (appendfsync)");
            return Finding::warn(CHECK, seen).with_fix("ask its operator", "appendfsync always");
        }
    };
    let seen =
        format!("Redis {version} syncs later than it confirms ({appendfsync}): a power cut takes {loses}");
    Finding::warn(CHECK, seen).with_fix(set("appendfsync always"), KEEP)
}

const KEEP: &str = "redis-cli CONFIG REWRITE, or the same line in /etc/redis/redis.conf";

fn eviction(facts: &RedisInfo) -> Finding {
    let policy = &facts.eviction;
    if policy.starts_with("allkeys-") {
        let seen = format!("it throws accounts away when its memory is full (maxmemory-policy is {policy})");
        return Finding::fail(CHECK, seen).with_fix(set("maxmemory-policy noeviction"), KEEP);
    }
    Finding::ok(CHECK, format!("it throws no account away when its memory is full ({policy})"))
}

fn connections(facts: &RedisInfo) -> Finding {
    let (now, lasting) =
        ("end programs that hold connections to it: redis-cli CLIENT LIST", set("maxclients 10000"));
    room(facts.connections_max, facts.connections_taken).unwrap_or_else(|full| full.with_fix(now, lasting))
}

fn set(setting: &str) -> String {
    format!("redis-cli CONFIG SET {setting}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;
    use crate::doctor::directory::CONNECTIONS;

    fn facts(appendonly: &str, appendfsync: &str) -> RedisInfo {
        RedisInfo {
            version: "7.0.15".to_owned(),
            appendonly: appendonly.to_owned(),
            appendfsync: appendfsync.to_owned(),
            eviction: "noeviction".to_owned(),
            connections_max: 11 + CONNECTIONS,
            connections_taken: 11,
        }
    }

    #[test]
    fn the_loss_that_each_setting_permits_is_reported() {
        for (appendonly, appendfsync, verdict, expected) in [
            ("yes", "always", Verdict::Ok, "keeps what it confirms"),
            ("yes", "everysec", Verdict::Warn, "last second"),
            ("yes", "no", Verdict::Warn, "half minute"),
            ("yes", "", Verdict::Warn, "does not say"),
            ("no", "always", Verdict::Fail, "all that came since"),
        ] {
            let found = durability(&facts(appendonly, appendfsync));
            assert_eq!(found.verdict, verdict, "{appendonly} {appendfsync}");
            assert!(found.seen.contains(expected), "{}", found.seen);
        }
    }

    #[test]
    fn a_server_that_evicts_keys_or_lacks_connections_is_reported() {
        let verdicts = |facts: &RedisInfo| [eviction(facts).verdict, connections(facts).verdict];
        assert_eq!(verdicts(&facts("yes", "always")), [Verdict::Ok, Verdict::Ok]);
        let lru = "allkeys-lru".to_owned();
        let full = RedisInfo { eviction: lru, connections_taken: 12, ..facts("yes", "always") };
        assert_eq!(verdicts(&full), [Verdict::Fail, Verdict::Warn]);
        let ttl = "volatile-ttl".to_owned();
        assert_eq!(verdicts(&RedisInfo { eviction: ttl, ..full }), [Verdict::Ok, Verdict::Warn]);
    }
}
