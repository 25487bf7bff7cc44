//! Sessions and other credentials: login, logout, and the credentials of each request.

use std::time::Duration;

use plimsoll_auth::Settings;
use plimsoll_tests::accounts::{PASSWORD, settings};
use plimsoll_tests::{Engine, Person, Scenario, Scene, behaviours, under};
use serde_json::json;

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), ..Scenario::default() }
}

const JSON: &str = "Content-Type: application/json\r\n";

/// `alice:correct horse`
const BASIC: &str = "Authorization: Basic YWxpY2U6Y29ycmVjdCBob3JzZQ==\r\n";

fn of(name: &str, password: &str) -> String {
    json!({ "name": name, "password": password }).to_string()
}

async fn an_unknown_name_and_a_wrong_password_get_the_same_response(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut answers = Vec::new();
    let wrong = [("alice", "wrong password"), ("nobody", PASSWORD), ("a/b", PASSWORD), ("", "")];
    for (name, password) in wrong {
        let answer = alice.client.ask("POST", "/api/sessions", JSON, of(name, password)).await;
        assert!(!answer.problem(401).is_empty());
        answers.push(answer.text());
    }
    assert!(answers.iter().all(|text| *text == answers[0]));
}

async fn without_a_good_credential_everything_is_401_and_says_how_to_get_one(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "hello").await;
    let forged = format!("Authorization: Bearer pls_{}\r\n", "0".repeat(32));
    let cut = format!("Authorization: Bearer {}\r\n", &alice.token[..alice.token.len() - 1]);
    for fields in [
        "",
        &forged,
        &cut,
        "Authorization: Bearer\r\n",
        "Authorization: Bearer ../../etc\r\n",
        "Authorization: Basic !!!\r\n",
        "Authorization: Basic YWxpY2U6d3Jvbmc=\r\n",
        "Authorization: Digest username=\"alice\"\r\n",
    ] {
        for (method, target) in [
            ("GET", "/files/"),
            ("GET", "/files/a"),
            ("PUT", "/files/a"),
            ("DELETE", "/files/a"),
            ("MKCOL", "/files/b"),
            ("MOVE", "/files/a"),
            ("GET", "/shared/"),
            ("GET", "/shared/alice/a"),
            ("GET", "/api/whoami"),
            ("GET", "/api/shares"),
            ("GET", "/api/shared"),
            ("POST", "/api/shares"),
            ("DELETE", "/api/shares/x"),
            ("PUT", "/api/password"),
            ("DELETE", "/api/sessions/current"),
            ("GET", "/uploads"),
        ] {
            let answer = alice.client.ask(method, target, fields, "").await;
            assert!(!answer.problem(401).is_empty(), "{method} {target} {fields}");
            let ways = answer.fields.iter().filter(|(name, _)| name == "WWW-Authenticate");
            let ways: Vec<&str> = ways.map(|(_, scheme)| scheme.split(' ').next().unwrap()).collect();
            assert_eq!(ways, ["Basic", "Bearer"], "wget2 looks at the first alone");
        }
    }
    let twice = format!("{}{}", alice.field(), alice.field());
    alice.client.get_with("/files/a", &twice).await.problem(400);
    assert_eq!(alice.get("/files/a").await.text(), "hello");
}

/// A browser would answer the challenge by a dialog over the page.
async fn a_browser_is_not_asked_for_a_password_by_its_own_dialog(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for (fields, ways) in [
        ("Sec-Fetch-Site: same-origin\r\nSec-Fetch-Mode: cors\r\n", 1),
        ("Upgrade-Insecure-Requests: 1\r\n", 1),
        ("Accept: text/html\r\n", 2),
    ] {
        let answer = alice.client.get_with("/files/a", fields).await;
        assert_eq!(answer.status, 401);
        let offered = answer.fields.iter().filter(|(name, _)| name == "WWW-Authenticate").count();
        assert_eq!(offered, ways, "{fields}");
    }
}

async fn a_browser_without_an_account_gets_instructions_for_people(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    const BROWSER: &str = "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n";
    let wrong = "Authorization: Basic YWxpY2U6d3Jvbmc=\r\n";
    for (target, fields) in [("/files/", ""), ("/files/a", ""), ("/shared/", ""), ("/files/", wrong)] {
        let page = alice.client.get_with(target, &format!("{BROWSER}{fields}")).await;
        assert_eq!((page.status, page.field("Content-Type")), (401, Some("text/html; charset=utf-8")));
        let text = page.text();
        for command in ["plimsoll login NAME --server URL", "curl --user NAME URL/files/", "/app/login"] {
            assert!(text.contains(command), "{target} {fields}: {text}");
        }
        assert!(!text.contains("POST") && !text.contains("Bearer") && !text.contains("<script"), "{text}");
    }
    for accept in ["", "Accept: */*\r\n", "Accept: application/json\r\n"] {
        let detail = alice.client.get_with("/files/", accept).await.problem(401);
        assert!(detail.contains("POST /api/sessions") && detail.contains("Bearer"), "{detail}");
    }
}

async fn after_logging_out_the_token_is_dead_at_once(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut other = Person::again(&scene, "alice").await;
    assert_eq!(alice.get("/api/whoami").await.status, 200);
    assert_eq!(alice.delete("/api/sessions/current").await.status, 204);
    alice.get("/api/whoami").await.problem(401);
    alice.delete("/api/sessions/current").await.problem(401);
    let token = alice.field();
    other.client.get_with("/files/", &token).await.problem(401);
    assert_eq!(other.get("/api/whoami").await.status, 200);
}

async fn a_name_and_a_password_do_with_each_request(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let hashes = scene.accounts().auth.hashes();
    for _ in 0..5 {
        let account = alice.client.get_with("/api/whoami", BASIC).await;
        assert_eq!((account.status, &account.json()["account"]), (200, &json!("alice")));
    }
    assert!(scene.accounts().auth.hashes() <= hashes + 1, "each request was hashed");
    let detail = alice.client.ask("DELETE", "/api/sessions/current", BASIC, "").await.problem(400);
    assert!(detail.contains("token"), "{detail}");
}

async fn each_request_of_a_connection_is_of_who_it_shows(scene: Scene) {
    let (mut alice, bob) = (Person::new(&scene, "alice").await, Person::new(&scene, "bob").await);
    let of_bob = "Authorization: Basic Ym9iOmNvcnJlY3QgaG9yc2U=\r\n";
    let wrong = "Authorization: Basic YWxpY2U6d3Jvbmc=\r\n";
    let (token, other) = (alice.field(), bob.field());
    let shown = [
        (BASIC, Some("alice")),
        (BASIC, Some("alice")),
        (of_bob, Some("bob")),
        (BASIC, Some("alice")),
        (wrong, None),
        (BASIC, Some("alice")),
        (&other, Some("bob")),
        ("", None),
        (&other, Some("bob")),
        (&token, Some("alice")),
    ];
    for (fields, account) in shown {
        let answer = alice.client.get_with("/api/whoami", fields).await;
        assert_eq!(answer.status, if account.is_some() { 200 } else { 401 }, "{fields}");
        assert_eq!(
            account.map(|_| answer.json()["account"].clone()),
            account.map(|account| json!(account)),
            "{fields}"
        );
    }
}

async fn a_connection_that_shows_a_password_each_time_finds_at_once_that_it_is_another(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut kept = scene.connect().await;
    for (old, new) in [(PASSWORD, "battery staple"), ("battery staple", PASSWORD)] {
        let expected = if old == PASSWORD { 200 } else { 401 };
        for _ in 0..3 {
            assert_eq!(kept.get_with("/api/whoami", BASIC).await.status, expected);
        }
        let change = json!({ "old": old, "new": new }).to_string();
        assert_eq!(alice.ask("PUT", "/api/password", JSON, change).await.status, 204);
    }
    assert_eq!(kept.get_with("/api/whoami", BASIC).await.status, 200);
}

async fn an_unauthenticated_upload_is_refused_before_its_body(scene: Scene) {
    for (fields, status) in [("", 401), (BASIC, 401)] {
        let mut client = scene.connect().await;
        client.push(format!(
            "PUT /files/a HTTP/1.1\r\nHost: test\r\n{fields}Content-Length: 1000000\r\n\
             Expect: 100-continue\r\n\r\n"
        ));
        let answer = client.answer().await;
        assert!(!answer.problem(status).is_empty());
        assert_eq!(answer.field("Connection"), Some("close"));
    }
}

async fn every_log_in_and_each_refused_one_has_its_line(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let before = scene.accounts().lines().len();
    alice.client.ask("POST", "/api/sessions", JSON, of("alice", PASSWORD)).await;
    alice.client.ask("POST", "/api/sessions", JSON, of("alice", "wrong password")).await;
    alice.client.get_with("/files/", "Authorization: Basic YWxpY2U6d3Jvbmc=\r\n").await;
    let lines = scene.accounts().lines().split_off(before);
    let answers: Vec<_> =
        lines.iter().map(|line| (&line["operation"], &line["account"], &line["result"])).collect();
    let (login, name) = (json!("login"), json!("alice"));
    let (ok, no) = (json!("ok"), json!("not authenticated"));
    assert_eq!(answers, [(&login, &name, &ok), (&login, &name, &no), (&login, &name, &no)]);
    assert!(!scene.accounts().transfers.text().contains("horse"), "a password is in the log");
}

behaviours!(scenario and remote and tls;
    an_unknown_name_and_a_wrong_password_get_the_same_response,
    without_a_good_credential_everything_is_401_and_says_how_to_get_one,
    a_browser_is_not_asked_for_a_password_by_its_own_dialog,
    a_browser_without_an_account_gets_instructions_for_people,
    after_logging_out_the_token_is_dead_at_once,
    a_name_and_a_password_do_with_each_request,
    each_request_of_a_connection_is_of_who_it_shows,
    a_connection_that_shows_a_password_each_time_finds_at_once_that_it_is_another,
    an_unauthenticated_upload_is_refused_before_its_body,
    every_log_in_and_each_refused_one_has_its_line,
);

const SESSION_TIME: Duration = Duration::from_secs(60);

fn short_sessions() -> Scenario {
    let settings = Settings { session_time: SESSION_TIME, ..settings() };
    Scenario { accounts: Some(settings), ..Scenario::default() }
}

/// In the simulator alone: the time is too long for a real clock.
#[test]
fn a_session_ends_when_its_time_is_over() {
    under(Engine::Simulator, short_sessions, |scene| async move {
        let mut alice = Person::new(&scene, "alice").await;
        scene.io.sleep(SESSION_TIME - Duration::from_secs(2)).await;
        assert_eq!(alice.get("/api/whoami").await.status, 200);
        scene.io.sleep(Duration::from_secs(2)).await;
        alice.get("/api/whoami").await.problem(401);
    });
}
