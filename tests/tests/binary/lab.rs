//! `plimsoll lab`: whole runs with real servers, and their ends by signals.
//!
//! No figure is judged. Each run is short.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use plimsoll_tests::binary::{command, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::faults::full_disk::Small;

/// An experiment with plimsoll and four trials of a second.
pub(crate) const EXPERIMENT: &str = r#"
name = "four"
about = "four trials"
[[files]]
name = "1KiB"
size = "1KiB"
count = 5
[[contenders]]
name = "ours"
version = ["{plimsoll}", "--version"]
command = [
  "{plimsoll}", "serve", "--engine", "{engine}", "--threads", "1", "--http", "127.0.0.1:{port}",
  "--site", "/={root}", "--data", "{dir}/data", "--access-log", "off",
]
[load]
time = "1s"
users = 2
verify = "all"
[sweep]
engine = ["epoll", "thread"]
[order]
repetitions = 2
settle = "0s"
"#;

/// A folder with an experiment file, and the folders of its results and of its work.
pub(crate) struct RunFolder {
    folder: tempfile::TempDir,
}

impl RunFolder {
    pub(crate) fn new(experiment: &str) -> RunFolder {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("experiment.toml"), experiment).unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        RunFolder { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn run(&self, more: &[&str]) -> Command {
        let mut run = command();
        run.args(["lab", "run", "experiment.toml", "--out", "out", "--work"]).arg(self.path().join("work"));
        run.args(more);
        run.current_dir(self.path()).stdout(Stdio::piped()).stderr(Stdio::piped());
        run
    }

    pub(crate) fn trials(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.path().join("out/trials.jsonl")).unwrap_or_default();
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns what is left of a run: command lines of processes in its work folder, and entries of that
    /// folder.
    pub(crate) fn remains(&self) -> Vec<String> {
        let work = self.path().join("work");
        let named = work.to_str().unwrap();
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
        let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
        let mut remains: Vec<String> = lines.filter(|line| line.contains(named)).collect();
        remains
            .extend(fs::read_dir(&work).unwrap().flatten().map(|entry| entry.path().display().to_string()));
        remains
    }

    /// Returns whether nothing of a run is left.
    pub(crate) fn is_clean(&self) -> bool {
        self.remains().is_empty()
    }

    /// Starts a run, and waits until its second trial begins.
    pub(crate) fn second_trial(&self) -> Child {
        let mut run = self.run(&[]).spawn().unwrap();
        let stderr = BufReader::new(run.stderr.take().unwrap());
        let line = stderr.lines().map_while(Result::ok).find(|line| line.starts_with("2/4"));
        assert!(line.is_some(), "the run ended: {:?}", run.wait_with_output());
        run
    }

    /// Resumes a run to its end. The trials that were finished before must not have changed.
    pub(crate) fn resume(&self, finished: &[Value]) {
        let resumed = self.run(&[]).output().unwrap();
        assert!(resumed.status.success(), "{}", text(&resumed));
        let trials = self.trials();
        assert_eq!(&trials[..finished.len()], finished);
        let key =
            |trial: &Value| format!("{} {} {}", trial["contender"], trial["point"], trial["repetition"]);
        let mut keys: Vec<String> = trials.iter().map(key).collect();
        keys.sort();
        keys.dedup();
        assert_eq!((trials.len(), keys.len()), (4, 4));
    }
}

pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

#[test]
fn a_quick_run_verifies_the_bytes_and_leaves_a_report_and_nothing_else() {
    let folder = RunFolder::new(EXPERIMENT);
    let done = folder.run(&["--quick"]).output().unwrap();
    assert!(done.status.success(), "{}", text(&done));
    let trials = folder.trials();
    assert_eq!(trials.len(), 2);
    for trial in &trials {
        let measured = &trial["result"]["measured"];
        let load = &measured["load"];
        assert!(load["requests"].as_u64() > Some(0), "{trial}");
        assert_eq!(load["requests"], load["verified"], "{trial}");
        assert_eq!(load["errors"], serde_json::json!({}), "{trial}");
        let server = &measured["processes"][0];
        assert!(server["rss_bytes"].as_u64() > Some(1 << 20), "{trial}");
        assert!(
            measured["machine"]["cores_busy"].as_array().is_some_and(|cores| !cores.is_empty()),
            "{trial}"
        );
    }
    for file in ["report.html", "report.md", "trials.csv"] {
        assert!(fs::read_to_string(folder.path().join("out").join(file)).unwrap().contains("ours"), "{file}");
    }
    assert_eq!(folder.remains(), [""; 0]);
}

#[test]
fn a_run_that_is_interrupted_ends_at_once_keeps_its_trials_and_resumes() {
    let folder = RunFolder::new(EXPERIMENT);
    let run = folder.second_trial();
    let finished = folder.trials();
    assert_eq!(finished.len(), 1);
    kill_process(pid(&run), Signal::INT).unwrap();
    let ended = run.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{}", text(&ended));
    assert_eq!(folder.remains(), [""; 0]);
    folder.resume(&finished);
}

#[test]
fn a_run_that_is_killed_leaves_no_process_and_no_file_and_resumes() {
    let folder = RunFolder::new(EXPERIMENT);
    let mut run = folder.second_trial();
    let finished = folder.trials();
    kill_process(pid(&run), Signal::KILL).unwrap();
    run.wait().unwrap();
    until("the agents have ended everything", || folder.is_clean());
    folder.resume(&finished);
}

#[test]
fn a_run_on_a_full_disk_keeps_its_trials_and_resumes() {
    let folder = RunFolder::new(EXPERIMENT);
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    let Some(_small) = Small::at(&out) else { return };
    let run = folder.second_trial();
    let finished = folder.trials();
    let filler = out.join("filler");
    assert!(fs::write(&filler, vec![0; 8 << 20]).is_err(), "the disk is full");
    let ended = run.wait_with_output().unwrap();
    assert!(!ended.status.success(), "{}", text(&ended));
    assert_eq!(folder.remains(), [""; 0]);
    // A trial more may have found room in the last page of the file.
    let kept = folder.trials();
    assert!(kept.len() < 4 && kept[..finished.len()] == finished);
    let again = folder.run(&[]).output().unwrap();
    assert!(text(&again).contains("No space left on device"), "{}", text(&again));
    assert!(folder.trials() == kept && folder.is_clean());
    fs::remove_file(&filler).unwrap();
    folder.resume(&kept);
}

#[test]
fn an_agent_that_is_ended_removes_its_folder() {
    let work = tempfile::tempdir().unwrap();
    let mut agent = command();
    agent.args(["lab", "agent"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut agent = agent.spawn().unwrap();
    let mut input = agent.stdin.take().unwrap();
    let hello = serde_json::json!({ "hello": { "work": work.path() } });
    std::io::Write::write_all(&mut input, format!("{hello}\n").as_bytes()).unwrap();
    let mut greeting = String::new();
    BufReader::new(agent.stdout.take().unwrap()).read_line(&mut greeting).unwrap();
    assert!(greeting.contains("version"), "{greeting}");
    assert!(fs::read_dir(work.path()).unwrap().next().is_some());
    kill_process(pid(&agent), Signal::TERM).unwrap();
    // Its input is still open.
    assert!(agent.wait().unwrap().success());
    assert!(fs::read_dir(work.path()).unwrap().next().is_none());
}

#[test]
fn a_contender_that_sends_other_bytes_has_errors_and_one_that_sends_other_lengths_has_no_figures() {
    for (zeros, outcome) in [("1024", "wrong_body"), ("1000", "wrong_body")] {
        let before = format!(
            "before = [[\"cp\", \"-r\", \"{{root}}\", \"{{dir}}/site\"], \
             [\"truncate\", \"-s\", \"0\", \"{{dir}}/site/1KiB/f0\"], \
             [\"truncate\", \"-s\", \"{zeros}\", \"{{dir}}/site/1KiB/f0\"]]\nname = \"ours\"\n"
        );
        let experiment = EXPERIMENT.replace("name = \"ours\"\n", &before).replace("/={root}", "/={dir}/site");
        let folder = RunFolder::new(&experiment.replace("count = 5", "count = 1"));
        let done = folder.run(&["--quick"]).output().unwrap();
        let trials = folder.trials();
        assert_eq!(trials.len(), 2, "{}", text(&done));
        for trial in &trials {
            let load = &trial["result"]["measured"]["load"];
            assert_eq!(load["requests"], 0, "{trial}");
            assert!(load["errors"][outcome].as_u64() > Some(0), "{trial}");
            assert!(trial["result"]["measured"]["marks"].to_string().contains("requests failed"), "{trial}");
        }
    }
}

#[test]
fn lengths_are_checked_where_the_bytes_are_not() {
    let before = "before = [[\"cp\", \"-r\", \"{root}\", \"{dir}/site\"], \
                  [\"truncate\", \"-s\", \"1000\", \"{dir}/site/1KiB/f0\"]]\nname = \"ours\"\n";
    let experiment = EXPERIMENT.replace("name = \"ours\"\n", before).replace("/={root}", "/={dir}/site");
    let experiment = experiment.replace("verify = \"all\"\n", "") + "[conditions]\ncache = \"cold\"\n";
    let folder = RunFolder::new(&experiment);
    let done = folder.run(&["--quick"]).output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", text(&done));
    for trial in folder.trials() {
        let reason = trial["result"]["failed"].as_str().unwrap_or_default();
        assert!(reason.contains("its files have 1024 each"), "{trial}");
    }
}

#[test]
fn a_command_that_leaves_a_process_behind_does_not_hang_the_run() {
    let leaving = "after = [[\"bash\", \"-c\", \"sleep 1000 &\"]]\nname = \"ours\"\n";
    let folder = RunFolder::new(&EXPERIMENT.replace("name = \"ours\"\n", leaving));
    let done = folder.run(&["--quick"]).output().unwrap();
    assert!(done.status.success(), "{}", text(&done));
    assert_eq!(folder.remains(), [""; 0]);
}

#[test]
fn a_load_tool_has_the_rate_that_it_prints_and_one_that_fails_has_a_reason() {
    let tool = |name: &str, script: &str| {
        format!(
            "[[contenders]]\nname = \"{name}\"\nurl = \"http://127.0.0.1:1/\"\n[contenders.load_tool]\n\
             command = [\"sh\", \"-c\", '''{script}''']\nbytes = \"/sum/bytes\"\nseconds = \"/sum/seconds\"\n"
        )
    };
    let experiment = [
        "name = \"tools\"\n".to_owned(),
        tool("whole", r#"echo '{"sum": {"bytes": '{users}'000, "seconds": 0.5}}'"#),
        tool("failing", r#"echo '{"error": "no server"}'; exit 1"#),
        tool("silent", "true"),
        "[load]\ntime = \"1s\"\n[sweep]\nusers = [1, 2]\n[order]\nrepetitions = 1\nsettle = \"0s\"\n"
            .to_owned(),
    ];
    let folder = RunFolder::new(&experiment.concat());
    let done = folder.run(&[]).output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", text(&done));
    let trials = folder.trials();
    let of = |name: &str| -> Vec<&Value> {
        trials.iter().filter(|trial| trial["contender"] == name).map(|trial| &trial["result"]).collect()
    };
    let rates: Vec<Option<f64>> =
        of("whole").iter().map(|one| one["measured"]["load"]["bytes_per_second"].as_f64()).collect();
    assert_eq!(rates, [Some(2000.0), Some(4000.0)]);
    // The others do not depend on the users.
    for (name, reason) in [("failing", "no server"), ("silent", "printed no JSON")] {
        let results = of(name);
        assert!(results.len() == 1 && results[0]["failed"].to_string().contains(reason), "{results:?}");
    }
    let report = fs::read_to_string(folder.path().join("out/report.md")).unwrap();
    assert!(report.contains("The path by other tools") && report.contains("no server"), "{report}");
}

#[test]
fn contenders_that_are_started_for_each_trial_run_one_at_a_time() {
    let alone = "[\"sh\", \"-c\", \"! grep --text --quiet of-the-othe[r] /proc/[0-9]*/cmdline\"]";
    let other = EXPERIMENT
        .split_once("[[contenders]]")
        .and_then(|(_, rest)| rest.split_once("[load]"))
        .map(|(contender, _)| {
            contender.replace("\"ours\"", "\"other\"").replace("{dir}/data", "{dir}/of-the-other")
        })
        .unwrap();
    let first = format!("name = \"ours\"\nbefore = [{alone}]\n");
    let experiment = EXPERIMENT
        .replace("name = \"ours\"\n", &first)
        .replace("[load]", &format!("[[contenders]]{other}[load]"))
        .replace("settle = \"0s\"", "settle = \"0s\"\nrestart = \"trial\"");
    let folder = RunFolder::new(&experiment);
    let done = folder.run(&["--quick"]).output().unwrap();
    assert!(done.status.success(), "{}", text(&done));
    assert_eq!(folder.trials().len(), 4);
}

#[test]
fn a_mistake_is_refused_in_one_line_before_anything_is_started() {
    for (from, to, why) in [
        ("users = 2", "usres = 2", "usres"),
        ("verify = \"all\"", "verify = \"most\"", "--verify"),
        ("{engine}", "{engin}", "{engin}"),
        ("count = 5", "count = 0", "`count`"),
        ("name = \"ours\"", "name = \"ours\"\ncores = \"all\"", "`cores`"),
        ("[order]", "[conditions]\nblock = \"1KiB\"\n[order]", "need `file_system`"),
    ] {
        let folder = RunFolder::new(&EXPERIMENT.replace(from, to));
        let refused = folder.run(&[]).output().unwrap();
        let message = text(&refused);
        assert_eq!(refused.status.code(), Some(2), "{message}");
        assert!(message.contains(why) && message.contains("experiment.toml"), "{message}");
        assert!(!folder.path().join("out").exists(), "{message}");
    }
}

#[test]
fn a_run_is_refused_for_what_the_check_finds_before_anything_is_started() {
    let more = "[[contenders]]\nname = \"absent\"\ncommand = [\"no-such-server\", \"{port}\"]\n[load]";
    let cores = "cores = 1022\n[sweep]";
    for (from, to, why) in [
        ("[load]", more, "this machine has no program \"no-such-server\""),
        ("[sweep]", cores, "no core 1022"),
    ] {
        let folder = RunFolder::new(&EXPERIMENT.replace(from, to));
        let mut check = command();
        let checked = check.args(["lab", "check", "experiment.toml"]).current_dir(folder.path()).output();
        assert!(text(&checked.unwrap()).contains(why));
        let refused = folder.run(&[]).output().unwrap();
        assert_eq!(refused.status.code(), Some(1), "{}", text(&refused));
        assert!(text(&refused).contains(why), "{}", text(&refused));
        assert!(!folder.path().join("out").exists() && folder.is_clean(), "{}", text(&refused));
    }
}

#[test]
fn a_contender_that_fails_is_recorded_and_repeated_by_the_next_run_and_the_others_are_not() {
    let of_other = EXPERIMENT.split_once("[[contenders]]").unwrap().1.split_once("[load]").unwrap().0;
    let before = "name = \"other\"\nbefore = [[\"test\", \"-e\", \"{results}/ready\"]]\n";
    let other = of_other.replace("name = \"ours\"\n", before);
    let experiment = EXPERIMENT.replace("[load]", &format!("[[contenders]]{other}[load]"));
    let folder = RunFolder::new(&experiment);
    let done = folder.run(&["--quick"]).output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", text(&done));
    let is_failed = |trial: &Value| trial["result"]["failed"].to_string().contains("test -e");
    let trials = folder.trials();
    let ours: Vec<Value> = trials.iter().filter(|trial| trial["contender"] == "ours").cloned().collect();
    assert!(ours.len() == 2 && ours.iter().all(|trial| trial["result"]["measured"].is_object()));
    assert_eq!(trials.iter().filter(|trial| is_failed(trial)).count(), 2, "{trials:?}");
    fs::write(folder.path().join("out/ready"), "").unwrap();
    let again = folder.run(&["--quick"]).output().unwrap();
    assert!(again.status.success(), "{}", text(&again));
    let repeated = folder.trials();
    assert_eq!((&repeated[..2], repeated.len()), (&ours[..], 4), "{repeated:?}");
    assert!(repeated.iter().all(|trial| trial["result"]["measured"].is_object()), "{repeated:?}");
}

#[test]
fn a_run_whose_agent_is_killed_ends_without_failed_trials_and_resumes() {
    let folder = RunFolder::new(EXPERIMENT);
    let run = folder.second_trial();
    let finished = folder.trials();
    for agent in crate::lab_conditions::agents_of(run.id()) {
        kill_process(agent, Signal::KILL).unwrap();
    }
    let ended = run.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1), "{}", text(&ended));
    assert_eq!(folder.trials(), finished);
    // The server outlives its killed agent.
    for process in fs::read_dir("/proc").unwrap().flatten() {
        let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
        let name = process.file_name().into_string().unwrap();
        let work = folder.path().join("work");
        if String::from_utf8_lossy(&line).contains(work.to_str().unwrap())
            && let Some(id) = name.parse().ok().and_then(Pid::from_raw)
        {
            let _ = kill_process(id, Signal::KILL);
        }
    }
    folder.resume(&finished);
}

/// The experiment with a sweep of users and open loops at two shares.
fn with_open_loops() -> String {
    let swept =
        EXPERIMENT.replace("engine = [\"epoll\", \"thread\"]", "engine = [\"epoll\"]\nusers = [1, 2]");
    swept.replace("users = 2\n", "") + "[open_loop]\npercent = [50, 90]\n"
}

/// Returns the share and the rate of an open loop.
fn open_loop(trial: &Value) -> Option<(u64, f64)> {
    Some((trial["open_loop"]["percent"].as_u64()?, trial["open_loop"]["rate"].as_f64()?))
}

#[test]
fn open_loops_run_at_shares_of_the_maximum_and_at_the_same_rates_when_the_run_resumes() {
    let folder = RunFolder::new(&with_open_loops());
    let mut run = folder.run(&[]).spawn().unwrap();
    let stderr = BufReader::new(run.stderr.take().unwrap());
    // The first open loop is measured, the second has begun.
    let line = stderr.lines().map_while(Result::ok).find(|line| line.starts_with("6/8"));
    assert!(line.is_some_and(|line| line.contains("open loop at 50 % of Xmax")));
    kill_process(pid(&run), Signal::INT).unwrap();
    run.wait().unwrap();
    let finished = folder.trials();
    let recorded = || -> Value {
        serde_json::from_slice(&fs::read(folder.path().join("out/run.json")).unwrap()).unwrap()
    };
    let before = recorded()["maxima"].clone();
    let maximum = before[0]["requests_per_second"].as_f64().unwrap();
    let resumed = folder.run(&[]).output().unwrap();
    assert!(resumed.status.success(), "{}", text(&resumed));
    let trials = folder.trials();
    assert_eq!((&trials[..finished.len()], trials.len()), (&finished[..], 8));
    assert_eq!(recorded()["maxima"], before);
    let rates: Vec<(u64, f64)> = trials.iter().filter_map(open_loop).collect();
    let shares: Vec<u64> = rates.iter().map(|(percent, _)| *percent).collect();
    assert_eq!(shares, [50, 50, 90, 90]);
    for (trial, (percent, rate)) in trials[4..].iter().zip(&rates) {
        assert!((rate - maximum * *percent as f64 / 100.0).abs() < 0.001, "{trial}");
        let load = &trial["result"]["measured"]["load"];
        assert!(load["loop"] == "open" && load["requests"].as_u64() > Some(0), "{trial}");
        assert!(load["latency_us"]["p95"].as_f64() > Some(0.0), "{trial}");
    }
    for (file, part) in [
        ("report.html", "(open loop)"),
        ("report.md", "Latency in open loop"),
        ("trials.csv", "percent_of_maximum"),
    ] {
        assert!(fs::read_to_string(folder.path().join("out").join(file)).unwrap().contains(part), "{file}");
    }
    assert_eq!(folder.remains(), [""; 0]);
}

#[test]
fn an_open_loop_without_a_measured_closed_loop_is_recorded_as_failed() {
    let experiment = with_open_loops().replace("\"serve\"", "\"--no-such-flag\"");
    let folder = RunFolder::new(&experiment);
    let done = folder.run(&["--quick"]).output().unwrap();
    assert_eq!(done.status.code(), Some(1), "{}", text(&done));
    let trials = folder.trials();
    assert_eq!(trials.len(), 3, "{}", text(&done));
    assert!(trials[2]["result"]["failed"].to_string().contains("it has no rate"), "{}", trials[2]);
}

#[test]
fn equal_runs_can_be_compared_and_reports_can_be_made_again() {
    let folder = RunFolder::new(EXPERIMENT);
    for out in ["one", "other"] {
        let mut run = command();
        run.args(["lab", "run", "experiment.toml", "--quick", "--out", out, "--work", "work"]);
        let done = run.current_dir(folder.path()).output().unwrap();
        assert!(done.status.success(), "{}", text(&done));
    }
    let lab = |words: &[&str]| command().arg("lab").args(words).current_dir(folder.path()).output().unwrap();
    let compared = lab(&["compare", "one", "other", "--json"]);
    assert!(serde_json::from_slice::<Value>(&compared.stdout).unwrap().is_object(), "{}", text(&compared));
    let before = fs::read(folder.path().join("one/report.html")).unwrap();
    fs::remove_file(folder.path().join("one/report.html")).unwrap();
    assert!(lab(&["report", "one"]).status.success());
    assert_eq!(fs::read(folder.path().join("one/report.html")).unwrap(), before);
    let refused = lab(&["report", "work"]);
    assert!(text(&refused).contains("holds no results"), "{}", text(&refused));
}

#[test]
fn tables_of_document_001_are_made_from_an_xferlog_and_a_wrong_line_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("xferlog");
    let line = |repetition: u32| {
        format!(
            "Wed Nov 25 11:00:{:02} 2026 2 127.0.0.1 1048576 {} b _ o a guest ftp 0 * c\n",
            10 + repetition,
            format_args!("/1MB.different.{repetition}.1.1")
        )
    };
    fs::write(&log, (1..=3).map(line).collect::<String>()).unwrap();
    let tables = |discarded: &str| {
        let mut report = command();
        report.args(["lab", "report", "--discarded", discarded, "--from-log"]).arg(&log).output().unwrap()
    };
    let made = tables("1");
    assert!(made.status.success(), "{}", text(&made));
    // 1024 KB in 2 s.
    assert!(text(&made).contains("512.00"), "{}", text(&made));
    fs::write(&log, line(1) + "nonsense\n").unwrap();
    let refused = tables("1");
    assert_eq!(refused.status.code(), Some(1), "{}", text(&refused));
    assert!(text(&refused).contains("line 2"), "{}", text(&refused));
}

#[test]
fn the_experiments_that_come_with_plimsoll_measure_plimsoll() {
    let peers = ["--only", "plimsoll-epoll,plimsoll-thread", "--at", "files=1K,100K"];
    for (name, more, count) in [
        ("saturation-http", &[][..], (6, 2)),
        ("saturation-ftp", &[], (6, 2)),
        ("peers", &peers, (8, 0)),
        ("account", &[], (2, 0)),
        ("store", &[], (2, 0)),
        ("tls", &["--only", "plimsoll-tls", "--at", "users=16,64"], (3, 0)),
        ("tls-ftp", &["--only", "plimsoll-ftps"], (2, 0)),
    ] {
        let folder = RunFolder::new("");
        let mut run = command();
        run.args(["lab", "run", name, "--quick", "--out", "out", "--work", "work"]).args(more);
        // Peers that this machine lacks are recorded as failed, which is no matter of this test.
        let done = run.current_dir(folder.path()).output().unwrap();
        let trials = folder.trials();
        let is_ours = |trial: &&Value| trial["contender"] != "nginx-tuned" && trial["contender"] != "vsftpd";
        let ours = trials.iter().filter(is_ours);
        let open = ours.clone().filter(|trial| trial["open_loop"].is_object());
        assert_eq!((ours.clone().count(), open.count()), count, "{name}: {}", text(&done));
        for trial in ours {
            let load = &trial["result"]["measured"]["load"];
            assert!(
                load["requests"].as_u64() > Some(0) && load["errors"] == serde_json::json!({}),
                "{trial}"
            );
        }
    }
}
