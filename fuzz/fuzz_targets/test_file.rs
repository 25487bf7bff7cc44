//! Test files of document 003's client.
//!
//! Not here: the requests made from them. Invariants: a parsed test can be run; a mistake lies within the
//! file, or right behind it; a file with a document type is never read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_load::FileTest;

fuzz_target!(|bytes: &[u8]| match FileTest::parse(bytes) {
    Ok(tests) => {
        assert!(!tests.is_empty());
        for test in tests {
            assert!(test.threads > 0 && test.iterations > 0 && !test.files.is_empty());
            assert!(test.files.iter().all(|file| file.starts_with('/') || file.starts_with("http://")));
        }
    }
    Err(bad) => {
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
        assert!((1..=lines).contains(&bad.line) && bad.column >= 1 && !bad.problem.is_empty());
        assert!(bad.column <= bytes.len() + 1);
    }
});
