//! The operator's API: an account with the right `administer` sees and changes other accounts, and no other
//! account does.

use plimsoll_auth::limits::ACCOUNTS_PER_PAGE_MAX;
use plimsoll_auth::{Permissions, Quota, Secret};
use plimsoll_tests::accounts::{PASSWORD, settings};
use plimsoll_tests::{Person, Scenario, Scene, behaviours};
use serde_json::{Value, json};

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), ..Scenario::default() }
}

/// The password of olga.
const BASIC: &str = "Authorization: Basic b2xnYTpjb3JyZWN0IGhvcnNl\r\n";

/// Every resource of the API, with a method of it and a body.
const REQUESTS: [(&str, &str, &str); 8] = [
    ("GET", "/api/operate/accounts", ""),
    ("GET", "/api/operate/accounts/alice", ""),
    ("PATCH", "/api/operate/accounts/alice", "{\"enabled\":false}"),
    ("DELETE", "/api/operate/accounts/alice/sessions", ""),
    ("GET", "/api/operate/accounts/alice/shares", ""),
    ("DELETE", "/api/operate/accounts/alice/shares/x", ""),
    ("GET", "/api/operate/accounts/alice/links", ""),
    ("DELETE", "/api/operate/accounts/alice/links/x", ""),
];

async fn operator(scene: &Scene, name: &str) -> Person {
    let may = Permissions { administer: true, ..Permissions::default() };
    Person::with(scene, name, Quota::default(), may).await
}

fn named(page: &Value) -> Vec<&str> {
    let accounts = page["accounts"].as_array().unwrap();
    accounts.iter().map(|account| account["name"].as_str().unwrap()).collect()
}

async fn only_the_session_of_an_account_with_the_right_administers(scene: Scene) {
    let (mut alice, mut olga) = (Person::new(&scene, "alice").await, operator(&scene, "olga").await);
    let monitoring = Permissions { operate: true, ..Permissions::default() };
    scene.accounts().auth.set_permissions(&scene.io, "alice", monitoring).await.unwrap();
    for (method, target, body) in REQUESTS {
        scene.connect().await.ask(method, target, "", body).await.problem(401);
        let detail = alice.ask(method, target, "", body).await.problem(403);
        assert!(detail.contains("administer"), "{detail}");
        let detail = olga.client.ask(method, target, BASIC, body).await.problem(403);
        assert!(detail.contains("token"), "{detail}");
    }
    assert_eq!(alice.get("/api/whoami").await.status, 200);
    assert_eq!(named(&olga.get("/api/operate/accounts").await.json()), ["alice", "olga"]);
}

async fn a_right_to_administer_that_is_taken_away_ends_at_the_next_request(scene: Scene) {
    let (_alice, mut olga) = (Person::new(&scene, "alice").await, operator(&scene, "olga").await);
    assert_eq!(olga.get("/api/operate/accounts").await.status, 200);
    let auth = &scene.accounts().auth;
    auth.set_permissions(&scene.io, "olga", Permissions::default()).await.unwrap();
    for (method, target, body) in REQUESTS {
        olga.ask(method, target, "", body).await.problem(403);
    }
    assert!(auth.account(&scene.io, "alice").await.unwrap().enabled);
}

async fn an_operator_changes_an_account_and_that_applies_at_once(scene: Scene) {
    let (mut alice, mut olga) = (Person::new(&scene, "alice").await, operator(&scene, "olga").await);
    alice.put("/files/a", "hello").await;
    let target = "/api/operate/accounts/ALICE";
    let shown = olga.get(target).await.json();
    assert_eq!((&shown["usage"]["bytes"], &shown["enabled"]), (&json!(5), &json!(true)));
    assert_eq!(shown["quota"], json!({ "bytes": null, "files": null }));
    let limited = olga.send("PATCH", target, &json!({ "quota": { "bytes": 6, "files": null } })).await;
    assert_eq!((limited.status, &limited.json()["quota"]["bytes"]), (200, &json!(6)));
    alice.put("/files/b", "hello").await.problem(507);
    let mut may = shown["permissions"].clone();
    may["write"] = json!(false);
    assert_eq!(olga.send("PATCH", target, &json!({ "permissions": may })).await.status, 200);
    alice.put("/files/b", "h").await.problem(403);
    assert_eq!(olga.send("PATCH", target, &json!({ "enabled": false })).await.json()["enabled"], false);
    alice.get("/files/a").await.problem(401);
    let auth = &scene.accounts().auth;
    let refused = auth.log_in(&scene.io, "alice", &Secret::from(PASSWORD), &plimsoll_io::Peer::Unix).await;
    assert!(refused.is_err());
    assert_eq!(olga.send("PATCH", target, &json!({ "enabled": true })).await.status, 200);
    assert_eq!(Person::again(&scene, "alice").await.get("/files/a").await.text(), "hello");
}

async fn an_operator_ends_all_sessions_of_an_account_and_its_password_stays(scene: Scene) {
    let (mut alice, mut olga) = (Person::new(&scene, "alice").await, operator(&scene, "olga").await);
    let mut second = Person::again(&scene, "alice").await;
    assert_eq!(second.get("/api/whoami").await.status, 200);
    assert_eq!(olga.delete("/api/operate/accounts/alice/sessions").await.status, 204);
    for person in [&mut alice, &mut second] {
        person.get("/api/whoami").await.problem(401);
    }
    assert_eq!(Person::again(&scene, "alice").await.get("/api/whoami").await.status, 200);
    assert_eq!(olga.get("/api/whoami").await.status, 200);
    olga.delete("/api/operate/accounts/carol/sessions").await.problem(404);
}

async fn an_operator_ends_shares_and_links_of_an_account(scene: Scene) {
    let (mut alice, mut olga) = (Person::new(&scene, "alice").await, operator(&scene, "olga").await);
    let mut bob = Person::new(&scene, "bob").await;
    alice.put("/files/a", "hello").await;
    let share = alice.share("/a", "bob", "read").await;
    let made = alice.send("POST", "/api/links", &json!({ "path": "/a", "permission": "read" })).await.json();
    let token = made["url"].as_str().unwrap().rsplit_once("/s/").unwrap().1.to_owned();
    let shares = olga.get("/api/operate/accounts/alice/shares").await.json();
    assert_eq!((&shares["shares"][0]["id"], &shares["shares"][0]["with"]), (&json!(share), &json!("bob")));
    let links = olga.get("/api/operate/accounts/alice/links").await;
    assert_eq!(links.json()["links"][0]["id"], made["id"]);
    assert!(!links.text().contains(&token), "the token is shown once, to its owner");
    assert_eq!(bob.get("/shared/alice/a").await.text(), "hello");
    assert_eq!(bob.client.get(&format!("/s/{token}")).await.status, 200);
    let id = made["id"].as_str().unwrap();
    for target in [format!("shares/{share}"), format!("links/{id}")] {
        // By the name of its owner only.
        olga.delete(&format!("/api/operate/accounts/bob/{target}")).await.problem(404);
        assert_eq!(olga.delete(&format!("/api/operate/accounts/alice/{target}")).await.status, 204);
        olga.delete(&format!("/api/operate/accounts/alice/{target}")).await.problem(404);
    }
    bob.get("/shared/alice/a").await.problem(404);
    assert_eq!(bob.client.get(&format!("/s/{token}")).await.status, 404);
}

async fn an_operator_cannot_lock_itself_out(scene: Scene) {
    let mut olga = operator(&scene, "olga").await;
    let may = olga.get("/api/whoami").await.json()["permissions"].clone();
    let mut less = may.clone();
    less["administer"] = json!(false);
    for change in [json!({ "enabled": false }), json!({ "permissions": less })] {
        olga.send("PATCH", "/api/operate/accounts/olga", &change).await.problem(409);
    }
    assert_eq!(olga.get("/api/whoami").await.json()["permissions"], may);
}

async fn a_change_that_is_not_understood_changes_nothing(scene: Scene) {
    let (_alice, mut olga) = (Person::new(&scene, "alice").await, operator(&scene, "olga").await);
    let before = olga.get("/api/operate/accounts/alice").await.json();
    for change in [
        json!({}),
        json!({ "enabled": 1 }),
        json!({ "name": "bob" }),
        json!({ "quota": { "bytes": 1 } }),
        json!({ "quota": { "bytes": -1, "files": null } }),
        json!({ "permissions": { "read": true } }),
        json!({ "enabled": false, "more": 1 }),
    ] {
        olga.send("PATCH", "/api/operate/accounts/alice", &change).await.problem(400);
    }
    assert_eq!(olga.get("/api/operate/accounts/alice").await.json(), before);
    olga.send("PATCH", "/api/operate/accounts/carol", &json!({ "enabled": false })).await.problem(404);
}

async fn a_page_of_another_site_changes_no_account(scene: Scene) {
    let (_alice, olga) = (Person::new(&scene, "alice").await, operator(&scene, "olga").await);
    let name = if scene.scheme() == "https" { "__Host-plimsoll" } else { "plimsoll" };
    let cookie = format!("Cookie: {name}={}\r\nContent-Type: application/json\r\n", olga.token);
    let mut client = scene.connect().await;
    for (method, target, body) in REQUESTS.into_iter().filter(|(method, ..)| *method != "GET") {
        for sender in ["Sec-Fetch-Site: cross-site\r\n", "Origin: https://evil.example\r\n", ""] {
            let detail = client.ask(method, target, &format!("{cookie}{sender}"), body).await.problem(403);
            assert!(detail.contains("another site"), "{detail}");
        }
    }
    assert!(scene.accounts().auth.account(&scene.io, "alice").await.unwrap().enabled);
    let own = format!("{cookie}Sec-Fetch-Site: same-origin\r\n");
    let ended = client.ask("DELETE", "/api/operate/accounts/alice/sessions", &own, "").await;
    assert_eq!(ended.status, 204);
}

async fn accounts_are_listed_page_by_page(scene: Scene) {
    let mut olga = operator(&scene, "olga").await;
    for name in ["a+b", "a@b", "a-b", "zoe"] {
        Person::new(&scene, name).await;
    }
    for is_encoded in [false, true] {
        let (mut found, mut target) = (Vec::new(), "/api/operate/accounts?limit=1".to_owned());
        loop {
            let page = olga.get(&target).await.json();
            found.extend(named(&page).iter().map(|name| (*name).to_owned()));
            assert!(named(&page).len() == 1 && found.len() <= 5, "{found:?}");
            let Some(next) = page["next"].as_str() else { break };
            let encoded = next.replace('@', "%40").replace('+', "%2B");
            let next = if is_encoded { &encoded } else { next };
            target = format!("/api/operate/accounts?limit=1&after={next}");
        }
        assert_eq!(found, ["a+b", "a-b", "a@b", "olga", "zoe"]);
    }
    let max = ACCOUNTS_PER_PAGE_MAX;
    assert_eq!(olga.get(&format!("/api/operate/accounts?limit={max}")).await.status, 200);
    for limit in ["0".to_owned(), (max + 1).to_string(), "x".to_owned()] {
        olga.get(&format!("/api/operate/accounts?limit={limit}")).await.problem(400);
    }
}

async fn each_change_has_its_line_with_the_operator_the_account_and_what_it_sets(scene: Scene) {
    let (_alice, mut olga) = (Person::new(&scene, "alice").await, operator(&scene, "olga").await);
    let change = json!({ "quota": { "bytes": 6, "files": null }, "enabled": false });
    assert_eq!(olga.send("PATCH", "/api/operate/accounts/alice", &change).await.status, 200);
    assert_eq!(olga.delete("/api/operate/accounts/alice/sessions").await.status, 204);
    olga.delete("/api/operate/accounts/carol/sessions").await.problem(404);
    let mut bob = Person::new(&scene, "bob").await;
    bob.delete("/api/operate/accounts/alice/sessions").await.problem(403);
    let lines = scene.accounts().lines();
    let of = |operation: &str| lines.iter().filter(|line| line["operation"] == operation).collect::<Vec<_>>();
    let [changed] = *of("change-account") else { panic!("{lines:?}") };
    assert_eq!((&changed["account"], &changed["path"]), (&json!("olga"), &json!("alice")));
    assert_eq!(
        (&changed["to"], &changed["result"]),
        (&json!("bytes=6,files=none,enabled=false"), &json!("ok"))
    );
    let ended: Vec<_> = of("end-sessions")
        .iter()
        .map(|line| ["account", "path", "result"].map(|field| &line[field]))
        .collect();
    let wanted = [["olga", "alice", "ok"], ["olga", "carol", "not found"], ["bob", "alice", "not allowed"]];
    assert_eq!(ended, wanted);
}

behaviours!(scenario and remote and tls;
    only_the_session_of_an_account_with_the_right_administers,
    a_right_to_administer_that_is_taken_away_ends_at_the_next_request,
    an_operator_changes_an_account_and_that_applies_at_once,
    an_operator_ends_all_sessions_of_an_account_and_its_password_stays,
    an_operator_ends_shares_and_links_of_an_account,
    an_operator_cannot_lock_itself_out,
    a_change_that_is_not_understood_changes_nothing,
    a_page_of_another_site_changes_no_account,
    accounts_are_listed_page_by_page,
    each_change_has_its_line_with_the_operator_the_account_and_what_it_sets,
);
