//! Reports of handwritten trials: each statement must follow from the trials.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "tests")]

use std::collections::BTreeMap;

use plimsoll_lab::bench::report::{self, Cell, cells, csv, markdown, summary};
use plimsoll_lab::bench::{Calls, Case, Connections, Entrant, Machine, Measured, Results, Settings, Trial};

/// Responses per second of each contender by round. The machine slows down; the ratios stay.
const RATES: [(&str, [f64; 3]); 4] = [
    ("ours", [1500.0, 1200.0, 900.0]),
    ("ours-too", [750.0, 600.0, 450.0]),
    ("alpha", [1000.0, 800.0, 600.0]),
    ("beta", [500.0, 1000.0, 300.0]),
];

fn measured(rate: f64, bytes: f64) -> Measured {
    Measured {
        seconds: 1.0,
        requests: 1000,
        requests_per_second: rate,
        bytes_per_second: rate * bytes,
        cpu_us_per_request: Some(1e6 / rate),
        server_share: Some(1.0),
        generator_share: 0.5,
        generator_is_the_limit: false,
        cores_busy: vec![1.0, 0.5],
        p50_us: 40.0,
        p99_us: 90.0,
        errors: BTreeMap::new(),
        verified: 15,
        settled: true,
    }
}

fn trial(case: &Case, contender: &str, round: u32, rate: f64) -> Trial {
    #[allow(clippy::cast_precision_loss, reason = "a size")]
    let measured = measured(rate, case.bytes as f64);
    Trial {
        case: case.name.clone(),
        congestion: "cubic".to_owned(),
        contender: contender.to_owned(),
        round,
        measured: Some(measured),
        fault: None,
    }
}

fn case(size: &str, bytes: usize) -> Case {
    let name = format!("{size}-kept");
    Case { name, size: size.to_owned(), bytes, files: 10, connections: Connections::Kept }
}

fn settings() -> Settings {
    Settings {
        users: 64,
        rounds: 3,
        seconds: 1.0,
        warm_up_seconds: 0.2,
        settle_seconds: 1.0,
        budget_seconds: 60.0,
        seed: 1,
        logs: false,
        syscalls: false,
        server_core: Some(0),
        generator_core: None,
        congestion: vec!["cubic".to_owned()],
    }
}

/// Returns results with two cases, four contenders and three rounds.
fn results() -> Results {
    let cases = vec![case("1K", 1000), case("1M", 1_000_000)];
    let rounds = |case: &Case| {
        let all = (0..3).flat_map(|round| RATES.map(|(name, rates)| (name, round, rates[round])));
        let trial = |(name, round, rate): (&str, usize, f64)| {
            trial(case, name, u32::try_from(round).unwrap() + 1, rate)
        };
        all.map(trial).collect::<Vec<Trial>>()
    };
    let entrant = |(name, _): &(&str, [f64; 3])| Entrant {
        name: (*name).to_owned(),
        about: format!("what {name} is"),
        ours: name.starts_with("ours"),
        version: "1.0".to_owned(),
    };
    Results {
        begun: "2026-01-02T03-04-05Z".to_owned(),
        seconds: 60.0,
        stopped: false,
        machine: Machine::default(),
        settings: settings(),
        entrants: RATES.iter().map(entrant).collect(),
        left_out: vec!["gamma: it is not installed".to_owned()],
        trials: cases.iter().flat_map(rounds).collect(),
        cases,
        calls: Vec::new(),
    }
}

fn ratio<'a>(cell: &'a Cell, ours: &str, theirs: &str) -> &'a report::Ratio {
    cell.ratios.iter().find(|ratio| ratio.ours == ours && ratio.theirs == theirs).unwrap()
}

/// Returns the row of a table that begins with these cells.
fn row(text: &str, begin: &[&str]) -> Vec<String> {
    let split = |line: &str| line.split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let rows = text.lines().map(split);
    let mut found = rows.filter(|row| row.len() > begin.len() && row[1..=begin.len()] == *begin);
    found.next().unwrap_or_else(|| panic!("no row {begin:?} in\n{text}"))
}

#[test]
fn ratios_are_of_the_same_round_so_that_drift_is_in_none() {
    let cells = cells(&results());
    assert_eq!(cells.iter().map(|cell| cell.case.as_str()).collect::<Vec<_>>(), ["1K-kept", "1M-kept"]);
    let rate = ratio(&cells[0], "ours", "alpha").rate.unwrap();
    assert_eq!((rate.median, rate.low, rate.high), (1.5, 1.5, 1.5));
    let rate = ratio(&cells[0], "ours", "beta").rate.unwrap();
    assert_eq!((rate.median, rate.low, rate.high), (3.0, 1.2, 3.0));
    assert!((ratio(&cells[0], "ours", "alpha").cpu.unwrap().median - 1.0 / 1.5).abs() < 1e-9);
}

#[test]
fn the_best_peer_is_no_other_of_ours() {
    let cells = cells(&results());
    let best = |ours| cells[0].ratios.iter().find(|ratio| ratio.ours == ours && ratio.best_rate).unwrap();
    assert_eq!((best("ours").theirs.as_str(), best("ours-too").theirs.as_str()), ("alpha", "alpha"));
    assert!(ratio(&cells[0], "ours-too", "ours").rate.unwrap().median == 0.5, "engines are compared too");
    assert!(!cells[0].ratios.iter().any(|ratio| ratio.ours == "alpha"));
}

#[test]
fn a_table_has_medians_and_from_one_megabyte_on_bytes() {
    let results = results();
    let text = markdown(&results, &cells(&results));
    assert_eq!(row(&text, &["1K-kept", "cubic"])[3..7], ["1.20k", "600", "800", "500"]);
    assert_eq!(row(&text, &["1M-kept", "cubic"])[3..5], ["1.20 GB/s", "600 MB/s"]);
    assert_eq!(row(&text, &["1K-kept", "cubic", "ours", "alpha"])[5..7], ["1.50 [1.50, 1.50]", "alpha"]);
    for told in ["left out: gamma: it is not installed", "what alpha is", "any core", "2026-01-02T03-04-05Z"]
    {
        assert!(text.contains(told), "{told}\n{text}");
    }
    assert!(summary(&results, &cells(&results)).contains("1.50 [1.50, 1.50]"));
}

#[test]
fn what_spoils_a_figure_is_marked_beside_it() {
    let mut results = results();
    for trial in results.trials.iter_mut().filter(|trial| trial.case == "1K-kept") {
        let measured = trial.measured.as_mut().unwrap();
        match (trial.contender.as_str(), trial.round) {
            ("ours", 1 | 2) => measured.generator_is_the_limit = true,
            ("alpha", 3) => drop(measured.errors.insert("reset".to_owned(), 7)),
            ("beta", 2) => (trial.measured, trial.fault) = (None, Some("it fell over".to_owned())),
            _ => {}
        }
    }
    let cells = cells(&results);
    let text = markdown(&results, &cells);
    assert_eq!(row(&text, &["1K-kept", "cubic"])[3..7], ["1.20k g", "600", "800 e", "400 !"]);
    assert!(text.contains("beta at 1K-kept, cubic: it fell over"), "{text}");
    let rate = ratio(&cells[0], "ours", "beta").rate.unwrap();
    assert_eq!((rate.low, rate.high), (3.0, 3.0), "a round without a pair is in no ratio");
}

#[test]
fn a_cell_without_peers_or_figures_is_told_without_them() {
    let mut results = results();
    results.entrants.retain(|entrant| entrant.ours);
    results.trials.retain(|trial| trial.contender == "ours");
    results.trials.iter_mut().for_each(|trial| trial.measured = None);
    let text = markdown(&results, &cells(&results));
    assert_eq!(row(&text, &["1K-kept", "cubic"])[3..5], ["– !", "–"]);
}

#[test]
fn system_calls_are_told_with_the_most_frequent_first() {
    let mut results = results();
    let by_name = [("sendto", 1.0), ("epoll_wait", 0.25), ("recvfrom", 1.01)];
    results.calls.push(Calls {
        case: "1K-kept".to_owned(),
        contender: "ours".to_owned(),
        per_request: 2.26,
        by_name: by_name.map(|(name, each)| (name.to_owned(), each)).into(),
    });
    let text = markdown(&results, &cells(&results));
    let row = row(&text, &["1K-kept", "ours", "2.26"]);
    assert_eq!(row[4], "recvfrom 1.01, sendto 1.00, epoll_wait 0.25");
}

#[test]
fn every_trial_is_a_line_of_csv() {
    let results = results();
    let text = csv(&results.trials);
    assert_eq!(text.lines().count(), 1 + results.trials.len());
    let columns: Vec<usize> = text.lines().map(|line| line.split(',').count()).collect();
    assert!(columns.iter().all(|count| *count == columns[0]), "{text}");
    assert!(
        text.lines().nth(1).unwrap().starts_with("1K-kept,cubic,1,ours,1.000,1000,1500.0,1500000,666.667,")
    );
}

#[test]
fn a_report_can_be_made_again_from_what_it_left() {
    let (results, folder) = (results(), tempfile::tempdir().unwrap());
    report::write(&results, folder.path()).unwrap();
    let again = report::read(folder.path()).unwrap();
    assert_eq!(markdown(&again, &cells(&again)), markdown(&results, &cells(&results)));
    let missing = report::read(&folder.path().join("nowhere")).unwrap_err();
    assert!(format!("{missing:#}").contains("results.json"));
}

#[test]
fn a_case_that_was_measured_longer_is_told_as_such() {
    let mut results = results();
    let of_large = results.trials.iter_mut().filter(|trial| trial.case == "1M-kept");
    of_large.filter_map(|trial| trial.measured.as_mut()).for_each(|measured| measured.seconds = 4.0);
    let told = markdown(&results, &cells(&results));
    assert!(told.contains(" rounds of 1.00 s, of 4.00 s at 1M-kept after 0.20 s to warm up"), "{told}");
}

#[test]
fn plots_have_titles_names_and_figures() {
    let (results, folder) = (results(), tempfile::tempdir().unwrap());
    report::write(&results, folder.path()).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let throughput = read("throughput-kept-cubic.svg");
    for told in ["Throughput: kept connections, cubic", "1K-kept", "1M-kept", "alpha", "ours-too", "1.20k"] {
        assert!(throughput.contains(told), "{told}");
    }
    assert!(read("cpu-kept-cubic.svg").contains("microseconds for each answer"));
    assert!(read("ratios.svg").contains("right of 1 is better"));
    assert!(!folder.path().join("throughput-new-cubic.svg").exists(), "there is no such case");
}
