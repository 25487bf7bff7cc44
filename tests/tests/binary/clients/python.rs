//! `requests`, and `http.client` of Python's standard library.

use plimsoll_tests::binary::{EngineKind, Server, tool};
use plimsoll_tests::on_each_engine;

use super::{are_there, script};

fn two_clients_of_python_go_through_it(kind: EngineKind) {
    if !are_there() {
        return;
    }
    let data = tempfile::tempdir().unwrap();
    let server = Server::on_data(kind, data.path(), &[]);
    let done = tool::run(script("round_trip.py").arg(server.url(""))).well();
    assert_eq!(done.text(), "done\n", "{}", done.stderr);
}

on_each_engine!(two_clients_of_python_go_through_it);
