//! `plimsoll load` against the real server: its figures, its exit codes, and its messages on errors.

use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use plimsoll_tests::binary::{
    Done, EngineKind, Member, PATIENCE, Server, among_others, command, terminal, tool, until,
};
use plimsoll_tests::tree::noise;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::web_servers::{WebServer, certificate_file};

/// Creates a folder with numbered files of 1,000 bytes each.
fn site(files: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..files {
        std::fs::write(folder.path().join(format!("{number}.bin")), noise(number, 1000)).unwrap();
    }
    folder
}

fn load(args: &[&str]) -> Done {
    tool::run(command().arg("load").args(args))
}

fn figures(done: &Done) -> Value {
    serde_json::from_slice(&done.stdout).unwrap_or_else(|error| panic!("{error}: {}", done.text()))
}

#[test]
fn a_number_of_requests_is_counted_verified_and_reported_as_json() {
    let _permit = among_others();
    let folder = site(20);
    let server = Server::start(EngineKind::Epoll, folder.path(), &[]);
    for connections in ["kept", "new"] {
        let url = server.url("/{}.bin");
        let args = ["-u", "8", "-n", "500", "--files", "0..20", "--verify", "all", "--json"];
        let done = load(&[&[url.as_str(), "--connections", connections], &args[..]].concat()).well();
        let report = figures(&done);
        assert_eq!(
            (report["requests"].as_u64(), report["bytes"].as_u64()),
            (Some(500), Some(500_000)),
            "{report}"
        );
        assert_eq!((&report["users"], &report["loop"]), (&8.into(), &"closed".into()));
        assert_eq!((report["verified"].as_u64(), &report["errors"]), (Some(500), &serde_json::json!({})));
        assert_eq!((&report["url"], &report["connections"]), (&url.as_str().into(), &connections.into()));
        for figure in ["seconds", "requests_per_second", "bytes_per_second"] {
            assert!(report[figure].as_f64().is_some_and(|value| value > 0.0), "{figure}: {report}");
        }
        let latency = |name: &str| report["latency_us"][name].as_f64().unwrap();
        let in_order = ["p50", "p90", "p99", "p999", "max"].map(latency);
        assert!(in_order.is_sorted() && latency("mean") <= in_order[4], "{report}");
        assert!(
            report["littles_law"]["ratio"].as_f64().unwrap() > 0.0 && report["littles_law"]["users"] == 8.0
        );
        assert!(report["generator"]["cpu_seconds"].as_f64().is_some(), "{report}");
        assert!(report["generator"]["is_the_limit"].is_boolean(), "{report}");
    }
}

#[test]
fn https_is_measured_with_full_and_resumed_handshakes() {
    let _permit = among_others();
    let (folder, work) = (site(1), tempfile::tempdir().unwrap());
    let nginx = WebServer::nginx_with_files_over_tls(work.path(), folder.path());
    let (url, ca) = (nginx.url("/0.bin"), certificate_file("ca.pem"));
    let handshakes = |args: &[&str]| {
        let all =
            [&[url.as_str(), "--ca", &ca, "-u", "2", "-n", "40", "--verify", "all", "--json"], args].concat();
        let report = figures(&load(&all).well());
        assert_eq!(report["verified"].as_u64(), Some(40), "{report}");
        let count = |name: &str| report["tls_handshakes"][name].as_u64().unwrap();
        (count("full"), count("resumed"))
    };
    assert_eq!(handshakes(&[]), (0, 0), "kept connections, which begin before the measurement");
    let (full, resumed) = handshakes(&["--connections", "new"]);
    assert!(full + resumed == 40 && resumed >= 30, "{full} {resumed}");
    assert_eq!(handshakes(&["--connections", "new", "--tls-resume", "off"]), (40, 0));
    let untrusted = load(&[&url, "--ca", &certificate_file("other.pem"), "-n", "1"]);
    assert!(!untrusted.status.success() && untrusted.stderr.contains("no authority"), "{}", untrusted.stderr);
    let useless = load(&["http://127.0.0.1:1/", "--ca", &ca, "-n", "1"]);
    assert_eq!(useless.status.code(), Some(2), "{}", useless.stderr);
}

#[test]
fn ftp_over_tls_is_measured_with_the_handshakes_of_both_kinds_of_connections() {
    let _permit = among_others();
    let (folder, work) = (site(1), tempfile::tempdir().unwrap());
    let key = work.path().join("key.pem");
    std::fs::copy(certificate_file("server.key"), &key).unwrap();
    // A key that others can read is refused.
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let (certificate, ca) = (certificate_file("server.pem"), certificate_file("ca.pem"));
    let server = Server::start(
        EngineKind::Epoll,
        folder.path(),
        &[
            "--ftp",
            "127.0.0.1:0",
            "--ftps",
            "127.0.0.1:0",
            "--ftp-guests",
            "true",
            "--ftp-tls",
            "require",
            "--certificate",
            &certificate,
            "--key",
            key.to_str().unwrap(),
        ],
    );
    let explicit = format!("ftpes://localhost:{}/0.bin", server.ftp_at().port());
    let implicit = format!("ftps://localhost:{}/0.bin", server.ftps_at().port());
    let run = |url: &str, more: &[&str]| {
        let all = [&[url, "--ca", &ca, "-u", "2", "-n", "20", "--verify", "all", "--json"], more].concat();
        let report = figures(&load(&all).well());
        assert_eq!((report["verified"].as_u64(), &report["url"]), (Some(20), &url.into()), "{report}");
        ["full", "resumed"].map(|name| report["tls_handshakes"][name].as_u64().unwrap())
    };
    for url in [&explicit, &implicit] {
        assert_eq!(run(url, &[]), [0, 20], "kept sessions, which begin before the measurement");
        assert_eq!(run(url, &["--connections", "new"]), [20, 20]);
        assert_eq!(run(url, &["--connections", "new", "--tls-resume", "off"]), [40, 0]);
    }
    let plain = load(&[&explicit.replace("ftpes", "ftp"), "-n", "1"]);
    assert!(!plain.status.success(), "{}", plain.text());
}

#[test]
fn a_load_of_fixed_duration_prints_lines_for_people_and_csv_for_programs() {
    let _permit = among_others();
    let folder = site(1);
    let server = Server::start(EngineKind::Thread, folder.path(), &[]);
    let csv = folder.path().join("figures.csv");
    let args = ["-u", "4", "-d", "200ms", "--warm-up", "50ms", "--csv", csv.to_str().unwrap()];
    for _ in 0..2 {
        let text = load(&[&[server.url("/0.bin").as_str()], &args[..]].concat()).well().text();
        for name in ["requests", "bytes", "verified", "errors", "latency", "Little's law", "generator"] {
            assert!(text.lines().any(|line| line.starts_with(name)), "{name}: {text}");
        }
    }
    let table = std::fs::read_to_string(&csv).unwrap();
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 3, "a head and a line for each trial: {table}");
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{table}");
    let at = lines[0].iter().position(|name| *name == "requests").unwrap();
    assert!(lines[1..].iter().all(|line| line[at].parse::<u64>().is_ok()), "{table}");
}

#[test]
fn an_open_loop_keeps_its_rate() {
    let _permit = among_others();
    let folder = site(1);
    let server = Server::start(EngineKind::Epoll, folder.path(), &[]);
    let args = ["-u", "50", "--rate", "100", "-n", "100", "--json"];
    let report = figures(&load(&[&[server.url("/0.bin").as_str()], &args[..]].concat()).well());
    assert_eq!((&report["loop"], &report["requests"]), (&"open".into(), &100.into()));
    // A hundred in even steps of 10 ms: the last is planned 990 ms after the first, and never sent before.
    assert!(report["seconds"].as_f64().unwrap() > 0.98, "{report}");
    assert!(report["generator"]["late_us"]["max"].is_number(), "{report}");
}

#[test]
fn a_list_of_names_and_a_folder_to_compare_with_are_taken() {
    let _permit = among_others();
    let folder = site(3);
    let server = Server::start(EngineKind::Epoll, folder.path(), &[]);
    let (list, good) = (folder.path().join("list"), folder.path().to_str().unwrap());
    std::fs::write(&list, "0.bin\n2.bin\n").unwrap();
    let args = ["-n", "20", "--list", list.to_str().unwrap(), "--verify", "all", "--json", "--against"];
    let url = server.url("/");
    let report = figures(&load(&[&[url.as_str()], &args[..], &[good]].concat()).well());
    assert_eq!(report["verified"], 20);
    // One byte of one file differs here.
    let other = site(3);
    let mut bytes = noise(2, 1000);
    bytes[500] ^= 1;
    std::fs::write(other.path().join("2.bin"), bytes).unwrap();
    let done = load(&[&[url.as_str()], &args[..], &[other.path().to_str().unwrap()]].concat());
    assert_eq!(done.status.code(), Some(1), "{}", done.stderr);
    let report = figures(&done);
    assert_eq!((&report["errors"]["wrong_body"], &report["requests"]), (&10.into(), &10.into()), "{report}");
}

#[test]
fn bodies_are_kept_on_request() {
    let _permit = among_others();
    let folder = site(2);
    let server = Server::start(EngineKind::Epoll, folder.path(), &[]);
    let kept = tempfile::tempdir().unwrap();
    let keep = kept.path().join("bodies");
    let args = ["-u", "2", "-n", "10", "--files", "2", "--keep", keep.to_str().unwrap()];
    load(&[&[server.url("/{}.bin").as_str()], &args[..]].concat()).well();
    let mut bodies = 0;
    for entry in std::fs::read_dir(&keep).unwrap() {
        let path = entry.unwrap().path();
        let number = if path.to_str().unwrap().ends_with("-0.bin") { 0 } else { 1 };
        assert!(std::fs::read(&path).unwrap() == noise(number, 1000), "{}", path.display());
        bodies += 1;
    }
    assert_eq!(bodies, 10);
}

#[test]
fn uploads_have_names_of_their_own_and_are_verified_after_the_end() {
    let _permit = among_others();
    let data = tempfile::tempdir().unwrap();
    let server = Server::on_data(EngineKind::Epoll, data.path(), &[]);
    let mut alice = Member::new(&server, "alice");
    let token = data.path().join("token");
    std::fs::write(&token, &alice.token).unwrap();
    let common = ["-X", "PUT", "--size", "3kB", "-u", "4", "-n", "40", "--verify", "all", "--json"];
    let url = server.url("/files/");
    let by_token = ["--token-file", token.to_str().unwrap()];
    let report = figures(&load(&[&[url.as_str()], &common[..], &by_token[..]].concat()).well());
    assert_eq!(
        (&report["requests"], &report["bytes"], &report["verified"]),
        (&40.into(), &120_000.into(), &40.into())
    );
    let mut by_password = command();
    by_password.env("PLIMSOLL_PASSWORD", plimsoll_tests::binary::member::PASSWORD);
    by_password.arg("load").arg(&url).args(common).args(["--basic", "alice"]);
    let report = figures(&tool::run(&mut by_password).well());
    assert_eq!(report["verified"], 40);
    assert_eq!(alice.names("/files/").len(), 80, "another run takes other names");
}

#[test]
fn guests_download_over_ftp_in_kept_sessions_and_in_new_ones() {
    let _permit = among_others();
    let folder = site(5);
    let server =
        Server::start(EngineKind::Epoll, folder.path(), &["--ftp", "127.0.0.1:0", "--ftp-guests", "true"]);
    let url = format!("ftp://{}/{{}}.bin", server.ftp_at());
    for connections in ["kept", "new"] {
        let args = ["-u", "4", "-n", "40", "--files", "5", "--verify", "1/2", "--json", "--connections"];
        let report = figures(&load(&[&[url.as_str()], &args[..], &[connections]].concat()).well());
        assert_eq!((&report["requests"], &report["bytes"]), (&40.into(), &40_000.into()), "{report}");
        assert!(report["verified"].as_u64().unwrap() > 0 && report["url"] == url.as_str(), "{report}");
    }
    let done = load(&[url.as_str(), "-n", "5", "--files", "6"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(done.stderr.contains("550"), "{}", done.stderr);
}

#[test]
fn an_account_uploads_over_ftp_and_its_files_are_verified_after_the_end() {
    let _permit = among_others();
    let data = tempfile::tempdir().unwrap();
    let server = Server::on_data(EngineKind::Thread, data.path(), &["--ftp", "127.0.0.1:0"]);
    let mut alice = Member::new(&server, "alice");
    let secret = data.path().join("secret");
    std::fs::write(&secret, plimsoll_tests::binary::member::PASSWORD).unwrap();
    let url = format!("ftp://{}/", server.ftp_at());
    let args = ["-X", "PUT", "--size", "3kB", "-u", "3", "-n", "12", "--verify", "all", "--json"];
    let credentials = ["--account", "alice", "--password-file", secret.to_str().unwrap()];
    let report = figures(&load(&[&[url.as_str()], &args[..], &credentials[..]].concat()).well());
    assert_eq!((&report["requests"], &report["verified"]), (&12.into(), &12.into()), "{report}");
    assert_eq!(alice.names("/files/").len(), 12);
}

#[test]
fn refused_requests_are_counted_by_kind_and_the_exit_code_is_1() {
    let _permit = among_others();
    let data = tempfile::tempdir().unwrap();
    let server = Server::on_data(EngineKind::Epoll, data.path(), &[]);
    let args = ["-X", "PUT", "-n", "5", "--json"];
    let done = load(&[&[server.url("/files/").as_str()], &args[..]].concat());
    assert_eq!(done.status.code(), Some(1));
    let report = figures(&done);
    assert_eq!((&report["errors"]["status_401"], &report["requests"]), (&5.into(), &0.into()), "{report}");
    assert!(done.stderr.contains("5 requests"), "{}", done.stderr);
}

/// The first command of docs/load.md, against the folder that `make run` serves.
#[test]
fn the_first_command_of_the_document_measures_what_make_run_serves() {
    let _permit = among_others();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let text = std::fs::read_to_string(docs.join("load.md")).unwrap();
    let typed = text.lines().find_map(|line| line.strip_prefix("$ plimsoll load http://127.0.0.1:8080"));
    let path = typed.unwrap().split(' ').next().unwrap();
    let server = Server::start(EngineKind::Epoll, &docs, &[]);
    let report = figures(&load(&[&server.url(path), "-u", "4", "-n", "20", "--json"]).well());
    assert_eq!((&report["requests"], &report["errors"]), (&20.into(), &serde_json::json!({})), "{report}");
}

#[test]
fn too_many_log_ins_for_a_server_by_default_are_explained() {
    let _permit = among_others();
    let data = tempfile::tempdir().unwrap();
    let mut serve = command();
    serve.args(["serve", "--http", "127.0.0.1:0", "--signup", "open", "--access-log", "off", "--data"]);
    let server = Server::spawn(std::mem::replace(serve.arg(data.path()), command()));
    let done = load(&[server.url("/").as_str(), "--mix", "ten", "-u", "8", "-n", "1600"]);
    assert!(done.text().contains("no_attempt_limits = true under [lab]"), "{} {}", done.text(), done.stderr);
}

#[test]
fn a_missing_file_is_reported_before_the_start() {
    let _permit = among_others();
    let folder = site(1);
    let server = Server::start(EngineKind::Epoll, folder.path(), &[]);
    let done = load(&[server.url("/{}.bin").as_str(), "--files", "2", "-n", "5"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(done.stderr.contains("404") && done.stdout.is_empty(), "{}", done.stderr);
}

#[test]
fn contradictory_arguments_exit_2_and_say_what_to_write() {
    let _permit = among_others();
    let url = "http://127.0.0.1:9/{}";
    for (args, expected) in [
        (&["127.0.0.1:9/", "-n", "1"][..], "http://"),
        (&["http://me:secret@127.0.0.1:9/", "-n", "1"], "--account"),
        (&[url, "-n", "1"], "--files"),
        (&["http://127.0.0.1:9/x", "--files", "2", "-n", "1"], "{}"),
        (&[url, "--files", "5..5", "-n", "1"], "files"),
        (&[url, "--files", "2"], "--duration"),
        (&[url, "--files", "2", "-n", "1", "-d", "1s"], "cannot be used with"),
        (&[url, "--files", "2", "-n", "0"], "-n 1000"),
        (&[url, "--files", "2", "-n", "1", "-u", "0"], "--users"),
        (&[url, "--files", "2", "-n", "1", "--rate", "0"], "--rate"),
        (&[url, "--files", "2", "-n", "1", "--verify", "1/0"], "1/64"),
        (&["http://127.0.0.1:9/x", "-X", "PUT", "-n", "1"], "{}"),
        (&["ftp://127.0.0.1:9/x", "--token-file", "token", "-n", "1"], "--account"),
    ] {
        let done = load(args);
        assert_eq!(done.status.code(), Some(2), "{args:?}: {}", done.stderr);
        assert!(
            done.stderr.contains(expected) && !done.stderr.contains("secret"),
            "{args:?}: {}",
            done.stderr
        );
    }
}

/// Starts a trial that runs until it is ended.
fn endless(url: &str) -> Child {
    let mut load = command();
    load.args(["load", url, "-u", "4", "-d", "1h", "--json"]);
    load.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits until requests were received: the trial has started.
fn until_asked(log: &Path) {
    until("requests are in the access log", || std::fs::metadata(log).is_ok_and(|log| log.len() > 2000));
}

fn served(folder: &Path) -> (Server, std::path::PathBuf) {
    let log = folder.join("access.log");
    let server = Server::start(EngineKind::Epoll, folder, &["--access-log", log.to_str().unwrap()]);
    (server, log)
}

fn ended(mut child: Child) -> Done {
    until("the trial has ended", || child.try_wait().unwrap().is_some());
    let output = child.wait_with_output().unwrap();
    Done {
        status: output.status,
        stdout: output.stdout,
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn a_signal_ends_it_early_with_the_figures_so_far() {
    let _permit = among_others();
    let folder = site(1);
    let (server, log) = served(folder.path());
    let child = endless(&server.url("/0.bin"));
    until_asked(&log);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let done = ended(child);
    let report = figures(&done);
    assert_eq!(done.status.code(), Some(0), "{report} {}", done.stderr);
    assert!(report["requests"].as_u64().unwrap() > 0, "{report}");
}

/// Returns the number of errors in the last live line.
fn errors_shown(shown: &str) -> u64 {
    let before = shown.rmatch_indices(" errors").next().map_or("", |(at, _)| &shown[..at]);
    before.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0)
}

#[test]
fn a_server_that_is_killed_leaves_errors_by_kind_and_the_live_line_tells_of_them() {
    let _permit = among_others();
    let folder = site(1);
    let (mut server, log) = served(folder.path());
    let (mut hands, program) = terminal();
    let mut load = command();
    load.args(["load", &server.url("/0.bin"), "-u", "4", "-d", "1h", "--json"]);
    let mut child = load.stdout(Stdio::piped()).stderr(program).spawn().unwrap();
    drop(load);
    until_asked(&log);
    server.signal(Signal::KILL);
    server.ends_within(PATIENCE);
    // Each user meets a broken connection once or twice, and then refused connections only.
    let (mut shown, mut block) = (String::new(), [0; 4096]);
    until("the live line tells of a dozen errors", || {
        let bytes = hands.read(&mut block).expect("the trial goes on");
        shown.push_str(&String::from_utf8_lossy(&block[..bytes]));
        errors_shown(&shown) >= 12
    });
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut report = String::new();
    child.stdout.take().unwrap().read_to_string(&mut report).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{report}");
    assert!(report["requests"].as_u64().unwrap() > 0, "{report}");
    let kinds = report["errors"].as_object().unwrap();
    assert!(kinds.contains_key("connect"), "{report}");
    let known = ["connect", "broken", "short_body"];
    assert!(kinds.keys().all(|kind| known.contains(&kind.as_str())), "{report}");
}

#[test]
fn the_help_has_examples_that_are_right_usage() {
    let _permit = among_others();
    let help =
        tool::run(Command::new(plimsoll_tests::binary::plimsoll()).args(["load", "--help"])).well().text();
    assert!(help.lines().filter(|line| line.starts_with("  plimsoll load ")).count() >= 4, "{help}");
}

/// A test file of document 003's client with two tests. The second is written for a proxy.
const TESTS: &str = "<Tests>
  <simpleTest>
    <numthreads>4</numthreads><iterations>10</iterations>
    <filesToRetrieve><file>/0.bin</file><file>/1.bin</file><file>/2.bin</file></filesToRetrieve>
  </simpleTest>
  <simpleTest>
    <numthreads>2</numthreads><iterations>5</iterations>
    <filesToRetrieve><file>http://localhost/3.bin</file></filesToRetrieve>
  </simpleTest>
</Tests>";

#[test]
fn the_tests_of_an_xml_file_run_in_turn_and_each_thread_has_its_time() {
    let _permit = among_others();
    let folder = site(4);
    let file = folder.path().join("tests.xml");
    std::fs::write(&file, TESTS).unwrap();
    let server = Server::start(EngineKind::Epoll, folder.path(), &[]);
    let url = server.url("");
    for connections in ["kept", "new"] {
        let args = ["--xml", file.to_str().unwrap(), &url, "--verify", "all", "--connections", connections];
        let report = figures(&load(&[&args[..], &["--json"]].concat()).well());
        let test = |number: usize| &report["tests"][number];
        assert_eq!((&test(0)["requests"], &test(1)["requests"]), (&40.into(), &10.into()), "{report}");
        assert_eq!((&test(0)["bytes"], &test(0)["verified"]), (&40_000.into(), &40.into()));
        let threads = test(0)["users_each"].as_array().unwrap();
        assert_eq!(threads.len(), 4);
        assert!(threads.iter().all(|thread| thread["requests"] == 10 && thread["errors"] == 0), "{report}");
        assert!(threads.iter().all(|thread| thread["seconds"].as_f64().unwrap() > 0.0), "{report}");
        let text = load(&args).well().text();
        assert!(text.contains("test 2 of 2: 2 threads, 5 iterations, 1 files"), "{text}");
        assert_eq!(text.lines().filter(|line| line.ends_with("localhost/3.bin")).count(), 2, "{text}");
    }
    std::fs::write(&file, TESTS.replace("</iterations>\n    <files", "</iteration>\n    <files")).unwrap();
    let done = load(&["--xml", file.to_str().unwrap(), &url]);
    assert_eq!(done.status.code(), Some(1));
    assert!(done.stderr.contains("line 3, column"), "{}", done.stderr);
    let done = load(&["--xml", file.to_str().unwrap(), &url, "-u", "3"]);
    assert_eq!(done.status.code(), Some(2));
}
