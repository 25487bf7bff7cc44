//! Accounts: sign-up, identity and passwords.

use plimsoll_auth::{Permissions, Quota, SignUp};
use plimsoll_tests::accounts::{PASSWORD, settings};
use plimsoll_tests::{Engine, Person, Scenario, Scene, behaviours, under};
use serde_json::json;

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), ..Scenario::default() }
}

const JSON: &str = "Content-Type: application/json\r\n";

fn of(name: &str, password: &str) -> String {
    json!({ "name": name, "password": password }).to_string()
}

async fn a_new_account_can_log_in_store_a_file_and_read_it(scene: Scene) {
    let mut client = scene.connect().await;
    let made = client.ask("POST", "/api/accounts", JSON, of("Alice", PASSWORD)).await;
    assert_eq!((made.status, &made.json()["name"]), (201, &json!("alice")), "{}", made.text());
    let begun = client.ask("POST", "/api/sessions", JSON, of("alice", PASSWORD)).await;
    assert_eq!((begun.status, &begun.json()["account"]), (201, &json!("alice")));
    assert_eq!(begun.field("Cache-Control"), Some("no-store"));
    let credentials = format!("Authorization: Bearer {}\r\n", begun.json()["token"].as_str().unwrap());
    let put = client.ask("PUT", "/files/a.txt", &credentials, "hello").await;
    assert_eq!((put.status, put.field("Location")), (201, Some("/files/a.txt")), "{}", put.text());
    let got = client.get_with("/files/a.txt", &credentials).await;
    assert_eq!((got.status, &*got.text(), got.field("ETag")), (200, "hello", put.field("ETag")));
    assert_eq!(scene.home("alice")["a.txt"].as_deref(), Some(&b"hello"[..]));
    assert!(scene.pending("alice").is_empty());
}

async fn a_name_is_given_once(scene: Scene) {
    let mut client = scene.connect().await;
    assert_eq!(client.ask("POST", "/api/accounts", JSON, of("alice", PASSWORD)).await.status, 201);
    for same in ["alice", "ALICE"] {
        let detail = client.ask("POST", "/api/accounts", JSON, of(same, "another one")).await.problem(409);
        assert!(detail.contains("Choose another"), "{detail}");
    }
    assert_eq!(client.ask("POST", "/api/sessions", JSON, of("alice", PASSWORD)).await.status, 201);
}

async fn a_malformed_name_or_password_is_refused(scene: Scene) {
    let mut client = scene.connect().await;
    let long = "a".repeat(65);
    for name in ["", ".", "..", "a/b", "../a", "-a", "a b", "a\0", "é", &long] {
        client.ask("POST", "/api/accounts", JSON, of(name, PASSWORD)).await.problem(400);
    }
    for password in ["", "short"] {
        client.ask("POST", "/api/accounts", JSON, of("alice", password)).await.problem(400);
    }
    assert_eq!(client.ask("POST", "/api/sessions", JSON, of("..", PASSWORD)).await.status, 401);
}

async fn a_body_that_is_not_what_is_expected_is_refused(scene: Scene) {
    let mut client = scene.connect().await;
    let more = json!({ "name": "alice", "password": PASSWORD, "admin": true }).to_string();
    let twice = r#"{"name":"a1","name":"a2","password":"correct horse"}"#;
    let (deep, list) = ("[".repeat(4_000), json!(["alice", PASSWORD]).to_string());
    let other_kinds = ["", "{}", "[]", "null", "{\"name\":1,\"password\":2}", "{", "\u{feff}{}"];
    for body in other_kinds.into_iter().chain([&*more, twice, &deep, &list]) {
        client.ask("POST", "/api/accounts", JSON, body).await.problem(400);
    }
    let charset = "Content-Type: Application/JSON; charset=utf-8\r\n";
    assert_eq!(client.ask("POST", "/api/accounts", charset, of("alice", PASSWORD)).await.status, 201);
    for target in ["/api/accounts", "/api/sessions"] {
        let refused = client.ask("POST", target, JSON, of("bob", &"x".repeat(5_000))).await;
        assert!(refused.problem(413).contains("4 KiB"));
        client = scene.connect().await;
    }
    // The longest password, as a program writes it that sends ASCII only.
    let password = "\\u00e9".repeat(512);
    let body = format!("{{\"name\":\"bob\",\"password\":\"{password}\"}}");
    assert_eq!(client.ask("POST", "/api/accounts", JSON, body).await.status, 201);
}

/// No type, and those that an HTML form can send without a CORS preflight; the second is also the default
/// of `curl -d`.
const OTHER_TYPES: [&str; 4] = [
    "",
    "Content-Type: application/x-www-form-urlencoded\r\n",
    "Content-Type: text/plain\r\n",
    "Content-Type: multipart/form-data; boundary=application/json\r\n",
];

async fn a_program_need_not_say_that_its_body_is_json(scene: Scene) {
    let mut client = scene.connect().await;
    for (at, fields) in OTHER_TYPES.into_iter().enumerate() {
        let made = client.ask("POST", "/api/accounts", fields, of(&format!("name{at}"), PASSWORD)).await;
        assert_eq!(made.status, 201, "{fields}: {}", made.text());
        client.ask("POST", "/api/accounts", fields, "name=alice&password=correct+horse").await.problem(400);
    }
}

async fn a_page_must_say_that_its_body_is_json(scene: Scene) {
    let mut client = scene.connect().await;
    for page in [
        "Origin: https://evil.example\r\n",
        "Origin: null\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
        "Origin: \r\n",
    ] {
        for fields in OTHER_TYPES {
            let fields = format!("{page}{fields}");
            let answer = client.ask("POST", "/api/accounts", &fields, of("alice", PASSWORD)).await;
            assert!(answer.problem(415).contains("application/json"), "{fields}");
        }
    }
    let own = format!("Origin: http://test\r\nSec-Fetch-Site: same-origin\r\n{JSON}");
    assert_eq!(client.ask("POST", "/api/accounts", &own, of("alice", PASSWORD)).await.status, 201);
}

async fn whoami_tells_the_account_and_what_it_holds(scene: Scene) {
    let quota = Quota { bytes: Some(1000), files: Some(9) };
    let may = Permissions { share: false, ..Permissions::default() };
    let mut alice = Person::with(&scene, "alice", quota, may).await;
    assert_eq!(alice.ask("MKCOL", "/files/docs", "", "").await.status, 201);
    assert_eq!(alice.put("/files/docs/a", "12345").await.status, 201);
    assert_eq!(alice.put("/files/b", "1").await.status, 201);
    let response = alice.get("/api/whoami").await;
    assert_eq!((response.status, response.field("Cache-Control")), (200, Some("no-store")));
    let wanted = json!({
        "account": "alice",
        "quota": { "bytes": 1000, "files": 9 },
        "usage": { "bytes": 6, "files": 2, "folders": 1 },
        "trash": { "bytes": 0, "files": 0, "folders": 0 },
        "permissions": {
            "read": true, "write": true, "delete": true, "share": false, "operate": false, "parents": false,
            "administer": false
        },
    });
    assert_eq!(response.json(), wanted);
}

async fn a_new_password_ends_all_other_sessions(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut other = Person::again(&scene, "alice").await;
    let wrong = json!({ "old": "not this one", "new": "a better horse" });
    let detail = alice.send("PUT", "/api/password", &wrong).await.problem(403);
    assert!(detail.contains("old password"), "{detail}");
    assert_eq!(other.get("/api/whoami").await.status, 200);
    let short = json!({ "old": PASSWORD, "new": "short" });
    alice.send("PUT", "/api/password", &short).await.problem(400);
    let right = json!({ "old": PASSWORD, "new": "a better horse" });
    assert_eq!(alice.send("PUT", "/api/password", &right).await.status, 204);
    other.get("/api/whoami").await.problem(401);
    assert_eq!(alice.get("/api/whoami").await.status, 200);
    let mut client = scene.connect().await;
    assert_eq!(client.ask("POST", "/api/sessions", JSON, of("alice", PASSWORD)).await.status, 401);
    assert_eq!(client.ask("POST", "/api/sessions", JSON, of("alice", "a better horse")).await.status, 201);
}

async fn an_operation_without_its_permission_is_refused(scene: Scene) {
    let auth = &scene.accounts().auth;
    let mut alice = Person::new(&scene, "alice").await;
    assert_eq!(alice.put("/files/a", "old").await.status, 201);
    let none = Permissions::NONE;
    let may_add = Permissions { write: true, ..none };
    auth.set_permissions(&scene.io, "alice", may_add).await.unwrap();
    alice.get("/files/a").await.problem(403);
    alice.delete("/files/a").await.problem(403);
    let detail = alice.put("/files/a", "new").await.problem(403);
    assert!(detail.contains("replace"), "{detail}");
    assert_eq!(alice.put("/files/b", "new").await.status, 201);
    let share = json!({ "path": "a", "with": "alice", "permission": "read" });
    alice.send("POST", "/api/shares", &share).await.problem(403);
    auth.set_permissions(&scene.io, "alice", none).await.unwrap();
    for (method, target) in [("PUT", "/files/c"), ("MKCOL", "/files/d"), ("GET", "/files/")] {
        alice.ask(method, target, "", "").await.problem(403);
    }
    assert_eq!(scene.home("alice")["a"].as_deref(), Some(&b"old"[..]));
    auth.set_enabled(&scene.io, "alice", false).await.unwrap();
    alice.get("/files/a").await.problem(401);
}

behaviours!(scenario and remote and tls;
    a_new_account_can_log_in_store_a_file_and_read_it,
    a_name_is_given_once,
    a_malformed_name_or_password_is_refused,
    a_body_that_is_not_what_is_expected_is_refused,
    a_program_need_not_say_that_its_body_is_json,
    a_page_must_say_that_its_body_is_json,
    whoami_tells_the_account_and_what_it_holds,
    a_new_password_ends_all_other_sessions,
    an_operation_without_its_permission_is_refused,
);

fn closed() -> Scenario {
    let settings = plimsoll_auth::Settings { sign_up: SignUp::Closed, ..settings() };
    Scenario { accounts: Some(settings), ..Scenario::default() }
}

#[test]
fn a_closed_sign_up_refuses_new_accounts() {
    under(Engine::Simulator, closed, |scene| async move {
        let mut client = scene.connect().await;
        let detail = client.ask("POST", "/api/accounts", JSON, of("alice", PASSWORD)).await.problem(403);
        assert!(detail.contains("Ask the server's operator"), "{detail}");
    });
}
