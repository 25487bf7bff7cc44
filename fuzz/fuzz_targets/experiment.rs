//! Experiment files of the laboratory.
//!
//! Not here: the trials of these experiments. Invariants: a text that is read has the same trials when it is
//! read again, and each of them has its settings; an error is one line.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_lab::experiment::Experiment;

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Experiment::parse(text) {
        Ok(experiment) => {
            assert!(!experiment.contenders.is_empty());
            let trials = experiment.trials();
            let again = Experiment::parse(text).expect("it was read before").trials();
            assert_eq!(trials.len(), again.len());
            for trial in trials.iter().take(100) {
                assert!(trial.contender < experiment.contenders.len());
                experiment.settings(trial).expect("every trial of a checked experiment has settings");
            }
        }
        Err(bad) => assert!(!format!("{bad:#}").is_empty()),
    }
});
