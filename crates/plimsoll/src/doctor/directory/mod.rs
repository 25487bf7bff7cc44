//! Checks a directory of accounts on a database server: reachable, durable, with free connections, and with
//! tables of this program.
//!
//! It creates no tables. Invariant: a directory in a file gets no finding here; the checks of the disk and
//! of the data folder cover it.

#[cfg(feature = "mysql")]
mod mysql;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "redis")]
mod redis;
mod schema;

use plimsoll_auth::directory::{NotOpened, ServerInfo, server_info, without_password};
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
use plimsoll_auth::limits::DATABASE_CONNECTIONS_MAX;

use super::Finding;
use crate::config::{AuthAt, Config};
use crate::tiers::directory_url;

const CHECK: &str = "directory";
/// The most connections of a server and one operator command.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
const CONNECTIONS: u64 = DATABASE_CONNECTIONS_MAX + 1;

/// The remedy for a URL that cannot be used, and the page about it.
const FORMS: (&str, &str) =
    ("correct directory in the configuration, or --directory", "docs/databases.md has the forms");

pub(super) fn check(config: &Config) -> Vec<Finding> {
    if !config.fixed.accounts || config.fixed.auth != AuthAt::Embedded {
        return Vec::new();
    }
    let url = match directory_url(&config.fixed) {
        Ok(url) => url,
        Err(error) => return vec![Finding::fail(CHECK, error.to_string()).with_fix(FORMS.0, FORMS.1)],
    };
    match server_info(&url) {
        Ok(None) => Vec::new(),
        Ok(Some(facts)) => judge(&facts).into_iter().chain(schema::check(&url)).collect(),
        Err(NotOpened::Url(bad)) => vec![Finding::fail(CHECK, bad.to_string()).with_fix(FORMS.0, FORMS.1)],
        Err(error) => {
            vec![
                Finding::fail(CHECK, format!("{} does not answer: {error}", without_password(&url)))
                    .with_fix(
                        "start it, and see that the address, the name and the password are right",
                        "docs/databases.md has the commands",
                    ),
            ]
        }
    }
}

fn judge(facts: &ServerInfo) -> Vec<Finding> {
    match facts {
        #[cfg(feature = "mysql")]
        ServerInfo::Mysql(facts) => mysql::judge(facts),
        #[cfg(feature = "postgres")]
        ServerInfo::Postgres(facts) => postgres::judge(facts),
        #[cfg(feature = "redis")]
        ServerInfo::Redis(facts) => redis::judge(facts),
        _ => Vec::new(),
    }
}

/// Checks that the database server has room for these connections. Either result is a finding.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "redis"))]
fn room(max: u64, taken: u64) -> Result<Finding, Finding> {
    let seen = format!("it takes {max} connections, others have {taken}, and we open up to {CONNECTIONS}");
    if taken.saturating_add(CONNECTIONS) <= max {
        Ok(Finding::ok(CHECK, seen))
    } else {
        Err(Finding::warn(CHECK, seen))
    }
}
