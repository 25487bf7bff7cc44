//! Parses libtest's output, line by line, into counts and names.
//!
//! A block is one test binary's run, from `running N tests` to `test result:`. The counts come from the
//! result line: a name may be lost where a test's child process writes into the middle of a line, an
//! outcome must not be. For the examples in the documentation, cargo names the crate of each block on
//! standard error, in the same order. The output of failed tests is kept and repeated at the end, because
//! it has scrolled far up by then.

use std::fmt;

/// The heading of the failed tests' output, and of the list of their names.
const FAILURES: &str = "failures:";
/// The begin of the line by which a test reports on standard error that it is skipped. The tests' `skips`
/// module writes it.
const SKIPPED: &str = "skipped: ";

/// Everything read so far.
#[derive(Default)]
pub(super) struct Reading {
    pub(super) blocks: Vec<Block>,
    /// For each skipped test its name, what it lacks, and the reason.
    pub(super) skipped: Vec<String>,
    /// The names by which cargo announced blocks.
    announced: Vec<String>,
}

/// One binary's tests.
#[derive(Default)]
pub(super) struct Block {
    pub(super) binary: String,
    pub(super) tests: Vec<Test>,
    /// The lines about failed tests: for each a heading and its output, and then their names.
    pub(super) output: Vec<String>,
    /// Missing until the binary has ended by itself.
    pub(super) totals: Option<Totals>,
}

/// One test and how it ended.
pub(super) struct Test {
    pub(super) name: String,
    pub(super) outcome: Outcome,
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
    /// Those that reported that something is missing on this machine; not among `passed`.
    pub(super) skipped: usize,
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
            // The output of passed tests comes before, if it was requested.
            if line == FAILURES || !block.output.is_empty() {
                block.output.push(line.to_owned());
            }
        }
    }

    /// Reads a line of standard error.
    pub(super) fn error_line(&mut self, line: &str) {
        self.skipped.extend(line.strip_prefix(SKIPPED).map(str::to_owned));
        self.announced.extend(announced(line));
    }

    /// Adds what was read from the standard error of the same program.
    pub(super) fn add_errors(&mut self, errors: Reading) {
        self.skipped.extend(errors.skipped);
        self.announced.extend(errors.announced);
    }

    /// Assigns a binary's name to all blocks; without one, the names by which cargo announced them.
    pub(super) fn name_blocks(&mut self, name: &str) {
        for (at, block) in self.blocks.iter_mut().enumerate() {
            let name = if name.is_empty() { self.announced.get(at).map_or("", String::as_str) } else { name };
            name.clone_into(&mut block.binary);
        }
    }

    /// Adds the results of another program.
    pub(super) fn add(&mut self, other: Reading) {
        self.blocks.extend(other.blocks);
        self.skipped.extend(other.skipped);
    }

    pub(super) fn totals(&self) -> Totals {
        let blocks = self.blocks.iter().filter_map(|block| block.totals);
        let sum = blocks.fold(Totals::default(), |sum, block| Totals {
            passed: sum.passed + block.passed,
            failed: sum.failed + block.failed,
            ignored: sum.ignored + block.ignored,
            skipped: 0,
        });
        // To libtest, a skipped test is one that passed.
        let skipped = self.skipped.len().min(sum.passed);
        Totals { passed: sum.passed - skipped, skipped, ..sum }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 { write!(f, ", {} skipped", self.skipped) } else { Ok(()) }
    }
}

impl Block {
    /// Returns the failed tests, each with its output from its panic on. A name may be lost in the
    /// result lines, or the output in the listing, so both are read.
    pub(super) fn failed(&self) -> Vec<(&str, &[String])> {
        let headings = self.output.iter().enumerate().filter_map(|(at, line)| Some((at + 1, heading(line)?)));
        let mut failed: Vec<_> = headings.map(|(at, name)| (name, words(&self.output[at..]))).collect();
        for test in self.tests.iter().filter(|test| test.outcome == Outcome::Failed) {
            if failed.iter().all(|(name, _)| *name != test.name) {
                failed.push((&test.name, &[]));
            }
        }
        failed
    }
}

fn heading(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// Returns the output of one failed test: up to the next heading, from its panic on.
fn words(lines: &[String]) -> &[String] {
    let end = lines.iter().position(|line| heading(line).is_some() || line == FAILURES);
    let own = &lines[..end.unwrap_or(lines.len())];
    let panic = own.iter().position(|line| line.contains(" panicked at "));
    &own[panic.unwrap_or(0)..]
}

/// Returns the name in cargo's announcement of examples in documentation.
fn announced(line: &str) -> Option<String> {
    line.trim().strip_prefix("Doc-tests ").map(|name| format!("doc-tests of {name}"))
}

/// Returns whether a line is the result of a test that failed.
pub(super) fn is_failure(line: &str) -> bool {
    test(line).is_some_and(|test| test.outcome == Outcome::Failed)
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
    // libtest-mimic pads the names to one width.
    let name = name.trim_end().trim_end_matches(" - should panic");
    Some(Test { name: name.to_owned(), outcome })
}

fn result(line: &str) -> Option<Totals> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let count = |kind: &str| {
        let found = counts.split("; ").find_map(|part| part.strip_suffix(kind));
        found.and_then(|number| number.trim().parse().ok())
    };
    Some(Totals {
        passed: count("passed")?,
        failed: count("failed")?,
        ignored: count("ignored")?,
        skipped: 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "
running 4 tests
test epoll::range::first_bytes    ... ok
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

    fn names(reading: &Reading) -> Vec<&str> {
        reading.blocks.iter().map(|block| block.binary.as_str()).collect()
    }

    #[test]
    fn counts_what_the_result_lines_say() {
        assert_eq!(read(OUTPUT).totals(), Totals { passed: 3, failed: 1, ignored: 1, skipped: 0 });
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
        let words = ["thread 'thread::range::first_bytes' panicked at a.rs:1:2:", "no byte came", ""];
        let words = words.map(str::to_owned);
        assert_eq!(reading.blocks[0].failed(), [("thread::range::first_bytes", &words[..])]);
    }

    #[test]
    fn a_test_that_failed_without_a_word_is_kept_and_one_that_passed_with_some_is_not() {
        let output = "running 2 tests\ntest a ... ok\ntest b ... FAILED\n\nsuccesses:\n\n---- a stdout ----\n\
                      fine\n\nsuccesses:\n    a\n\nfailures:\n\nfailures:\n    b\n";
        let reading = read(output);
        assert_eq!(reading.blocks[0].failed(), [("b", &[][..])]);
    }

    #[test]
    fn a_binary_that_died_has_no_totals() {
        assert_eq!(
            read(OUTPUT).blocks.iter().map(|block| block.totals.is_some()).collect::<Vec<_>>(),
            [true, true, false]
        );
    }

    #[test]
    fn the_examples_of_each_crate_are_named_by_cargo() {
        let mut reading = read("running 1 test\nrunning 0 tests\n");
        reading.error_line("   Compiling a v0.1.0 (/a/b)");
        reading.error_line("   Doc-tests plimsoll_io");
        reading.name_blocks("");
        assert_eq!(names(&reading), ["doc-tests of plimsoll_io", ""]);
        reading.name_blocks("behaviours");
        assert_eq!(names(&reading), ["behaviours", "behaviours"]);
    }

    #[test]
    fn a_skipped_test_is_counted_apart_from_those_that_passed() {
        let output = "running 2 tests\ntest a ... ok\ntest b ... ok\n\n\
                      test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured;\n";
        let mut reading = read(output);
        reading.error_line("skipped: b: uring: the kernel has none");
        assert_eq!(reading.totals().to_string(), "1 passed, 0 failed, 1 skipped");
        assert_eq!(read("").totals().to_string(), "0 passed, 0 failed");
    }

    #[test]
    fn words_that_only_resemble_libtests_are_passed_over() {
        let reading = read("running late\ntest of nerves\nrunning 1 tests too many\n");
        assert!(reading.blocks.is_empty());
    }
}
