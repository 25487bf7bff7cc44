//! The requirements on a run besides that its tests pass.
//!
//! Each complaint is one line that describes the violation. A failed test is not a complaint: libtest
//! has reported it already.

use super::conformance::Table;
use super::reading::{Outcome, Reading};

/// Returns all complaints about a run, the errors of its programs among them.
pub(super) fn complaints(reading: &Reading, engines: &Table, errors: &[String]) -> Vec<String> {
    let mut complaints = errors.to_vec();
    complaints.extend(
        reading
            .blocks
            .iter()
            .filter(|block| block.totals.is_none())
            .map(|block| format!("`{}` ended without a result; did it crash?", block.binary)),
    );
    complaints.extend(ignored(reading));
    let totals = reading.totals();
    if totals.passed + totals.failed == 0 {
        complaints.push("no test ran".to_owned());
    } else {
        complaints.extend(engines.gaps());
    }
    complaints
}

fn ignored(reading: &Reading) -> Option<String> {
    let count = reading.totals().ignored;
    let tests = reading.blocks.iter().flat_map(|block| &block.tests);
    let names: Vec<&str> =
        tests.filter(|test| test.outcome == Outcome::Ignored).map(|test| test.name.as_str()).collect();
    (count > 0).then(|| format!("{count} ignored; a test runs or goes: {}", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "running 4 tests\ntest epoll::a ... ok\ntest thread::a ... ok\ntest uring::a ... ok\n\
                         test simulator::a ... ok\n";

    fn complaints_of(output: &str, errors: &[String]) -> usize {
        let mut reading = Reading::default();
        output.lines().for_each(|line| reading.line(line));
        reading.name_blocks("behaviours");
        let engines = Table::of(&reading.blocks, false);
        complaints(&reading, &engines, errors).len()
    }

    fn result(passed: usize, ignored: usize) -> String {
        format!(
            "test result: ok. {passed} passed; 0 failed; {ignored} ignored; 0 measured; 0 filtered out;\n"
        )
    }

    #[test]
    fn a_clean_run_has_none() {
        assert_eq!(complaints_of(&format!("{WHOLE}{}", result(4, 0)), &[]), 0);
    }

    #[test]
    fn a_crash_an_ignored_test_an_empty_run_and_an_error_have_one() {
        let clean = format!("{WHOLE}{}", result(4, 0));
        assert_eq!(complaints_of(&format!("{clean}{WHOLE}"), &[]), 1);
        assert_eq!(complaints_of(&format!("{WHOLE}{}", result(4, 1)), &[]), 1);
        assert_eq!(complaints_of("", &[]), 1);
        assert_eq!(complaints_of(&clean, &["a program cannot be run".to_owned()]), 1);
    }

    #[test]
    fn a_part_of_the_suite_is_not_enough() {
        let part = format!("running 1 test\ntest epoll::a ... ok\n{}", result(1, 0));
        assert_eq!(complaints_of(&part, &[]), 3);
    }
}
