//! What libtest prints, line by line, as counts and names.
//!
//! A block is one test binary's run, from `running N tests` to `test result:`. The result line is what
//! counts: a name may be lost where a test's child writes into the middle of a line, its outcome must not
//! be. Which binary a block is cargo says on standard error, in the same order; so every binary must use
//! libtest's harness. What a failed test said is kept, to be told again at the end: it is far above by then.

/// Everything read so far.
#[derive(Default)]
pub(super) struct Reading {
    pub(super) blocks: Vec<Block>,
}

/// One binary's tests.
#[derive(Default)]
pub(super) struct Block {
    pub(super) binary: String,
    pub(super) tests: Vec<Test>,
    pub(super) failures: Vec<Failure>,
    /// Missing until the binary has ended by itself.
    pub(super) totals: Option<Totals>,
}

/// One test and how it ended.
pub(super) struct Test {
    pub(super) name: String,
    pub(super) outcome: Outcome,
}

/// What a failed test said.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Failure {
    pub(super) name: String,
    pub(super) words: Vec<String>,
    /// Whether more of its words may follow.
    is_open: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Outcome {
    Passed,
    Failed,
    Ignored,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Totals {
    pub(super) passed: usize,
    pub(super) failed: usize,
    pub(super) ignored: usize,
}

impl Reading {
    pub(super) fn line(&mut self, line: &str) {
        if is_opening(line) {
            self.blocks.push(Block::default());
            return;
        }
        let Some(block) = self.blocks.last_mut() else { return };
        if let Some(totals) = result(line) {
            block.totals = Some(totals);
        } else if block.totals.is_none() {
            block.tests.extend(test(line));
            block.failure(line);
        }
    }

    /// Gives the blocks their binaries, in the order in which cargo announced them.
    pub(super) fn name_blocks(&mut self, binaries: &[String]) {
        for (block, binary) in self.blocks.iter_mut().zip(binaries) {
            block.binary.clone_from(binary);
        }
    }

    pub(super) fn totals(&self) -> Totals {
        self.blocks.iter().filter_map(|block| block.totals).fold(Totals::default(), |sum, block| Totals {
            passed: sum.passed + block.passed,
            failed: sum.failed + block.failed,
            ignored: sum.ignored + block.ignored,
        })
    }
}

impl Block {
    /// Reads a line of what failed tests said: a heading each, words, at last all their names.
    fn failure(&mut self, line: &str) {
        if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
            self.failures.push(Failure { name: name.to_owned(), words: Vec::new(), is_open: true });
        } else if let Some(last) = self.failures.last_mut().filter(|last| last.is_open) {
            if line == "failures:" {
                last.is_open = false;
            } else if !line.trim().is_empty() {
                last.words.push(line.to_owned());
            }
        }
    }
}

/// The binary in cargo's announcement of a run, such as `Running tests/a.rs (target/debug/deps/a-0123)`.
pub(super) fn announced(line: &str) -> Option<String> {
    let line = line.trim();
    if let Some(name) = line.strip_prefix("Doc-tests ") {
        return Some(format!("doc-tests of {name}"));
    }
    let (_, path) = line.strip_prefix("Running ")?.strip_suffix(')')?.rsplit_once('(')?;
    let file = path.rsplit('/').next()?;
    Some(file.rsplit_once('-').map_or(file, |(name, _)| name).to_owned())
}

fn is_opening(line: &str) -> bool {
    let count = line.strip_prefix("running ").and_then(|rest| rest.split_once(" test"));
    count.is_some_and(|(count, end)| count.parse::<usize>().is_ok() && (end.is_empty() || end == "s"))
}

fn test(line: &str) -> Option<Test> {
    let (name, outcome) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
    let outcome = match outcome {
        "ok" => Outcome::Passed,
        "FAILED" => Outcome::Failed,
        other if other.starts_with("ignored") => Outcome::Ignored,
        _ => return None,
    };
    Some(Test { name: name.trim_end_matches(" - should panic").to_owned(), outcome })
}

fn result(line: &str) -> Option<Totals> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |kind: &str| {
        let found = counts.split("; ").find_map(|part| part.strip_suffix(kind));
        found.and_then(|number| number.trim().parse().ok())
    };
    Some(Totals { passed: count("passed")?, failed: count("failed")?, ignored: count("ignored")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "
running 4 tests
test epoll::range::first_bytes ... ok
test thread::range::first_bytes - should panic ... FAILED
test simulator::range::first_bytes ... ignored, too slow
test thread::range::la some child's words
ok

failures:

---- thread::range::first_bytes stdout ----

thread 'thread::range::first_bytes' panicked at a.rs:1:2:
no byte came

failures:
    thread::range::first_bytes

test result: FAILED. 2 passed; 1 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.10s

running 1 test
test crates/io/src/lib.rs - Stream (line 3) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

running 2 tests
test a ... ok
";

    fn read(output: &str) -> Reading {
        let mut reading = Reading::default();
        output.lines().for_each(|line| reading.line(line));
        reading
    }

    #[test]
    fn counts_what_the_result_lines_say() {
        assert_eq!(read(OUTPUT).totals(), Totals { passed: 3, failed: 1, ignored: 1 });
    }

    #[test]
    fn knows_each_test_by_name_and_outcome() {
        let reading = read(OUTPUT);
        let tests: Vec<_> =
            reading.blocks[0].tests.iter().map(|test| (test.name.as_str(), test.outcome)).collect();
        assert_eq!(
            tests,
            [
                ("epoll::range::first_bytes", Outcome::Passed),
                ("thread::range::first_bytes", Outcome::Failed),
                ("simulator::range::first_bytes", Outcome::Ignored),
            ]
        );
    }

    #[test]
    fn keeps_what_a_failed_test_said() {
        let reading = read(OUTPUT);
        let [failure] = &reading.blocks[0].failures[..] else { panic!("one failed") };
        assert_eq!(failure.name, "thread::range::first_bytes");
        assert_eq!(
            failure.words,
            ["thread 'thread::range::first_bytes' panicked at a.rs:1:2:", "no byte came"]
        );
    }

    #[test]
    fn a_binary_that_died_has_no_totals() {
        assert_eq!(
            read(OUTPUT).blocks.iter().map(|block| block.totals.is_some()).collect::<Vec<_>>(),
            [true, true, false]
        );
    }

    #[test]
    fn cargo_announces_a_binary() {
        let names =
            ["     Running tests/a.rs (target/debug/deps/a_b-0123456789abcdef)", "   Doc-tests plimsoll_io"];
        assert_eq!(
            names.map(announced),
            [Some("a_b".to_owned()), Some("doc-tests of plimsoll_io".to_owned())]
        );
        assert_eq!(announced("   Compiling a v0.1.0 (/a/b)"), None);
    }

    #[test]
    fn words_that_only_resemble_libtests_are_passed_over() {
        let reading = read("running late\ntest of nerves\nrunning 1 tests too many\n");
        assert!(reading.blocks.is_empty());
    }
}
