//! `plimsoll lab run --profile`: the trials of profiles, with a valgrind that writes a known profile.
//!
//! The real valgrind is not needed: some versions of it lack a system call that plimsoll needs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Output;

use plimsoll_tests::binary::command;
use serde_json::Value;

const EXPERIMENT: &str = r#"
name = "profiled"
[[files]]
name = "1KiB"
size = "1KiB"
count = 5
[[contenders]]
name = "ours"
command = [
  "{plimsoll}", "serve", "--engine", "epoll", "--threads", "1", "--http", "127.0.0.1:{port}",
  "--site", "/={root}", "--data", "{dir}/data", "--access-log", "off",
]
[load]
time = "1s"
[sweep]
users = [1, 2]
"#;

/// Runs the program behind it, and writes a profile when that has ended.
const VALGRIND: &str = r#"#!/bin/sh
for word; do
  case $word in
    --version) echo valgrind-0; exit 0 ;;
    --callgrind-out-file=*) out=${word#*=} ;;
  esac
done
while case $1 in --*) true ;; *) false ;; esac do shift; done
"$@" &
trap 'kill -TERM $!' TERM
wait $!
wait $!
{
  printf 'positions: line\nevents: Ir\nfn=(1) serve\n1 75\n'
  printf 'fn=(2) start\n1 25\ncfn=(1)\ncalls=1 1\n1 75\nTOTALS\n'
} > "${out%\%p}$$"
"#;

fn profiled(folder: &Path) -> Output {
    let mut run = command();
    run.args(["lab", "run", "experiment.toml", "--quick", "--out", "out", "--work", "work"]);
    run.args(["--profile", "callgrind"])
        .env("PATH", format!("{}:/usr/bin:/bin", folder.join("bin").display()));
    run.current_dir(folder).output().unwrap()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn install(folder: &Path, totals: &str) {
    let program = folder.join("bin/valgrind");
    fs::create_dir_all(folder.join("bin")).unwrap();
    fs::write(&program, VALGRIND.replace("TOTALS", totals)).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
}

fn new_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("experiment.toml"), EXPERIMENT).unwrap();
    folder
}

fn profile(folder: &Path) -> Value {
    let path = folder.join("out/profiles/001-ours-users=2-callgrind.json");
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn a_profile_is_a_trial_of_its_own_with_a_table_by_function_and_a_file() {
    let folder = new_folder();
    install(folder.path(), "totals: 100");
    let done = profiled(folder.path());
    assert!(done.status.success() && text(&done).contains("3/3"), "{}", text(&done));
    let trials = fs::read_to_string(folder.path().join("out/trials.jsonl")).unwrap();
    assert_eq!(trials.lines().count(), 2, "the profile is no figure");
    let record = profile(folder.path());
    let made = &record["result"]["profiled"];
    assert!(made["requests"].as_u64() > Some(0), "{record}");
    let process = &made["processes"][0];
    let functions = &process["profile"]["functions"];
    assert!(functions[0]["name"] == "serve" && functions[0]["own"] == 0.75, "{record}");
    assert!(functions[1]["name"] == "start" && functions[1]["inclusive"] == 1.0, "{record}");
    let file = folder.path().join("out/profiles").join(process["files"][0].as_str().unwrap());
    assert!(fs::read_to_string(file).unwrap().ends_with("totals: 100\n"));
    let report = fs::read_to_string(folder.path().join("out/report.md")).unwrap();
    assert!(report.contains("ours at users=2, by callgrind") && report.contains("| serve"), "{report}");
    assert!(fs::read_dir(folder.path().join("work")).unwrap().next().is_none());
    let again = profiled(folder.path());
    assert!(again.status.success() && profile(folder.path()) == record, "{}", text(&again));
}

#[test]
fn an_incomplete_profile_fails_with_a_reason_and_is_made_when_the_run_resumes() {
    let folder = new_folder();
    install(folder.path(), "");
    let done = profiled(folder.path());
    assert_eq!(done.status.code(), Some(1), "{}", text(&done));
    assert!(text(&done).contains("no profile by callgrind") && text(&done).contains("is incomplete"));
    install(folder.path(), "totals: 100");
    let resumed = profiled(folder.path());
    assert!(resumed.status.success(), "{}", text(&resumed));
    assert!(profile(folder.path())["result"]["profiled"].is_object());
}

#[test]
fn a_missing_profiler_is_refused_with_what_to_install_before_anything_is_started() {
    let folder = new_folder();
    let none = folder.path().join("bin");
    fs::create_dir(&none).unwrap();
    for (profiler, package) in [("callgrind", "package valgrind"), ("perf", "install linux-perf")] {
        let mut run = command();
        run.args(["lab", "run", "experiment.toml", "--out", "out", "--profile", profiler]).env("PATH", &none);
        let refused = run.current_dir(folder.path()).output().unwrap();
        assert_eq!(refused.status.code(), Some(2), "{}", text(&refused));
        assert!(text(&refused).contains(package), "{}", text(&refused));
    }
    assert!(!folder.path().join("out").exists());
}
