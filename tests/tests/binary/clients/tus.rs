//! tuspy: an upload in parts with checksums, interrupted and resumed by another process, on another server
//! with the same data.

use plimsoll_tests::binary::{EngineKind, Member, Server, tool};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;

use super::{are_there, script};

const BYTES: usize = 5_000_000;
/// The maximal bytes that the first process sends.
const FIRST_BYTES: usize = 2_000_000;

/// Returns the offsets at which tuspy started and ended.
fn upload(server: &Server, alice: &Member, args: [&str; 4]) -> (usize, usize) {
    let mut python = script("tus_upload.py");
    let done = tool::run(python.arg(server.url("/uploads")).arg(&alice.token).args(args)).well();
    let text = done.text();
    let (begun, ended) = text.trim().split_once(' ').expect("two offsets");
    (begun.parse().unwrap(), ended.parse().unwrap())
}

fn tuspy_uploads_and_resumes(kind: EngineKind) {
    if !are_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (data, file) = (folder.path().join("data"), folder.path().join("large.bin"));
    let store = folder.path().join("store.json").display().to_string();
    let (bytes, first) = (noise(17, BYTES), FIRST_BYTES.to_string());
    std::fs::write(&file, &bytes).unwrap();
    let server = Server::on_data(kind, &data, &[]);
    let mut alice = Member::new(&server, "alice");
    alice.mkcol("/files/folder");
    let file = file.display().to_string();
    let (begun, ended) = upload(&server, &alice, [&file, "folder/large.bin", &first, &store]);
    assert_eq!((begun, ended), (0, FIRST_BYTES));
    assert_eq!(alice.get("/files/folder/large.bin").status, 404, "it is not complete");
    let at = server.at().to_string();
    drop(server);
    let server = Server::on_data(kind, &data, &["--http", &at]);
    let (begun, ended) = upload(&server, &alice, [&file, "folder/large.bin", &BYTES.to_string(), &store]);
    assert_eq!((begun, ended), (FIRST_BYTES, BYTES), "it goes on where it was");
    let mut alice = alice.again(&server);
    assert!(alice.get("/files/folder/large.bin").body == bytes, "every byte");
    assert_eq!(alice.get("/uploads").json()["uploads"], serde_json::json!([]));
}

on_each_engine!(tuspy_uploads_and_resumes);
