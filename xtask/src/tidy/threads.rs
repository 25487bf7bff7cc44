//! Rule `threads`: only the engines, the binary, the client commands, the load generator and the lab start
//! threads.
//!
//! Protocols start none. The rule looks for `std::thread` in code outside tests. It does not check locks
//! and atomics.

use super::paths;
use super::source::{Finding, Source};

pub(super) const RULE: &str = "threads";

const PLACES: [&str; 8] =
    ["crates/cli", "crates/engine", "crates/plimsoll", "crates/load", "crates/lab", "tests", "fuzz", "xtask"];

/// Finds a thread in the wrong crate.
pub(super) fn check(source: &Source) -> Vec<Finding> {
    if source.is_under(&PLACES) {
        return Vec::new();
    }
    let named = paths::named(&source.code());
    let threads =
        named.iter().filter(|named| named.is_below("std::thread") && !source.is_test_line(named.line));
    threads
        .map(|named| {
            source.finding(
                named.line,
                RULE,
                "hand the work to the engine: `Io::offload`, or the connection's scope",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> usize {
        check(&Source::new(path.to_owned(), text)).len()
    }

    #[test]
    fn finds_a_thread_however_it_is_named() {
        let path = "crates/store/src/commit.rs";
        assert_eq!(findings(path, "use std::{fs, thread};"), 1);
        assert_eq!(findings(path, "std::thread::spawn(|| ());"), 1);
        assert_eq!(findings(path, "// as std::thread does"), 0);
        assert_eq!(findings(path, "use crate::thread;"), 0);
    }

    #[test]
    fn tests_and_engines_may() {
        assert_eq!(findings("crates/engine/src/lib.rs", "use std::thread;"), 0);
        assert_eq!(
            findings("crates/store/src/commit.rs", "#[cfg(test)]\nmod tests {\n    use std::thread;\n}\n"),
            0
        );
    }
}
