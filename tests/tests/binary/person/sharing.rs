//! Shares: created, used, listed and revoked.

use plimsoll_tests::binary::{EngineKind, among_others};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;

use super::{Person, Workspace, lines};

fn a_share_is_given_used_and_taken_back(kind: EngineKind) {
    let place = Workspace::open(kind);
    let (alice, bob) = (Person::at(&place.server.url(""), "alice"), Person::at(&place.server.url(""), "bob"));
    alice.writes("report", "report");
    alice.types(&["put", "report"]).well();
    bob.fails(&["get", "alice:report"], 1, &["no such file"]);
    let share = alice.json(&["share", "report", "bob", "--expires", "7d"]);
    assert_eq!((&share["with"], &share["permission"]), (&"bob".into(), &"read".into()));
    bob.types(&["get", "alice:report"]).well();
    assert_eq!(bob.reads("report"), b"report");
    bob.fails(&["put", "report", "alice:report"], 1, &["reading only"]);
    assert_eq!(bob.json(&["shared"])["shares"][0]["owner"], "alice");
    assert!(bob.types(&["shared"]).well().text().contains("alice:report"));
    assert!(alice.types(&["shares"]).well().text().contains("/report"));
    alice.types(&["unshare", "report", "bob"]).well();
    bob.fails(&["get", "alice:report"], 1, &["no such file"]);
    alice.fails(&["unshare", "report", "bob"], 1, &["not shared", "plimsoll shares"]);
}

on_each_engine!(forks: a_share_is_given_used_and_taken_back);

#[test]
fn a_share_that_is_given_again_keeps_its_end_and_says_what_it_replaces() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let (alice, _bob) =
        (Person::at(&place.server.url(""), "alice"), Person::at(&place.server.url(""), "bob"));
    alice.types(&["mkdir", "inbox"]).well();
    let end = "2030-12-31T23:59:59Z";
    alice.types(&["share", "inbox", "bob", "--expires", end]).well();
    let output = alice.types(&["share", "inbox", "bob", "--write"]).well().text();
    assert!(output.contains("read and write /inbox until 2030-12-31 23:59 UTC"), "{output}");
    assert!(output.contains("This replaces the share before: it was to read.\n"), "{output}");
    assert_eq!(alice.json(&["shares"])["shares"][0]["expires"], end);
    let output = alice.types(&["share", "inbox", "bob", "--expires", "never"]).well().text();
    assert!(output.contains("it was to read and write, and it was until 2030-12-31 23:59 UTC"), "{output}");
    let shares = alice.json(&["shares"]);
    assert_eq!(shares["shares"].as_array().unwrap().len(), 1, "{shares}");
    assert_eq!(shares["shares"][0]["expires"], serde_json::Value::Null);
}

#[test]
fn a_move_says_which_shares_it_ends() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let (alice, _bob) =
        (Person::at(&place.server.url(""), "alice"), Person::at(&place.server.url(""), "bob"));
    for folder in ["a", "a/inner", "b", "c"] {
        alice.types(&["mkdir", folder]).well();
    }
    alice.types(&["share", "a/inner", "bob"]).well();
    alice.types(&["share", "c", "bob"]).well();
    let moved = alice.types(&["mv", "a", "moved"]).well();
    assert!(moved.stderr.contains("a: shares of it have ended, with bob."), "{}", moved.stderr);
    assert_eq!(alice.types(&["mv", "b", "quiet"]).well().stderr, "");
    let moved = alice.json(&["mv", "c", "away"]);
    assert_eq!(moved["done"][0]["unshared_with"], serde_json::json!(["bob"]), "{moved}");
    assert_eq!(alice.json(&["shares"])["shares"], serde_json::json!([]));
}

#[test]
fn a_folder_that_is_shared_to_write_takes_files_of_any_size() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let (alice, bob) = (Person::at(&place.server.url(""), "alice"), Person::at(&place.server.url(""), "bob"));
    alice.types(&["mkdir", "inbox"]).well();
    let output = alice.types(&["share", "inbox", "bob"]).well().text();
    assert_eq!(output, "bob may read /inbox: plimsoll get -r alice:inbox\n");
    alice.types(&["share", "/", "bob"]).well();
    let ended = alice.types(&["unshare", "inbox", "bob"]);
    assert!(ended.stderr.contains("bob still reaches it by the share of /"), "{}", ended.stderr);
    alice.types(&["unshare", "/", "bob"]).well();
    let share = alice.json(&["share", "inbox", "bob", "--write"]);
    assert!(alice.types(&["shares"]).well().text().contains("no end"));
    bob.writes("tree/small", "small");
    bob.writes("tree/large", noise(3, 3 << 20));
    bob.types(&["put", "-r", "tree", "alice:inbox/"]).well();
    assert_eq!(lines(bob.types(&["ls", "alice:inbox/tree"])), ["large", "small"]);
    alice.types(&["get", "-r", "inbox", "./"]).well();
    assert!(alice.reads("inbox/tree/large") == noise(3, 3 << 20));
    bob.types(&["cp", "alice:inbox/tree/small", "mine"]).well();
    bob.types(&["mv", "alice:inbox/tree/small", "alice:inbox/other"]).well();
    bob.types(&["rm", "-r", "alice:inbox/tree"]).well();
    assert_eq!(lines(bob.types(&["ls", "alice:inbox"])), ["other"]);
    alice.types(&["unshare", share["id"].as_str().unwrap()]).well();
    bob.fails(&["ls", "alice:inbox"], 1, &["no such"]);
    bob.types(&["ls", "mine"]).well();
}

#[test]
fn an_impossible_share_is_reported() {
    let _permit = among_others();
    let place = Workspace::open(EngineKind::Epoll);
    let alice = Person::at(&place.server.url(""), "alice");
    alice.writes("a", "a");
    alice.types(&["put", "a"]).well();
    alice.fails(&["share", "missing", "alice"], 1, &["nothing at \"/missing\"", "Check the path"]);
    alice.fails(&["share", "a", "nobody"], 1, &["no account \"nobody\"", "Check the name"]);
    alice.fails(&["unshare", "zzz"], 1, &["no share \"zzz\"", "plimsoll shares\n"]);
    alice.fails(&["ls", "bob:"], 1, &["bob shares nothing with you", "plimsoll shared\n"]);
    alice.fails(&["share", "bob:a", "carol"], 2, &["own home"]);
    alice.fails(&["share", "a", "bob", "--expires", "soon"], 2, &["30d"]);
    alice.fails(&["unshare", "not/an/id"], 2, &["plimsoll shares"]);
}
