//! schemathesis: a client generated from `/api/openapi.json`, which tests each operation with valid and
//! with invalid data.
//!
//! It must have a time bound. No answer may be a server error, and each must be one that the document
//! describes.

use plimsoll_tests::binary::member::PASSWORD;
use plimsoll_tests::binary::{EngineKind, Member, Server, is_long, tool};
use plimsoll_tests::on_each_engine;

use super::{are_there, beside, from_python};

/// The checks on each answer.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
    response_headers_conformance,response_schema_conformance";
/// Cases of each operation, and the total seconds.
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
    // With a password: a session would end with the first tested logout. With one thread: with two, the
    // tool itself has failed at times ("AST constructor recursion depth mismatch", in Python 3.11).
    program.args(["--auth", &format!("alice:{PASSWORD}"), "--checks", CHECKS, "--workers", "1"]);
    program.args(["--phases", "examples,coverage,fuzzing", "--generation-database", "none"]);
    program.args(["--max-examples", cases, "--max-time", seconds, "--seed", &seed.to_string()]);
    program.args(["--continue-on-failure", "--no-color", "--warnings", "off", "--no-shrink"]);
    let done = tool::run(&mut program);
    assert!(done.status.success(), "seed {seed}: {}\n{}", done.text(), done.stderr);
    println!("{}", done.text());
}

fn every_answer_is_one_that_is_described(kind: EngineKind) {
    if !are_there() {
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
