//! ftpbench, of pyftpdlib: many sessions at once, and no error.

use plimsoll_tests::binary::member::PASSWORD;
use plimsoll_tests::binary::{EngineKind, tool};
use plimsoll_tests::on_each_engine;

use super::Served;
use crate::clients;

fn ftpbench_runs_without_an_error(kind: EngineKind) {
    if !clients::are_there() {
        return;
    }
    let served = Served::new(kind);
    let mut bench = clients::from_python("ftpbench");
    bench.args(["-u", "alice", "-p", PASSWORD, "-H", "127.0.0.1", "-P", &served.port()]);
    bench.args(["-b", "all", "-n", "20", "-s", "100K", "-t", "30"]);
    let done = tool::run(bench.current_dir(served.folder.path()));
    let output = format!("{}\n{}", done.text(), done.stderr);
    assert!(done.status.success() && !output.contains("Traceback"), "{output}");
    assert!(output.contains("STOR") && output.contains("RETR"), "{output}");
    println!("{}", done.text());
    assert_eq!(served.server.status()["load"]["connections_panicked"], 0);
}

on_each_engine!(alone: ftpbench_runs_without_an_error);
