//! http-cache-tests, the suite behind <https://cache-tests.fyi>: its server is the origin of
//! `plimsoll proxy --cache`, and its client compares what it receives.
//!
//! `tests/tools/install` installs it. Invariant: each required or optimal test passes, or has a line with
//! its result and the reason in `expected.txt`. A result that is better than its line fails as well.

use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use plimsoll_tests::binary::tool::kill;
use plimsoll_tests::binary::{EngineKind, tool, until};
use plimsoll_tests::on_each_engine;

use super::clients::node_modules;
use super::reverse_proxy::proxy;

/// Results that are no pass, with their reasons.
const EXPECTED: &str = include_str!("expected.txt");
/// Required and optimal tests that apply to a cache which is no browser.
const TESTS: usize = 260;

/// The suite's server, until it is dropped.
struct Origin {
    child: Child,
    port: u16,
}

impl Origin {
    fn start(suite: &Path, work: &Path) -> Origin {
        // Free at every address, because the suite's server listens at all of them: behind other tests, most
        // ports have closed connections of some loopback address.
        let free = TcpListener::bind("[::]:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut node = tool("node");
        node.arg("server/server.mjs").current_dir(suite).process_group(0);
        node.env("npm_config_protocol", "http").env("npm_config_port", port.to_string());
        node.env("npm_config_pidfile", work.join("pid")).stdout(Stdio::null()).stderr(Stdio::null());
        let child = node.spawn().expect("tests/install brings node");
        until("the suite's server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Origin { child, port }
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        kill(&mut self.child);
        let _ = self.child.wait();
    }
}

/// Returns the expected results that are no pass, by the names of their tests.
fn expected() -> BTreeMap<&'static str, &'static str> {
    let lines = EXPECTED.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let results = lines.map(|line| {
        let mut columns = line.splitn(3, ' ');
        let (name, result) = (columns.next().unwrap(), columns.next().unwrap_or_default());
        let reason = columns.next().unwrap_or_default();
        assert!(!result.is_empty() && !reason.is_empty(), "a result and a reason: {line}");
        (name, result)
    });
    results.collect()
}

/// Returns the differences between the client's output and the expected results, as lines.
fn differences(output: &str) -> Vec<String> {
    let (mut expected, mut seen, mut found) = (expected(), 0, Vec::new());
    for line in output.lines() {
        let [name, kind, result] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{output}") };
        // A check has no right result, and those that only a browser runs have none here.
        let outcome = result.split(' ').next().unwrap_or_default();
        if kind == "check" || outcome == "not-run" {
            continue;
        }
        seen += 1;
        match (expected.remove(name), outcome) {
            (None, "pass") => {}
            (Some(before), same) if before == same => {}
            (Some(before), "pass") => found.push(format!("better: {name} is a pass, and was a {before}")),
            (before, _) => {
                found.push(format!("worse: {name} ({kind}) was a {}: {result}", before.unwrap_or("pass")));
            }
        }
    }
    found.extend(expected.keys().map(|name| format!("the suite has no test {name}")));
    if seen != TESTS {
        found.push(format!("the suite has {seen} tests, not {TESTS}"));
    }
    found
}

fn the_suite_has_the_results_of_the_list(kind: EngineKind) {
    let Some(modules) = node_modules() else { return };
    let (suite, work) = (modules.join("http-cache-tests"), tempfile::tempdir().unwrap());
    let origin = Origin::start(&suite, work.path());
    let (url, cache) = (format!("http://127.0.0.1:{}", origin.port), work.path().join("cache"));
    let cache = cache.to_str().unwrap();
    let proxy = proxy(kind, &["--origin", &url, "--cache", cache, "--cache-size", "100MiB"]);
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/binary/http_cache/run.mjs");
    let mut node = tool("node");
    // node-fetch uses a module of node that is deprecated.
    node.arg("--no-warnings").arg(script).arg(&suite).arg(proxy.url(""));
    let done = tool::run(&mut node).well();
    let (text, found) = (done.text(), differences(&done.text()));
    assert!(found.is_empty(), "{}\n{text}{}", found.join("\n"), done.stderr);
}

on_each_engine!(alone: the_suite_has_the_results_of_the_list);

#[test]
fn a_result_that_differs_from_the_list_is_a_difference() {
    let all_pass = differences("age-parse-float\trequired\tpass\nvary-match\trequired\tpass\n");
    assert!(all_pass.contains(&"better: age-parse-float is a pass, and was a fail".to_owned()));
    assert!(!all_pass.iter().any(|line| line.contains("vary-match")), "{all_pass:?}");
    let worse = differences("vary-match\trequired\tfail Response 2 comes from cache\n");
    assert!(
        worse.contains(
            &"worse: vary-match (required) was a pass: fail Response 2 comes from cache".to_owned()
        )
    );
}
