//! ftplib, of Python's standard library.

use plimsoll_tests::binary::member::PASSWORD;
use plimsoll_tests::binary::{EngineKind, tool};
use plimsoll_tests::on_each_engine;

use super::Served;

fn pythons_own_client_goes_through_it(kind: EngineKind) {
    let served = Served::new(kind);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/binary/ftp/round_trip.py");
    let mut python = served.client("python3");
    python.args([script, "127.0.0.1", &served.port(), "alice", PASSWORD]);
    let done = tool::run(&mut python).well();
    assert_eq!(done.text(), "done\n", "{}", done.stderr);
}

on_each_engine!(forks: pythons_own_client_goes_through_it);
