//! Rule `purity`: the contract, the wire formats and the conversations use no socket, file, clock or
//! random numbers.
//!
//! They call the engine for each, so that the simulator can replace it. Types of time are permitted,
//! reading the time is not; tests are exempt. Only the clients of databases use tokio, on the thread of the
//! call: any other dependency that needs it has its own thread or process.

use super::paths::{self, PathUse};
use super::source::{Finding, Source};

pub(super) const RULE: &str = "purity";

const PURE: [&str; 10] = [
    "crates/acme",
    "crates/io",
    "crates/wire",
    "crates/client",
    "crates/auth",
    "crates/store",
    "crates/content",
    "crates/operations",
    "crates/proto",
    "crates/web",
];

/// Files with blocking calls of an account directory, which run where the engine permits blocking: the
/// deadline of a call to a directory server, the socket to it, the certificates for it, the time that calls
/// take, and the files next to SQLite's. (SQLite's library accesses its file and clock itself.) A build's
/// script is in no server.
const EXEMPT: [&str; 6] = [
    "crates/auth/src/directory/database/deadline.rs",
    "crates/auth/src/directory/database/socket.rs",
    "crates/auth/src/directory/database/tls.rs",
    "crates/auth/src/directory/meter.rs",
    "crates/auth/src/directory/sqlite/revoked.rs",
    "crates/web/build.rs",
];

/// The clients of databases. Their drivers are polled by the thread that calls the directory.
const HOSTS: [&str; 3] = [
    "crates/auth/src/directory/database",
    "crates/auth/src/directory/postgres",
    "crates/auth/src/directory/redis",
];

/// Crates that are permitted there only. (Redis's driver has the name of a module of ours; `arrows` bounds
/// it.)
const GUESTS: [&str; 3] = ["tokio", "tokio_postgres", "tokio_rustls"];

/// The paths that a pure crate must not name, and their replacements.
const IMPURE: [(&str, &str); 5] = [
    ("std::net", "ask the engine for a connection; `core::net` has the addresses"),
    ("std::fs", "reach files through `Io::offload` and `Fs`"),
    ("std::time::SystemTime::now", CLOCK),
    ("std::time::Instant::now", CLOCK),
    ("rand", "ask the engine for `entropy`"),
];
const CLOCK: &str = "ask the engine for `now`";

/// Finds an impure path in a pure crate, and tokio outside the clients of databases.
pub(super) fn check(source: &Source) -> Vec<Finding> {
    let named = paths::named(&source.code());
    let product = named.iter().filter(|named| !source.is_test_line(named.line));
    product.filter_map(|named| Some(source.finding(named.line, RULE, advice(source, named)?))).collect()
}

fn advice(source: &Source, named: &PathUse) -> Option<&'static str> {
    if GUESTS.iter().any(|guest| names(named, guest)) && !source.is_under(&HOSTS) {
        return Some("no tokio in the core: use the executor, or a process of its own");
    }
    let row = IMPURE.iter().find(|(path, _)| names(named, path))?;
    (source.is_under(&PURE) && !EXEMPT.contains(&source.path.as_str())).then_some(row.1)
}

/// Whether a path is, or is below, the banned path. A clock is read through its type, imported or not.
fn names(named: &PathUse, banned: &str) -> bool {
    let is_crate = !banned.contains("::");
    if is_crate && !named.is_import && !named.path.contains("::") {
        return false;
    }
    let short = banned.strip_prefix("std::time::");
    named.is_below(banned)
        || short.is_some_and(|short| named.path == short || named.path.ends_with(&format!("::{short}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        check(&Source::new(path.to_owned(), text)).len()
    }

    #[test]
    fn a_pure_crate_asks_the_engine() {
        for text in [
            "use std::net::TcpStream;",
            "use std::{fs, io};",
            "let a = Instant::now();",
            "let a = std::time::SystemTime::now();",
            "let a = rand::random();",
        ] {
            assert_eq!(findings("crates/proto/src/http/session.rs", text), 1, "{text}");
            assert_eq!(findings("crates/engine/src/exec.rs", text), 0, "{text}");
        }
    }

    #[test]
    fn types_names_and_tests_are_fine() {
        for text in [
            "use std::time::{Duration, Instant};",
            "use core::net::SocketAddr;",
            "let rand = 1;",
            "#[cfg(test)]\nmod tests {\n    use std::fs;\n}\n",
        ] {
            assert_eq!(findings("crates/wire/src/ftp.rs", text), 0, "{text}");
        }
    }

    #[test]
    fn exempt_files_lead_from_a_directory_to_its_server_and_no_others() {
        let text = "use std::net::TcpStream; let now = Instant::now();";
        assert_eq!(findings(EXEMPT[0], text), 0);
        assert_eq!(findings("crates/auth/src/directory/database/mod.rs", text), 2);
    }

    #[test]
    fn only_the_clients_of_databases_use_tokio() {
        for text in ["use tokio::net::TcpStream;", "use tokio_postgres::Client;"] {
            for path in ["crates/load/src/driver.rs", "crates/auth/src/service/mod.rs", EXEMPT[3]] {
                assert_eq!(findings(path, text), 1, "{path}: {text}");
            }
            assert_eq!(findings("crates/auth/src/directory/postgres/connection.rs", text), 0, "{text}");
        }
        assert_eq!(findings("crates/load/src/driver.rs", "// unlike tokio::net"), 0);
    }
}
