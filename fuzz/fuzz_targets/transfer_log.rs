//! Transfer logs, from which the laboratory computes the tables of document 001.
//!
//! Not here: the file that holds a log. Invariants: a mistake has a line of the log; a cut line changes
//! nothing; a repetition in a mean has all its transfers; figures are finite and not negative.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_lab::transfer_log::{BadLine, read, tables};

fuzz_target!(|bytes: &[u8]| match read(bytes) {
    Ok(log) => {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        let results = tables(&log, 1);
        assert_eq!(tables(&read(&bytes[..whole]).expect("its whole lines"), 1).tables, results.tables);
        for cell in &results.cells {
            assert!(cell.overall_rate.is_some() == (cell.kept().count() > 0));
            for repetition in &cell.repetitions {
                assert!(repetition.overall_rate >= 0.0 && repetition.overall_rate.is_finite());
                assert!(repetition.connection_rate >= 0.0 && repetition.connection_rate.is_finite());
                assert!(repetition.spread_seconds <= repetition.seconds);
            }
            assert!(cell.kept().all(|repetition| repetition.transfers == u64::from(cell.connections)));
        }
        assert!(!results.text().is_empty() && !results.markdown().is_empty());
    }
    Err(error) => {
        let bad: BadLine = error.downcast().expect("a slice can be read");
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        assert!((1..=lines).contains(&bad.line) && bad.expected.starts_with("expected"));
    }
});
