//! Environment variables act as command-line arguments, and the arguments take precedence.

use std::os::unix::fs::PermissionsExt as _;

use plimsoll_tests::Tree;
use plimsoll_tests::binary::{Server, among_others, command};

#[test]
fn a_server_can_be_set_up_by_environment_variables_alone() {
    let _permit = among_others();
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    Tree::new().file("small.txt", "small\n").plant(folder.path());
    for engine in ["epoll", "thread"] {
        let log = other.path().join(format!("{engine}.log"));
        let mut serve = command();
        serve.arg("serve").env("PLIMSOLL_HTTP", "127.0.0.1:0").env("PLIMSOLL_ENGINE", engine);
        serve.env("PLIMSOLL_SITE", format!("/docs={}", folder.path().display()));
        serve.env("PLIMSOLL_ACCESS_LOG", &log).env("PLIMSOLL_THREADS", "3").env("PLIMSOLL_GRACE", "1s");
        let server = Server::spawn(serve);
        assert_ne!(server.at().port(), 8080, "the default");
        assert_eq!(server.visit().get("/docs/small.txt").unwrap().body, b"small\n");
        assert_eq!(server.visit().get("/small.txt").unwrap().status, 404);
        let status = server.status();
        assert_eq!(status["engine"], engine, "{status}");
        plimsoll_tests::binary::until("the request is logged", || {
            std::fs::read_to_string(&log)
                .is_ok_and(|log| log.contains("\"GET /docs/small.txt HTTP/1.1\" 200"))
        });
    }
}

#[test]
fn a_variable_that_is_no_setting_is_reported() {
    let _permit = among_others();
    let data = tempfile::tempdir().unwrap();
    let with = |args: &[&str]| {
        let mut serve = command();
        serve.args(["serve", "--http", "127.0.0.1:0", "--data"]).arg(data.path()).args(args);
        serve.env("PLIMSOLL_HTPP", ":80").env("PLIMSOLL_PASSWORD", "correct horse");
        serve
    };
    let output = plimsoll_tests::binary::tool::run(&mut with(&["--check"])).well().text();
    assert!(output.contains("ignore  PLIMSOLL_HTPP") && output.contains("mean PLIMSOLL_HTTP?"), "{output}");
    assert!(!output.contains("PLIMSOLL_PASSWORD"), "{output}");
    let server = Server::spawn(with(&[]));
    plimsoll_tests::binary::until("the log says it", || server.stderr().contains("PLIMSOLL_HTPP"));
    let mode = std::fs::metadata(data.path().join("transfers.jsonl")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "who has which files is nobody else's business");
}

#[test]
fn an_argument_overrides_the_environment() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let site = |prefix: &str| format!("{prefix}={}", folder.path().display());
    let mut serve = command();
    serve.env("PLIMSOLL_HTTP", ":7771").env("PLIMSOLL_ENGINE", "thread");
    serve.env("PLIMSOLL_SITE", site("/set")).env("PLIMSOLL_THREADS", "5");
    serve.args(["serve", "--check", "--site", &site("/typed"), "--http", ":7772", "--engine", "epoll"]);
    let output = plimsoll_tests::binary::tool::run(&mut serve).well().text();
    for (typed, set) in [(" /typed", " /set"), (":7772", ":7771"), ("engine epoll", "engine thread")] {
        assert!(output.contains(typed) && !output.contains(set), "{typed}, not {set}: {output}");
    }
    assert!(output.contains("loops: 5"), "what was not typed is taken from the environment: {output}");
}
