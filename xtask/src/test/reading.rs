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
    /// It has begun to tell what failed tests said.
    pub(super) tells_failures: bool,
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
        let heading = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----"));
        let open = self.failures.last_mut().filter(|last| last.is_open);
        match (line, heading, open) {
            ("failures:", _, open) => {
                self.tells_failures = true;
                open.into_iter().for_each(|last| last.is_open = false);
            }
            // Those that passed are told like this, too, where that is asked for.
            (_, Some(name), _) if self.tells_failures => {
                self.failures.push(Failure { name: name.to_owned(), words: Vec::new(), is_open: true });
            }
            (_, None, Some(last)) if !line.trim().is_empty() => last.words.push(line.to_owned()),
            _ => {}
        }
    }

    /// Tests that failed, and what each said, if it said something: its name may be lost in the one place,
    /// its words in the other.
    pub(super) fn failed(&self) -> impl Iterator<Item = (&str, &[String])> {
        let is_told = |test: &Test| self.failures.iter().any(|failure| failure.name == test.name);
        let failed = self.tests.iter().filter(|test| test.outcome == Outcome::Failed);
        let untold = failed.filter(move |test| !is_told(test));
        let told = self.failures.iter().map(|failure| (failure.name.as_str(), failure.panic()));
        told.chain(untold.map(|test| (test.name.as_str(), &[][..])))
    }
}

impl Failure {
    /// Its words from where it panicked on.
    fn panic(&self) -> &[String] {
        let at = self.words.iter().position(|words| words.contains(" panicked at "));
        &self.words[at.unwrap_or(0)..]
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
it begins

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
    fn keeps_what_a_failed_test_said_from_its_panic_on() {
        let reading = read(OUTPUT);
        let failed: Vec<_> = reading.blocks[0].failed().collect();
        let words =
            ["thread 'thread::range::first_bytes' panicked at a.rs:1:2:", "no byte came"].map(str::to_owned);
        assert_eq!(failed, [("thread::range::first_bytes", &words[..])]);
    }

    #[test]
    fn a_test_that_failed_without_a_word_is_kept_and_one_that_passed_with_some_is_not() {
        let output = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\nsuccesses:\n\n---- a stdout ----\n\
                      fine\n\nsuccesses:\n    a\n\nfailures:\n\nfailures:\n    b\n";
        let reading = read(output);
        assert_eq!(reading.blocks[0].failed().collect::<Vec<_>>(), [("b", &[][..])]);
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
