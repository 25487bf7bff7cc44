//! schemathesis: a client made from `/api/openapi.json`, which tries each operation with data that is allowed
//! and with data that is not.
//!
//! What must hold: it has a bound in time; no answer is an error of the server's, and each is one that the
//! document describes.

use plimsoll_tests::binary::member::PASSWORD;
use plimsoll_tests::binary::{Kind, Member, Server, is_long, tool};
use plimsoll_tests::on_each_engine;

use super::{are_there, beside, from_python};

/// What an answer is looked at for.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
    response_headers_conformance,response_schema_conformance";
/// Cases of each operation, and seconds in all.
const CASES: &str = "12";
const SECONDS: &str = "15";
/// Seeds of a long run, each with more cases.
const LONG_SEEDS: u64 = 6;
const LONG_CASES: &str = "100";
const LONG_SECONDS: &str = "45";

fn try_out(server: &Server, seed: u64, cases: &str, seconds: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut program = from_python("schemathesis");
    program.current_dir(folder.path()).env("SCHEMATHESIS_HOOKS", beside("schemathesis_hooks.py"));
    program.arg("--config-file").arg(beside("schemathesis.toml"));
    program.arg("run").arg(server.url("/api/openapi.json"));
    // By password: a session would end with the first try of logging out. By one thread: with two, the tool
    // has failed in itself now and then ("AST constructor recursion depth mismatch", in Python 3.11).
    program.args(["--auth", &format!("alice:{PASSWORD}"), "--checks", CHECKS, "--workers", "1"]);
    program.args(["--phases", "examples,coverage,fuzzing", "--generation-database", "none"]);
    program.args(["--max-examples", cases, "--max-time", seconds, "--seed", &seed.to_string()]);
    program.args(["--continue-on-failure", "--no-color", "--warnings", "off", "--no-shrink"]);
    let done = tool::run(&mut program);
    assert!(done.status.success(), "seed {seed}: {}\n{}", done.text(), done.stderr);
    println!("{}", done.text());
}

fn every_answer_is_one_that_is_described(kind: Kind) {
    if !are_there("clients::schemathesis") {
        return;
    }
    let data = tempfile::tempdir().unwrap();
    let server = Server::on_data(kind, data.path(), &["--durability", "none"]);
    let mut alice = Member::new(&server, "alice");
    Member::new(&server, "bob");
    assert_eq!(alice.put("/files/notes.txt", b"notes").status, 201);
    if is_long() {
        (0..LONG_SEEDS).for_each(|seed| try_out(&server, seed, LONG_CASES, LONG_SECONDS));
    } else {
        try_out(&server, 1, CASES, SECONDS);
    }
    assert_eq!(server.status()["load"]["connections_panicked"], 0);
}

on_each_engine!(alone: every_answer_is_one_that_is_described);
