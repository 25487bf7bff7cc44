//! Tests of reports, of modelled systems.

use std::fs;

use super::*;
use crate::profile::{FunctionCost, Profile, Profiler};
use crate::results::synthetic::{SyntheticPlan, System};
use crate::results::{FinishedProfile, ProcessProfile, ProfileResult, TrialResult};

fn system(name: &str) -> System {
    System { disk: 0.0004, ..System::simple(name, 0.001, 0.003) }
}

fn results() -> Results {
    let plan = SyntheticPlan { noise: 0.01, has_reference: true, ..SyntheticPlan::default() };
    plan.results(&[system("base"), System::simple("fast", 0.0006, 0.002)]).unwrap()
}

fn page(results: &Results) -> String {
    html::page(&contents(results))
}

/// Parses comma-separated values by RFC 4180.
fn parsed(text: &str) -> Vec<Vec<String>> {
    let mut records = vec![vec![String::new()]];
    let mut characters = text.chars().peekable();
    let mut is_quoted = false;
    while let Some(character) = characters.next() {
        let record = records.last_mut().unwrap();
        let field = record.last_mut().unwrap();
        match (character, is_quoted) {
            ('"', true) if characters.peek() == Some(&'"') => field.extend(characters.next()),
            ('"', _) => is_quoted = !is_quoted,
            (',', false) => record.push(String::new()),
            ('\r', false) if characters.peek() == Some(&'\n') => {
                characters.next();
                records.push(vec![String::new()]);
            }
            (other, _) => field.push(other),
        }
    }
    records.pop();
    records
}

#[test]
fn the_files_of_a_report_are_written_and_can_be_written_again() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &results()).unwrap();
    write(folder.path(), &results()).unwrap();
    let mut names: Vec<String> = fs::read_dir(folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["report.html", "report.md", "trials.csv"]);
}

#[test]
fn the_page_has_all_parts_and_loads_nothing() {
    let page = page(&results());
    for part in [
        "Overview",
        "Curves",
        "Ratios to base",
        "All points",
        "Demands and models",
        "How it was run",
        "(closed loop)",
        "MVA from N = 1",
        "asymptotic bounds",
        "CPU by process",
        "Disk, by its processes",
        "by all programs",
        "plimsoll lab run experiment.toml",
        "bottleneck (hint)",
        "Content-Security-Policy",
        "n=5",
        "carried most, ",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains(">written<"), "another program wrote");
    assert!(!page.contains("http://www") && !page.contains("src=") && !page.contains("NaN"));
}

#[test]
fn a_name_with_markup_is_escaped_in_every_format() {
    let name = "<script>alert(1)</script>";
    let mut results = results();
    for trial in results.trials.iter_mut().filter(|trial| trial.contender == "fast") {
        trial.contender = name.to_owned();
    }
    results.run.contenders[1].name = name.to_owned();
    results.trials[3].result = TrialResult::Failed(format!("{name} | hung,\r\n\"badly\""));
    results.text += &format!("# {name}\n");
    let page = page(&results);
    assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    let markdown = markdown::markdown(&contents(&results));
    let outside_code: String = markdown.split("```").step_by(2).collect();
    assert!(!outside_code.contains("<script>") && outside_code.contains("&lt;script>alert(1)"));
}

#[test]
fn failed_trials_are_listed_with_their_reasons_and_missing_figures_are_shown_as_missing() {
    let mut results = results();
    for trial in results.trials.iter_mut().filter(|trial| trial.point["users"] == "8") {
        trial.result = TrialResult::Failed("the server hung".to_owned());
    }
    let page = page(&results);
    assert!(page.contains("Failed trials") && page.contains("the server hung") && page.contains("5 failed"));
    let table = tables::points(&results, &curves(&results));
    let row = table.rows.iter().find(|row| row[1].text == "8").unwrap();
    let throughput = &row[2];
    assert_eq!((throughput.text.as_str(), throughput.order), ("–", None));
    assert!(summary(&results).contains("the server hung"));
}

#[test]
fn remarks_that_differ_in_their_numbers_alone_are_one_with_a_range() {
    let mut results = results();
    let at_eight =
        |trial: &&mut crate::results::FinishedTrial| trial.point["users"] == "8" && trial.contender == "base";
    for (number, trial) in results.trials.iter_mut().filter(at_eight).enumerate() {
        let TrialResult::Measured(measured) = &mut trial.result else { panic!("it is measured") };
        measured.load.littles_law.ratio = 0.8;
        measured.marks.push(format!("Little's law is off: X(R+Z)/N is 0.8{number}"));
    }
    let table = tables::points(&results, &curves(&results));
    let row = table.rows.iter().find(|row| row[0].text == "base" && row[1].text == "8").unwrap();
    assert_eq!(row[3].text, "Little's law is off: X(R+Z)/N is 0.80 to 0.84 (5 of 5)");
}

#[test]
fn details_are_folded_and_the_conclusion_comes_first() {
    let page = page(&results());
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text}"));
    assert!(at("carried most, ") < at("Overview") && at("carried most, ") < at("<nav>"));
    for title in ["All points", "Demands and models", "How it was run"] {
        assert!(page.contains(&format!("<details><summary><h2>{title}</h2></summary>")), "{title}");
    }
    assert!(
        page.contains("<details><summary><h3>fast</h3></summary>"),
        "charts of one of several contenders"
    );
}

#[test]
fn a_narrow_page_has_the_point_of_a_row_in_its_first_cell() {
    let page = page(&results());
    assert!(page.contains("<td class=\"w\">base<small class=\"at\">users=8</small></td>"));
    assert!(page.contains("class=\"f point\"") && page.contains(".point { display: none; }"));
}

#[test]
fn columns_of_one_process_have_a_legend() {
    let page = page(&results());
    let (_, cpu) = page.split_once("CPU by process").unwrap();
    let figure = &cpu[..cpu.find("</figure>").unwrap()];
    assert!(figure.contains("class=\"legend\"") && figure.contains("server"));
}

#[test]
fn a_report_without_processes_shows_no_demands() {
    let mut results = results();
    for trial in &mut results.trials {
        if let TrialResult::Measured(measured) = &mut trial.result {
            measured.processes.clear();
            measured.machine = None;
            measured.marks.push("the clock jumped".to_owned());
        }
    }
    let page = page(&results);
    assert!(!page.contains("CPU by process") && !page.contains("MVA from N"));
    assert!(page.contains("the clock jumped (5 of 5)"));
}

#[test]
fn an_experiment_with_one_point_has_bars() {
    let plan = SyntheticPlan { users: vec![16], repetitions: 1, ..SyntheticPlan::default() };
    let results = plan.results(&[system("only")]).unwrap();
    let report = contents(&results);
    let page = html::page(&report);
    assert!(report.sections.iter().any(|section| section.title == "Figures"));
    assert!(page.contains("n=1") && !page.contains("Curves") && !page.contains("NaN"));
    assert!(!page.contains("N95"), "there is no curve");
}

#[test]
fn an_open_loop_is_drawn_against_its_rate_and_has_no_model() {
    let mut results = results();
    for trial in &mut results.trials {
        let users: u32 = trial.point.remove("users").unwrap().parse().unwrap();
        trial.point.insert("rate".to_owned(), format!("{}/s", users * 100));
        if let TrialResult::Measured(measured) = &mut trial.result {
            measured.load.pace = "open".to_owned();
        }
    }
    let page = page(&results);
    for part in ["planned requests/s", "(open loop)", ">6400<"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("(closed loop)") && !page.contains("MVA from N") && !page.contains("N95"));
}

fn with_open_loops() -> Results {
    let plan = SyntheticPlan { noise: 0.01, open_percent: vec![50, 90], ..SyntheticPlan::default() };
    plan.results(&[System::simple("base", 0.001, 0.0), System::simple("fast", 0.0005, 0.0)]).unwrap()
}

#[test]
fn latencies_of_open_loops_have_a_section_with_their_rates_and_samples() {
    let results = with_open_loops();
    let page = page(&results);
    for part in
        ["Latency in open loop", "99th percentile of latency (open loop)", "% of Xmax", "(closed loop)"]
    {
        assert!(page.contains(part), "{part}");
    }
    let table = open_loop::table(&results);
    let column = |name: &str| table.columns.iter().position(|one| one == name).unwrap();
    let row = &table.rows[3];
    let text = |name: &str| row[column(name)].text.as_str();
    assert_eq!(
        ["contender", "of Xmax", "planned requests/s", "loop"].map(text),
        ["fast", "90 %", "1.80k", "open"]
    );
    for name in ["p50", "p95", "p99", "p99.9"] {
        let cell = &row[column(name)];
        assert!(cell.detail.contains("n=5") && cell.detail.starts_with('['), "{name} {cell:?}");
    }
    assert_eq!(text("responses"), "90000");
    assert!(summary(&results).contains("Latency in open loop") && summary(&results).contains("90 trials,"));
}

#[test]
fn an_open_loop_that_failed_is_listed_and_is_in_the_csv() {
    let mut results = with_open_loops();
    results.open_loops[0].result = TrialResult::Failed("it has no rate".to_owned());
    results.open_loops[0].open_loop.as_mut().unwrap().rate = None;
    let table = tables::failures(&results);
    assert_eq!(table.rows[0][1].text, "users=64 open loop at 50 % of Xmax");
    let records = parsed(&trials::csv(&results));
    assert_eq!(records.len(), results.all().count() + 1);
    let column = |name: &str| records[0].iter().position(|one| one == name).unwrap();
    let of = |record: &Vec<String>| {
        ["percent_of_maximum", "planned_rate"].map(|name| record[column(name)].clone())
    };
    let open = results.trials.len() + 1;
    assert_eq!(of(&records[1]), ["", ""]);
    assert_eq!(
        (of(&records[open]), of(&records[open + 5])),
        (["50".into(), "".into()], ["90".into(), "900".into()])
    );
    assert_eq!(records[open + 5][column("loop")], "open");
}

#[test]
fn profiles_have_a_table_by_function_and_one_that_failed_has_its_reason() {
    let mut results = results();
    let cost = |number: u32| FunctionCost {
        name: format!("<f{number} as Trait>::run"),
        object: "server".to_owned(),
        own: 0.2 / f64::from(number),
        inclusive: 0.5,
    };
    let profile = Profile { total: 1_000, functions: (1..=30).map(cost).collect() };
    let files = vec!["callgrind.out.server.7".to_owned()];
    let processes = vec![ProcessProfile { name: "server".to_owned(), profile, files }];
    let profiled = FinishedProfile {
        contender: "base".to_owned(),
        point: [("users".to_owned(), "64".to_owned())].into(),
        profiler: Profiler::Callgrind,
        begun: "2026-11-25T10:00:00Z".to_owned(),
        result: ProfileResult::Profiled { requests: 5, processes },
    };
    let result = ProfileResult::Failed("it hung,\n<badly>".to_owned());
    let failed = FinishedProfile { contender: "fast".to_owned(), result, ..profiled.clone() };
    results.profiles = vec![profiled, failed];
    let page = page(&results);
    for part in [
        "base at users=64, by callgrind: process server, 1000 instructions",
        "&lt;f25 as Trait&gt;::run",
        "fast at users=64: no profile by callgrind: it hung, &lt;badly&gt;",
    ] {
        assert!(page.contains(part), "{part}");
    }
    assert!(!page.contains("f26 as"), "25 functions are shown");
    assert!(summary(&results).contains("no profile by callgrind: it hung, <badly>"));
    assert_eq!(curves(&results)[0].points.len(), 7, "a profile is in no figure");
}

#[test]
fn results_without_trials_have_a_report() {
    let mut results = results();
    results.trials.clear();
    assert!(page(&results).contains("No trial has finished."));
    assert!(summary(&results).contains("0 trials of 70 planned"), "{}", summary(&results));
}

#[test]
fn every_record_of_the_csv_has_all_fields_and_reads_back() {
    let mut results = results();
    let reason = "said \"no\",\r\nand ended";
    results.trials[0].result = TrialResult::Failed(reason.to_owned());
    let records = parsed(&trials::csv(&results));
    assert_eq!(records.len(), results.trials.len() + 1);
    assert!(records.iter().all(|record| record.len() == records[0].len()));
    let column = |name: &str| records[0].iter().position(|one| one == name).unwrap();
    assert_eq!(records[1][column("failure")], reason);
    assert_eq!(
        (records[2][column("contender")].as_str(), records[2][column("users")].as_str()),
        ("fast", "1")
    );
}

#[test]
fn a_missing_figure_is_empty_and_never_zero() {
    let mut results = results();
    results.trials[0].result = TrialResult::Failed("hung".to_owned());
    if let TrialResult::Measured(measured) = &mut results.trials[1].result {
        measured.processes.clear();
        measured.machine = None;
    }
    let records = parsed(&trials::csv(&results));
    let of = |record: &[String], name: &str| {
        record[records[0].iter().position(|one| one == name).unwrap()].clone()
    };
    for name in ["requests_per_second", "latency_p99_us", "errors", "cpu_user_seconds", "marks"] {
        assert_eq!(of(&records[1], name), "", "{name}");
    }
    for name in ["cpu_user_seconds", "cores_busy", "disk_read_bytes", "disk_busy_max"] {
        assert_eq!(of(&records[2], name), "", "{name}");
    }
    assert_ne!(of(&records[2], "requests_per_second"), "");
}

#[test]
fn the_summary_has_aligned_tables() {
    let text = summary(&results());
    assert!(text.contains("| contender |") && text.contains("Ratios to base"), "{text}");
    assert!(text.contains("CPU of server at"), "{text}");
}
