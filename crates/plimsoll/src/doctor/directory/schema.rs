//! Judges the tables of a directory on a database server, the TLS of the connection, and its round trip.
//!
//! It upgrades nothing. Invariant: a directory that a server of this program refuses is a failure.

use std::time::{Duration, Instant, SystemTime};

use plimsoll_auth::directory::{DirectoryRows, Opening, Schema, TlsTerms, open_rows};

use super::CHECK;
use crate::doctor::Finding;
use crate::encryption::Facts;
use crate::limits::{DOCTOR_ROUND_TRIP_TIME, DOCTOR_ROUND_TRIPS};

/// Checks the directory that `url` names. The caller has reported whether the server can be reached.
pub(super) fn check(url: &str) -> Vec<Finding> {
    let look = || {
        let mut directory = open_rows(url, Opening::Inspect).map_err(|error| error.to_string())?;
        let schema = directory.schema().map_err(|error| error.to_string())?;
        let time = round_trip(&mut *directory);
        Ok::<_, String>((schema, time, directory.tls()))
    };
    match look() {
        Ok((schema, time, tls)) => {
            let tls = tls.map(|terms| judge_tls(&terms, SystemTime::now()));
            [Some(judge(&schema)), time.map(judge_time), tls].into_iter().flatten().collect()
        }
        Err(error) => {
            vec![Finding::fail(CHECK, format!("its tables cannot be read: {error}")).with_fix(
                "give the user of the URL all rights on them",
                "docs/databases.md has the commands",
            )]
        }
    }
}

/// Returns the shortest of a few round trips.
fn round_trip(directory: &mut dyn DirectoryRows) -> Option<Duration> {
    let times = (0..DOCTOR_ROUND_TRIPS).filter_map(|_| {
        let start = Instant::now();
        directory.ping().ok().map(|()| start.elapsed())
    });
    times.min()
}

fn judge(schema: &Schema) -> Finding {
    let Schema { store, version, known, closed } = schema;
    if *version == 0 {
        return Finding::ok(
            CHECK,
            format!("{store} has no tables yet; a server creates them when it starts"),
        );
    }
    if version > known || *version < 0 {
        let seen = format!(
            "a newer plimsoll made the tables in {store} (version {version}; this one knows {known})"
        );
        return Finding::fail(CHECK, seen)
            .with_fix("start the newer plimsoll", "to go back, load a dump of before (docs/backup.md)");
    }
    if version < known {
        let seen = format!(
            "the tables in {store} are of version {version}; a server upgrades them to {known} when it starts"
        );
        return Finding::ok(CHECK, seen);
    }
    if closed.is_empty() {
        return Finding::ok(
            CHECK,
            format!("the tables in {store} are of version {version}, as this program's"),
        );
    }
    Finding::fail(CHECK, format!("the directory is closed to servers: {closed}"))
        .with_fix("plimsoll directory check, and docs/databases.md", "name the directory that is in use")
}

fn judge_time(time: Duration) -> Finding {
    let seen = format!("a round trip to it takes {:.2} ms", time.as_secs_f64() * 1000.0);
    if time <= DOCTOR_ROUND_TRIP_TIME {
        return Finding::ok(CHECK, seen);
    }
    Finding::warn(CHECK, format!("{seen}, which each log-in waits for"))
        .with_fix("use a database on the same machine or network", "the same: it stays")
}

fn judge_tls(terms: &TlsTerms, now: SystemTime) -> Finding {
    let TlsTerms { version, is_verified, certificate } = terms;
    let Some(facts) = Facts::of(certificate) else {
        return Finding::ok(CHECK, format!("the connection to it is encrypted ({version})"));
    };
    let (names, days) = (facts.names.join(", "), facts.days_left(now));
    let certificate = format!("a certificate for {names}, {days} days left");
    if !is_verified {
        let seen = format!("the connection to it is encrypted ({version}), by {certificate}, not verified");
        return Finding::warn(CHECK, format!("{seen}: an impostor gets the accounts"))
            .with_fix("add sslmode=verify-full to the URL", "docs/databases.md has the modes");
    }
    let seen = format!("the connection to it is encrypted ({version}), by {certificate}, verified");
    if facts.is_near_its_end(days) {
        return Finding::warn(CHECK, seen)
            .with_fix("renew the certificate of the database server", "the same, before it ends");
    }
    Finding::ok(CHECK, seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Verdict;

    #[test]
    fn tables_that_a_server_refuses_are_a_failure() {
        let verdict = |version, closed: &str| {
            judge(&Schema { store: "PostgreSQL", version, known: 3, closed: closed.to_owned() }).verdict
        };
        assert_eq!([0, 2, 3].map(|version| verdict(version, "")), [Verdict::Ok; 3]);
        assert_eq!([verdict(4, ""), verdict(3, "it was moved")], [Verdict::Fail; 2]);
    }

    #[test]
    fn a_slow_round_trip_is_a_warning() {
        assert_eq!(judge_time(Duration::from_micros(90)).verdict, Verdict::Ok);
        assert_eq!(judge_time(Duration::from_millis(11)).verdict, Verdict::Warn);
    }
}
