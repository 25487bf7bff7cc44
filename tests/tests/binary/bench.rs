//! The benchmark, run for real and very short, so that `make bench` is known to work.
//!
//! It compares nothing, and changes no setting of the machine.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use plimsoll_lab::bench::report;
use plimsoll_lab::bench::{Bench, Programs, Settings, named_cases};
use plimsoll_lab::contender::{Contender, read_all};
use plimsoll_tests::binary::{alone, command};

fn settings() -> Settings {
    Settings {
        users: 4,
        rounds: 1,
        seconds: 0.6,
        warm_up_seconds: 0.05,
        settle_seconds: 0.0,
        budget_seconds: 0.0,
        seed: 1,
        logs: true,
        syscalls: false,
        server_core: None,
        generator_core: None,
        congestion: Vec::new(),
    }
}

/// Returns this server and every installed peer.
fn contenders() -> Vec<Contender> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/lab/contenders");
    read_all(&folder).unwrap().into_iter().filter(Contender::is_installed).collect()
}

mod alone {
    use super::*;

    #[test]
    fn a_short_run_measures_every_contender_and_leaves_a_report() {
        let _turn = alone();
        let plimsoll = Path::new(command().get_program()).to_owned();
        let programs = Programs { generator: plimsoll.clone(), plimsoll };
        let (stop, cases) = (AtomicBool::new(false), named_cases(&["1K".to_owned()]).unwrap());
        let bench = Bench { settings: settings(), contenders: contenders(), cases, programs, stop: &stop };
        let mut told = 0;
        let results = bench.run(&mut |_| told += 1).unwrap();
        assert_eq!(told, results.trials.len());
        for name in ["plimsoll-epoll", "plimsoll-thread"] {
            for case in ["1K-kept", "1K-new"] {
                let trials = results.trials.iter();
                let mut own = trials.filter(|trial| trial.contender == name && trial.case == case);
                let trial = own.next().unwrap_or_else(|| panic!("{name}: {:?}", results.left_out));
                let measured = trial.measured.as_ref().unwrap_or_else(|| panic!("{:?}", trial.fault));
                assert!(measured.requests > 0 && measured.errors.is_empty(), "{name} {case}: {measured:?}");
            }
        }
        let folder = tempfile::tempdir().unwrap();
        report::write(&results, folder.path()).unwrap();
        for file in ["report.md", "trials.csv", "results.json", "throughput-kept-"] {
            let mut entries = folder.path().read_dir().unwrap().flatten();
            assert!(entries.any(|entry| entry.file_name().to_string_lossy().starts_with(file)), "{file}");
        }
    }

    #[test]
    fn a_run_that_is_stopped_tells_what_there_is() {
        let _turn = alone();
        let plimsoll = Path::new(command().get_program()).to_owned();
        let programs = Programs { generator: plimsoll.clone(), plimsoll };
        let (stop, cases) = (AtomicBool::new(true), named_cases(&["1K-kept".to_owned()]).unwrap());
        let ours = contenders().into_iter().filter(|one| one.name == "plimsoll-epoll").collect();
        let bench = Bench { settings: settings(), contenders: ours, cases, programs, stop: &stop };
        let results = bench.run(&mut |_| {}).unwrap();
        assert!(results.stopped && results.trials.is_empty(), "{:?}", results.trials);
        assert!(report::markdown(&results, &report::cells(&results)).contains("stopped before its end"));
    }
}
