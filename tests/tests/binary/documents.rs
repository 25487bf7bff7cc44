//! The experiments that repeat the documents, in their quick forms: all servers start, all bytes are right,
//! and the report has the documents' tables.
//!
//! No figure is judged. Invariants: an experiment with a condition that this machine cannot set is refused;
//! everything but a missing peer must be measured.

use std::fs;
use std::path::Path;

use plimsoll_tests::binary::command;
use plimsoll_tests::skips::{Need, skip};
use serde_json::Value;

use crate::lab::{RunFolder, text};
use crate::lab_conditions::alone_on_machine;

/// How far X (R + Z) / N may be from 1 in a trial of a fraction of a second, above it. Below it, the users of
/// a counted trial wait for the last of them.
const LITTLES_MAX: f64 = 2.0;

/// Runs the quick form of an experiment that comes with plimsoll. Returns the results, unless this machine
/// cannot set its conditions.
fn quick(name: &str) -> Option<RunFolder> {
    let checked = command().args(["lab", "check", name]).output().unwrap();
    let folder = RunFolder::new("");
    let mut run = command();
    run.args(["lab", "run", name, "--quick", "--out", "out", "--work", "work"]);
    let done = run.current_dir(folder.path()).output().unwrap();
    let trials = folder.trials();
    if checked.status.code() == Some(1) {
        assert!(text(&checked).contains("cannot set the condition"), "{}", text(&checked));
        assert!(!done.status.success() && trials.is_empty(), "{}", text(&done));
        return None;
    }
    assert!(checked.status.success(), "{}", text(&checked));
    assert!(!trials.is_empty(), "{name}: {}", text(&done));
    for trial in &trials {
        check_trial(name, trial);
    }
    check_report(name, &folder.path().join("out"));
    assert!(folder.is_clean(), "{name} leaves something behind");
    Some(folder)
}

fn check_trial(name: &str, trial: &Value) {
    let result = &trial["result"];
    let reason = result["failed"].to_string();
    if trial["contender"] == "vsftpd" && reason.contains("not installed") {
        return;
    }
    if trial["contender"] == "uring" && reason.contains("io_uring") {
        return skip(Need::Uring, &reason);
    }
    let load = &result["measured"]["load"];
    if trial["contender"] == "iperf3" {
        return check_path(trial);
    }
    let requests = load["requests"].as_u64().unwrap_or(0);
    assert!(requests > 0 && load["errors"] == serde_json::json!({}), "{name}: {trial}");
    let ratio = load["littles_law"]["ratio"].as_f64().unwrap();
    assert!(ratio > 0.0 && ratio < LITTLES_MAX, "{name}: {trial}");
    assert!(!result["measured"]["processes"].as_array().unwrap().is_empty(), "{name}: {trial}");
    // Without a cache, the lengths of the bodies are checked alone; a created account has none.
    let has_bytes = !["000-get", "000-new", "002-cold"].contains(&name) && !name.starts_with("001");
    assert!(!has_bytes || load["verified"] == requests, "{name}: {trial}");
}

/// Checks the trial of iperf3 over a link of 1 Gbit/s, which carries no more. The processes are its server's.
fn check_path(trial: &Value) {
    let measured = &trial["result"]["measured"];
    let bits = measured["load"]["bytes_per_second"].as_f64().unwrap_or_else(|| panic!("{trial}")) * 8.0;
    assert!(bits > 0.0 && bits < 1e9, "{trial}");
    assert_eq!((&measured["load"]["loop"], &measured["load"]["requests"]), (&"none".into(), &0.into()));
    assert_eq!(measured["processes"][0]["name"], "server", "{trial}");
}

fn check_report(name: &str, out: &Path) {
    let report = fs::read_to_string(out.join("report.md")).unwrap();
    let beside = "the published figures, and ours beside them.";
    assert!(report.contains(beside), "{name}: {report}");
    for part in report.split(beside).skip(1) {
        let table: Vec<&str> = part.lines().filter(|line| line.starts_with('|')).collect();
        assert!(table.len() > 2, "{name}: {part}");
        let section = part.split("\n## ").next().unwrap_or_default();
        let is_filled = section.lines().skip(3).filter(|line| line.starts_with("| "));
        assert!(
            is_filled.into_iter().any(|row| row.contains(|c: char| c.is_ascii_digit())),
            "{name}: {section}"
        );
    }
    assert!(fs::read_to_string(out.join("report.html")).unwrap().contains(beside), "{name}");
}

#[test]
fn the_experiments_of_document_000_create_accounts_and_send_files_in_all_stages() {
    for name in ["000-new", "000-prefetch", "000-cores"] {
        quick(name);
    }
}

#[test]
fn the_experiments_of_document_001_measure_the_same_and_different_files_and_leave_a_log() {
    quick("001-table-2");
    let Some(folder) = quick("001-table-1") else { return };
    let log = folder.path().join("out/plimsoll.transfers.jsonl");
    let mut report = command();
    let made = report.args(["lab", "report", "--discarded", "0", "--from-log"]).arg(log).output().unwrap();
    for part in ["Same file", "Different files", "1MB"] {
        assert!(made.status.success() && text(&made).contains(part), "{}", text(&made));
    }
}

#[test]
fn the_experiments_of_document_002_send_files_through_three_tiers_in_both_directions() {
    for name in ["002-download", "002-upload", "002-clients"] {
        quick(name);
    }
}

#[test]
fn the_experiments_of_document_003_run_its_test_files() {
    for name in [
        "003-simple",
        "003-advanced",
        "003-throughput",
        "003-proxy-one-core",
        "003-proxy-two-cores",
        "003-slots",
    ] {
        quick(name);
    }
}

#[test]
fn the_experiments_with_a_link_a_small_memory_or_a_slow_disk_work() {
    let _alone = alone_on_machine();
    let names = [
        "000-get",
        "000-network",
        "001-blocks",
        "001-memory",
        "001-table-3",
        "001-table-3-100mbit",
        "001-table-4",
        "002-cold",
    ];
    for name in names {
        let folder = quick(name);
        if let Some(folder) = folder.filter(|_| name == "000-network") {
            let trials = folder.trials();
            let tools = trials.iter().filter(|trial| trial["contender"] == "iperf3");
            assert_eq!((trials.len(), tools.count()), (4, 2));
            let report = fs::read_to_string(folder.path().join("out/report.md")).unwrap();
            assert!(report.contains("The path by other tools") && report.contains("share of the link"));
        }
    }
}
