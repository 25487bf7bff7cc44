//! Classic: one connection for each request, in lines that a client writes by hand.
//!
//! Accounts and their files are the same as over HTTP, which the same server serves.

use std::time::Duration;

use plimsoll_auth::{Attempts, Budget, Permissions, Quota, Settings, SignUp};
use plimsoll_io::{Segment, Want};
use plimsoll_proto::classic::Limits;
use plimsoll_tests::accounts::{PASSWORD, settings};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Client, Engine, Person, Scenario, Scene, Tree, behaviours, together};

fn with_accounts() -> Scenario {
    let tree =
        Tree::new().file("common.txt", "for all").file("folder/deep.txt", "deep").file(".hidden", "no");
    Scenario {
        accounts: Some(settings()),
        classic: Some(Limits::default()),
        tree: tree.file("both.txt", "the common one"),
        ..Scenario::default()
    }
}

async fn connect(scene: &Scene) -> Client {
    let stream = scene.io.connect(scene.classic()).await.expect("the server accepts connections");
    Client::new(&scene.io, stream)
}

/// Sends some bytes, and returns the server's output to its end.
async fn response_to(scene: &Scene, bytes: impl Into<Vec<u8>>) -> Vec<u8> {
    let mut client = connect(scene).await;
    client.push(bytes);
    client.rest().await.expect("the server ends cleanly")
}

async fn text(scene: &Scene, bytes: impl Into<Vec<u8>>) -> String {
    String::from_utf8(response_to(scene, bytes).await).unwrap()
}

/// Requests a file as alice, with her password.
async fn got(scene: &Scene, file: &str) -> String {
    text(scene, format!("get:alice:{PASSWORD}\n{file}\n")).await
}

async fn a_new_classic_account_is_valid_over_http_too(scene: Scene) {
    assert_eq!(text(&scene, format!("new:alice:{PASSWORD}\n")).await, "ok\n");
    let mut alice = Person::again(&scene, "alice").await;
    alice.put("/files/hello.txt", "hello").await;
    assert_eq!(got(&scene, "hello.txt").await, "ok\nok 5\nhello");
    let taken = text(&scene, format!("new:alice:{PASSWORD}\n")).await;
    assert_eq!(taken, "error: This name is taken. Choose another one.\n");
}

async fn a_file_comes_after_the_password_was_found_right(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let bytes = noise(3, if scene.engine == Engine::Simulator { 300_000 } else { 5_000_000 });
    alice.put("/files/a", &bytes).await;
    alice.put("/files/empty", b"").await;
    let mut client = connect(&scene).await;
    client.push(format!("get:alice:{PASSWORD}\n"));
    assert_eq!(client.body(3).await.unwrap(), b"ok\n");
    client.push("a\n");
    let head = format!("ok {}\n", bytes.len());
    assert_eq!(client.body(head.len()).await.unwrap(), head.as_bytes());
    assert!(client.rest().await.unwrap() == bytes);
    assert_eq!(got(&scene, "empty").await, "ok\nok 0\n");
}

async fn a_line_may_come_in_any_pieces(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "hello").await;
    let mut client = connect(&scene).await;
    for byte in format!("get:alice:{PASSWORD}\na\n").into_bytes() {
        client.send([byte]).await;
    }
    assert_eq!(client.rest().await.unwrap(), b"ok\nok 5\nhello");
}

async fn a_wrong_password_and_an_unknown_name_get_the_same_response(scene: Scene) {
    Person::new(&scene, "alice").await;
    let wrong = text(&scene, "get:alice:wrong\ncommon.txt\n").await;
    assert!(wrong.starts_with("error: The name or the password is wrong."), "{wrong}");
    for line in ["get:nobody:wrong\ncommon.txt\n", "get:alice:\ncommon.txt\n", "get:\u{e4}:wrong\n"] {
        assert_eq!(text(&scene, line).await, wrong, "{line}");
    }
}

async fn a_missing_or_foreign_file_is_not_found(scene: Scene) {
    let (mut alice, mut bob) = (Person::new(&scene, "alice").await, Person::new(&scene, "bob").await);
    bob.put("/files/secret", "bob's").await;
    alice.put("/files/folder/a", "a").await;
    let long = "x".repeat(300);
    for file in
        ["none", "../bob/secret", "/../bob/files/secret", "a\0b", "", ".", "..", &long, ".hidden", "none/a"]
    {
        let answer = got(&scene, file).await;
        assert!(["ok\nerror: not found\n", FOLDER].contains(&answer.as_str()), "{file:?}: {answer}");
    }
    assert_eq!(got(&scene, "folder").await, FOLDER);
}

const FOLDER: &str = "ok\nerror: that is a folder, not a file\n";

async fn a_file_missing_in_the_home_is_read_from_the_common_site(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    assert_eq!(got(&scene, "common.txt").await, "ok\nok 7\nfor all");
    assert_eq!(got(&scene, "/folder/deep.txt").await, "ok\nok 4\ndeep");
    alice.put("/files/both.txt", "her own").await;
    assert_eq!(got(&scene, "both.txt").await, "ok\nok 7\nher own");
}

async fn a_name_may_have_colons_and_backslashes_if_the_accounts_allow(scene: Scene) {
    assert_eq!(text(&scene, "new:alice:a\\:b\\\\c \\: horse\n").await, "ok\n");
    assert_eq!(text(&scene, "get:alice:a\\:b\\\\c \\: horse\ncommon.txt\n").await, "ok\nok 7\nfor all");
    let refused = text(&scene, format!("new:a\\:b:{PASSWORD}\n")).await;
    assert!(refused.starts_with("error: "), "{refused}");
}

async fn a_malformed_request_gets_the_valid_forms(scene: Scene) {
    for line in ["\n", "GET / HTTP/1.1\r\n\r\n", "get\n", "put:alice:horse\n"] {
        assert_eq!(
            text(&scene, line).await,
            "error: send new:NAME:PASSWORD or get:NAME:PASSWORD\n",
            "{line}"
        );
    }
    assert!(text(&scene, "get:alice\n").await.contains("three parts"));
    assert!(text(&scene, "get:alice:a\\b\n").await.contains("backslash"));
    let too_long = text(&scene, [b'x'; 5000]).await;
    assert_eq!(too_long, "error: a line has 4096 bytes at most\n");
}

async fn a_silent_client_gets_its_time_and_is_then_refused(scene: Scene) {
    for begun in ["", "get:al", &format!("get:alice:{PASSWORD}\n"), &format!("get:alice:{PASSWORD}\ncom")] {
        let mut client = connect(&scene).await;
        client.push(begun);
        let response = String::from_utf8(client.rest().await.unwrap()).unwrap();
        assert!(response.ends_with("error: no line came in time\n"), "{begun:?}: {response}");
    }
}

async fn a_client_that_disconnects_leaves_no_connection_and_has_its_line(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let bytes = if scene.engine == Engine::Simulator { 300_000 } else { 16_000_000 };
    alice.put("/files/a", &noise(5, bytes)).await;
    for sent in ["", "get:al", &format!("get:alice:{PASSWORD}\n")] {
        let mut client = connect(&scene).await;
        client.send(sent).await;
        drop(client);
    }
    let mut client = connect(&scene).await;
    client.push(format!("get:alice:{PASSWORD}\na\n"));
    client.body(100).await.unwrap();
    drop((client, alice));
    scene.until(|| scene.open() == 0).await;
    let downloads = || scene.accounts().lines().into_iter().find(|line| line["operation"] == "download");
    scene.until(|| downloads().is_some()).await;
    let line = downloads().unwrap();
    assert_eq!((&line["path"], &line["result"]), (&"/a".into(), &"broken off".into()), "{line}");
    assert!(line["bytes"].as_u64().unwrap() < bytes as u64, "{line}");
}

async fn a_client_may_end_its_side_first(scene: Scene) {
    Person::new(&scene, "alice").await;
    for (sent, expected) in [
        (String::new(), ""),
        ("get:al".to_owned(), "error: the line did not come to its end\n"),
        (format!("get:alice:{PASSWORD}\n"), "ok\nerror: the line did not come to its end\n"),
        (format!("get:alice:{PASSWORD}\ncommon.txt\n"), "ok\nok 7\nfor all"),
    ] {
        let mut stream = scene.io.connect(scene.classic()).await.unwrap();
        stream.tx.push(Segment::Owned(sent.clone().into_bytes()));
        stream.tx.drain(0).await.unwrap();
        stream.tx.finish();
        let mut received = Vec::new();
        while let Some(lease) = stream.rx.recv(Want::Body).await.expect("a clean end") {
            received.extend_from_slice(&lease);
        }
        assert_eq!(String::from_utf8(received).unwrap(), expected, "{sent:?}");
    }
}

/// Removes a permission of alice, and then her account's access, between the login line and the file name.
async fn a_right_that_ends_between_the_two_lines_is_over(scene: Scene) {
    Person::new(&scene, "alice").await;
    let auth = scene.accounts().auth.clone();
    let no_reading = Permissions { read: false, ..Permissions::default() };
    let mut client = connect(&scene).await;
    client.push(format!("get:alice:{PASSWORD}\n"));
    assert_eq!(client.body(3).await.unwrap(), b"ok\n");
    auth.set_permissions(&scene.io, "alice", no_reading).await.unwrap();
    client.push("common.txt\n");
    let response = String::from_utf8(client.rest().await.unwrap()).unwrap();
    assert!(response.starts_with("error: this account may not "), "{response}");
    auth.set_permissions(&scene.io, "alice", Permissions::default()).await.unwrap();

    let mut client = connect(&scene).await;
    client.push(format!("get:alice:{PASSWORD}\n"));
    assert_eq!(client.body(3).await.unwrap(), b"ok\n");
    auth.set_enabled(&scene.io, "alice", false).await.unwrap();
    client.push("common.txt\n");
    assert_eq!(client.rest().await.unwrap(), b"error: the account or its password has changed\n");
    let response = got(&scene, "common.txt").await;
    assert!(response.starts_with("error: The name or the password is wrong."), "{response}");
}

async fn each_thing_done_has_its_line_in_the_log(scene: Scene) {
    assert_eq!(text(&scene, format!("new:alice:{PASSWORD}\n")).await, "ok\n");
    assert_eq!(got(&scene, "common.txt").await, "ok\nok 7\nfor all");
    assert_eq!(got(&scene, "none").await, "ok\nerror: not found\n");
    text(&scene, "get:alice:wrong\n").await;
    assert_eq!(response_to(&scene, format!("get:alice:{PASSWORD}\na\0b\n")).await, b"ok\nerror: not found\n");
    scene.until(|| scene.accounts().lines().len() == 7).await;
    let lines: Vec<String> = scene
        .accounts()
        .lines()
        .iter()
        .map(|line| {
            assert_eq!((&line["protocol"], &line["account"]), (&"classic".into(), &"alice".into()), "{line}");
            format!("{} {} {} {}", line["operation"], line["path"], line["bytes"], line["result"])
                .replace('"', "")
        })
        .collect();
    let wanted = [
        "signup  0 ok",
        "login  0 ok",
        "download /common.txt 7 ok",
        "login  0 ok",
        "download /none 0 not found",
        "login  0 not authenticated",
        // An invalid file name is refused without a lookup; the password was right all the same.
        "login  0 ok",
    ];
    assert_eq!(lines, wanted);
}

async fn many_are_served_at_once(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "hello").await;
    let count = if scene.engine == Engine::Simulator { 8 } else { 32 };
    together((0..count).map(|_| got(&scene, "a"))).await.into_iter().for_each(|answer| {
        assert_eq!(answer, "ok\nok 5\nhello");
    });
}

behaviours!(with_accounts and remote;
    a_new_classic_account_is_valid_over_http_too,
    a_file_comes_after_the_password_was_found_right,
    a_line_may_come_in_any_pieces,
    a_wrong_password_and_an_unknown_name_get_the_same_response,
    a_missing_or_foreign_file_is_not_found,
    a_file_missing_in_the_home_is_read_from_the_common_site,
    a_name_may_have_colons_and_backslashes_if_the_accounts_allow,
    a_malformed_request_gets_the_valid_forms,
    a_client_that_disconnects_leaves_no_connection_and_has_its_line,
    a_client_may_end_its_side_first,
    a_right_that_ends_between_the_two_lines_is_over,
    each_thing_done_has_its_line_in_the_log,
    many_are_served_at_once,
);

mod impatient {
    use super::*;

    fn scenario() -> Scenario {
        let short = Duration::from_millis(300);
        let classic = Some(Limits { line_time: short, send_time: short, ..Limits::default() });
        Scenario { classic, ..with_accounts() }
    }

    async fn a_silent_client_is_refused_and_disconnected(scene: Scene) {
        Person::new(&scene, "alice").await;
        a_silent_client_gets_its_time_and_is_then_refused(scene).await;
    }

    async fn a_client_that_receives_nothing_is_disconnected(scene: Scene) {
        let mut alice = Person::new(&scene, "alice").await;
        let bytes = if scene.engine == Engine::Simulator { 300_000 } else { 16_000_000 };
        alice.put("/files/a", &noise(5, bytes)).await;
        drop(alice);
        let mut client = connect(&scene).await;
        client.push(format!("get:alice:{PASSWORD}\na\n"));
        client.body(100).await.unwrap();
        scene.until(|| scene.open() == 0).await;
        assert!(client.rest().await.is_err(), "what came is not the whole");
    }

    behaviours!(scenario;
        a_silent_client_is_refused_and_disconnected,
        a_client_that_receives_nothing_is_disconnected,
    );
}

mod holding_back {
    use super::*;

    fn scenario() -> Scenario {
        let few = Budget { count: 3, forgiven_after: Duration::from_secs(60) };
        let quick = Duration::from_millis(1);
        let attempts = Attempts {
            per_name_from_address: few,
            slow_first: quick,
            slow_max: quick,
            ..Attempts::default()
        };
        Scenario { accounts: Some(Settings { attempts: Some(attempts), ..settings() }), ..with_accounts() }
    }

    async fn a_client_that_guesses_passwords_is_refused_for_a_while(scene: Scene) {
        Person::new(&scene, "alice").await;
        for _ in 0..3 {
            let response = text(&scene, "get:alice:wrong\n").await;
            assert!(response.starts_with("error: The name or the password is wrong."), "{response}");
        }
        let response = text(&scene, format!("get:alice:{PASSWORD}\n")).await;
        assert!(response.starts_with("error: Too many attempts. Try again in "), "{response}");
    }

    behaviours!(scenario; a_client_that_guesses_passwords_is_refused_for_a_while);
}

mod closed {
    use super::*;

    fn scenario() -> Scenario {
        let settings = Settings { sign_up: SignUp::Closed, ..settings() };
        Scenario { accounts: Some(settings), ..with_accounts() }
    }

    async fn a_closed_sign_up_and_an_account_without_read_are_refused(scene: Scene) {
        let response = text(&scene, format!("new:alice:{PASSWORD}\n")).await;
        assert!(response.starts_with("error: Sign-up is closed here."), "{response}");
        let no_reading = Permissions { read: false, ..Permissions::default() };
        Person::with(&scene, "alice", Quota::default(), no_reading).await;
        let response = got(&scene, "common.txt").await;
        assert!(response.starts_with("ok\nerror: this account may not "), "{response}");
    }

    behaviours!(scenario; a_closed_sign_up_and_an_account_without_read_are_refused);
}

mod stopping {
    use super::*;

    async fn at_a_stop_a_request_in_progress_is_served_and_an_idle_client_is_refused(scene: Scene) {
        Person::new(&scene, "alice").await;
        let (mut begun, mut idle) = (connect(&scene).await, connect(&scene).await);
        begun.push(format!("get:alice:{PASSWORD}\n"));
        assert_eq!(begun.body(3).await.unwrap(), b"ok\n");
        scene.stop.order();
        assert_eq!(idle.rest().await.unwrap(), b"error: the server is going down; come back later\n");
        begun.push("common.txt\n");
        assert_eq!(begun.rest().await.unwrap(), b"ok 7\nfor all");
        drop((begun, idle));
        scene.until(|| scene.open() == 0).await;
    }

    behaviours!(with_accounts; at_a_stop_a_request_in_progress_is_served_and_an_idle_client_is_refused);
}
