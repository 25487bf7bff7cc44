//! The conformance suite's count per engine: the same behaviours must exist under each.
//!
//! A test belongs to the suite by its binary: `behaviours`, or `forked`, where each test has a process
//! of its own. One segment of its path is an engine's name; the rest of the path is the behaviour. This
//! module checks only whether a test exists, not whether it passed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::reading::{Block, Outcome};

/// The test binaries that contain the suite.
const SUITES: [&str; 2] = ["behaviours", "forked"];
/// All engines, in the order of the table.
const ENGINES: [&str; 6] = ["process", "thread", "pool", "epoll", "uring", "simulator"];
/// The engines under which every run must have the suite.
const ON_EACH_COMMIT: [&str; 4] = ["thread", "epoll", "uring", "simulator"];
/// The further engines under which a long run must have it.
const IN_A_LONG_RUN: [&str; 2] = ["process", "pool"];
/// Behaviours that an engine cannot have, by the start of their names. Under `process`, a test cannot read
/// the hot cache and the counts of a channel: the connection's process has them. A proxy has no cache there,
/// and each of its processes has connections of its own.
const LACKING: [(&str, &str); 8] = [
    ("process", "hot::sites::swept::"),
    ("process", "channel::copied::"),
    ("process", "channel::counted::"),
    ("process", "channel::with_one_slot::counted::"),
    ("process", "proxy::caching"),
    ("process", "proxy::passed"),
    ("process", "proxy::slices::"),
    ("process", "proxy::slow_clients::busy::"),
];

/// The behaviours found under each engine, with their outcomes.
#[derive(Default)]
pub(super) struct Table {
    is_long: bool,
    engines: BTreeMap<&'static str, BTreeMap<String, Outcome>>,
}

impl Table {
    /// Collects the suite's tests from `blocks`, of a long run or not.
    pub(super) fn of(blocks: &[Block], is_long: bool) -> Self {
        let mut table = Self { is_long, ..Self::default() };
        for test in blocks
            .iter()
            .filter(|block| SUITES.contains(&block.binary.as_str()))
            .flat_map(|block| &block.tests)
        {
            if let Some((engine, behaviour)) = divide(&test.name) {
                table.engines.entry(engine).or_default().insert(behaviour, test.outcome);
            }
        }
        table
    }

    /// Returns one line for each behaviour that an engine lacks and another has.
    pub(super) fn gaps(&self) -> Vec<String> {
        if self.engines.is_empty() {
            return vec![format!("no test of the conformance suite (`{}`) ran", SUITES[0])];
        }
        let all: BTreeSet<&String> = self.engines.values().flat_map(BTreeMap::keys).collect();
        let engines = ENGINES.iter().filter(|name| self.is_wanted(name) || self.engines.contains_key(*name));
        engines.flat_map(|engine| all.iter().filter_map(|behaviour| self.gap(engine, behaviour))).collect()
    }

    fn is_wanted(&self, engine: &str) -> bool {
        ON_EACH_COMMIT.contains(&engine) || self.is_long && IN_A_LONG_RUN.contains(&engine)
    }

    fn gap(&self, engine: &str, behaviour: &str) -> Option<String> {
        let has = self.engines.get(engine).is_some_and(|behaviours| behaviours.contains_key(behaviour));
        let lacks = LACKING.iter().any(|(name, path)| *name == engine && behaviour.starts_with(path));
        (!has && !lacks).then(|| format!("`{behaviour}` is not tested under {engine}"))
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.engines.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n{:<10} {:>10} {:>7} {:>7}", "engine", "behaviours", "passed", "failed")?;
        for (engine, behaviours) in ENGINES.iter().filter_map(|name| Some((name, self.engines.get(name)?))) {
            let count = |wanted| behaviours.values().filter(|outcome| **outcome == wanted).count();
            let (passed, failed) = (count(Outcome::Passed), count(Outcome::Failed));
            writeln!(f, "{engine:<10} {:>10} {passed:>7} {failed:>7}", behaviours.len())?;
        }
        for engine in IN_A_LONG_RUN.iter().filter(|engine| !self.engines.contains_key(*engine)) {
            writeln!(f, "{engine:<10}   not in this run: make test-long has it")?;
        }
        writeln!(f)
    }
}

/// Splits a test's path into the engine and the rest.
fn divide(name: &str) -> Option<(&'static str, String)> {
    let segments: Vec<&str> = name.split("::").collect();
    let (at, engine) = segments.iter().enumerate().find_map(|(at, segment)| {
        ENGINES.into_iter().find(|engine| engine == segment).map(|engine| (at, engine))
    })?;
    let rest = [&segments[..at], &segments[at + 1..]].concat();
    Some((engine, rest.join("::")))
}

#[cfg(test)]
mod tests {
    use super::super::reading::{Outcome, Test};
    use super::*;

    const SUITE: &str = SUITES[0];

    fn table(binary: &str, names: &[&str]) -> Table {
        let test = |name: &&str| Test { name: (*name).to_owned(), outcome: Outcome::Passed };
        let tests = names.iter().map(test).collect();
        Table::of(&[Block { binary: binary.to_owned(), tests, ..Block::default() }], false)
    }

    #[test]
    fn permits_only_what_an_engine_cannot_run_to_be_absent() {
        let absent = |engine: &str, behaviour: &str| table(SUITE, &["thread::a"]).gap(engine, behaviour);
        assert_eq!(absent("process", "hot::sites::swept::a"), None);
        assert!(absent("pool", "hot::sites::swept::a").is_some());
        assert!(absent("process", "hot::sites::a").is_some());
    }

    #[test]
    fn finds_a_behaviour_that_one_engine_lacks() {
        let names = [
            "epoll::range::a",
            "range::thread::a",
            "simulator::range::a",
            "thread::range::b",
            "epoll::range::b",
            "uring::range::a",
            "uring::range::b",
        ];
        assert_eq!(table(SUITE, &names).gaps(), ["`range::b` is not tested under simulator"]);
    }

    #[test]
    fn an_engine_to_come_counts_once_it_is_there() {
        let names = ["epoll::a", "thread::a", "uring::a", "simulator::a", "process::b"];
        assert_eq!(table(SUITE, &names).gaps().len(), 5);
        assert!(table(SUITE, &names[..4]).gaps().is_empty());
    }

    #[test]
    fn an_existing_engine_cannot_be_left_out() {
        let names = ["epoll::a", "thread::a", "uring::a"];
        assert_eq!(table(SUITE, &names).gaps(), ["`a` is not tested under simulator"]);
        assert_eq!(table("plimsoll_engine", &["serve::epoll::a"]).gaps().len(), 1);
    }

    #[test]
    fn a_long_run_has_an_engine_more_and_another_says_that_it_has_not() {
        let names = ["epoll::a", "thread::a", "uring::a", "simulator::a", "pool::a"];
        let long = |names: &[&str]| Table { is_long: true, ..table(SUITE, names) };
        let gaps = ["`a` is not tested under process", "`a` is not tested under pool"];
        assert_eq!(long(&names[..4]).gaps(), gaps);
        assert!(table(SUITE, &names[..4]).to_string().contains("pool         not in this run"));
        assert_eq!(long(&names[..]).gaps(), gaps[..1]);
        let all = [&names[..], &["process::a"]].concat();
        assert!(long(&all).gaps().is_empty());
        assert!(!long(&all).to_string().contains("not in this run"));
    }

    #[test]
    fn a_behaviour_that_an_engine_lacks_is_no_gap() {
        let (engine, lacking) = LACKING[0];
        let name = |engine: &str, behaviour: &str| format!("{engine}::{behaviour}");
        let others = ["thread", "epoll", "uring", "simulator", "pool"].map(|other| name(other, lacking));
        let names = others.iter().map(String::as_str).collect::<Vec<_>>();
        let long = |names: &[&str]| Table { is_long: true, ..table(SUITE, names) };
        assert!(long(&names).gaps().is_empty(), "{engine}");
        assert_eq!(long(&names[1..]).gaps().len(), 1);
    }

    #[test]
    fn prints_a_row_for_each_engine_that_occurs() {
        let text = table(SUITE, &["epoll::a", "epoll::b", "thread::a"]).to_string();
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[2..4], [["thread", "1", "1", "0"], ["epoll", "2", "2", "0"]]);
    }
}
