//! `plimsoll load --mix ten` against the real server: sequential lives of one user.

use plimsoll_tests::binary::{Done, EngineKind, Server, command, tool};
use plimsoll_tests::on_each_engine;
use serde_json::Value;

fn load(args: &[&str]) -> Done {
    tool::run(command().arg("load").args(args))
}

fn users_live_the_ten_requests(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::on_data(kind, &folder.path().join("data"), &[]);
    for connections in ["kept", "new"] {
        let url = server.url("");
        let args = ["--mix", "ten", "-u", "2", "-n", "20", "--verify", "all", "--connections", connections];
        let done = load(&[&[url.as_str(), "--json"], &args[..]].concat()).well();
        let report: Value = serde_json::from_slice(&done.stdout).unwrap();
        assert_eq!(
            (report["requests"].as_u64(), &report["errors"]),
            (Some(20), &serde_json::json!({})),
            "{report}"
        );
        let kinds = report["kinds"].as_object().unwrap();
        let counted: u64 = kinds.values().map(|kind| kind["requests"].as_u64().unwrap()).sum();
        assert_eq!((kinds.len(), counted), (10, 20), "{report}");
        assert!(kinds["sign_up"]["latency_us"]["p50"].as_f64().unwrap() > 0.0, "{report}");
    }
    let text = load(&[server.url("").as_str(), "--mix", "ten:download=3", "-n", "12"]).well().text();
    assert!(text.lines().any(|line| line.ends_with("   download (3)")), "{text}");
    assert!(text.lines().any(|line| line.ends_with("   log_out (1)")), "{text}");
}

#[test]
fn a_mix_that_cannot_be_lived_is_refused_with_what_to_write() {
    for (mix, expected) in
        [("nine", "write ten"), ("ten:share=2", "twice"), ("ten:log_in=2", "leave them out")]
    {
        let done = load(&["http://127.0.0.1:1", "--mix", mix, "-n", "1"]);
        assert_eq!(done.status.code(), Some(2), "{}", done.stderr);
        assert!(done.stderr.contains(expected), "{}", done.stderr);
    }
    let done = load(&["http://127.0.0.1:1", "--mix", "ten", "-X", "PUT", "-n", "1"]);
    assert_eq!(done.status.code(), Some(2), "{}", done.stderr);
}

on_each_engine!(forks: users_live_the_ten_requests);
