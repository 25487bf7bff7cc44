//! The API as a whole: accepted and refused requests, its metrics, and its description.

use plimsoll_auth::{Permissions, Quota};
use plimsoll_tests::accounts::{PASSWORD, settings};
use plimsoll_tests::{AS_OPERATOR, Person, Scenario, Scene, Tree, behaviours};
use serde_json::Value;

fn scenario() -> Scenario {
    let tree = Tree::new().file("in.txt", "in the site\n").file("api/whoami", "never served");
    Scenario { tree, accounts: Some(settings()), ..Scenario::default() }
}

async fn every_resource_says_what_it_takes(scene: Scene) {
    let mut client = scene.connect().await;
    for (target, methods) in [
        ("/api/accounts", "POST, OPTIONS"),
        ("/api/sessions", "POST, OPTIONS"),
        ("/api/sessions/current", "DELETE, OPTIONS"),
        ("/api/whoami", "GET, HEAD, OPTIONS"),
        ("/api/password", "PUT, OPTIONS"),
        ("/api/shares", "GET, HEAD, POST, OPTIONS"),
        ("/api/shares/x", "DELETE, OPTIONS"),
        ("/api/shared", "GET, HEAD, OPTIONS"),
        ("/api/links", "GET, HEAD, POST, OPTIONS"),
        ("/api/links/x", "DELETE, OPTIONS"),
        ("/api/trash", "GET, HEAD, DELETE, OPTIONS"),
        ("/api/trash/x", "DELETE, OPTIONS"),
        ("/api/trash/x/restore", "POST, OPTIONS"),
        ("/api/operate/accounts", "GET, HEAD, OPTIONS"),
        ("/api/operate/accounts/x", "GET, HEAD, PATCH, OPTIONS"),
        ("/api/operate/accounts/x/sessions", "DELETE, OPTIONS"),
        ("/api/operate/accounts/x/shares", "GET, HEAD, OPTIONS"),
        ("/api/operate/accounts/x/shares/y", "DELETE, OPTIONS"),
        ("/api/operate/accounts/x/links", "GET, HEAD, OPTIONS"),
        ("/api/operate/accounts/x/links/y", "DELETE, OPTIONS"),
        ("/api/openapi.json", "GET, HEAD, OPTIONS"),
        (
            "/files/",
            "GET, HEAD, PUT, POST, DELETE, MKCOL, MOVE, COPY, PROPFIND, PROPPATCH, LOCK, UNLOCK, OPTIONS",
        ),
        ("/files/a", "GET, HEAD, PUT, DELETE, MKCOL, MOVE, COPY, PROPFIND, PROPPATCH, LOCK, UNLOCK, OPTIONS"),
        ("/", "GET, HEAD, PROPFIND, OPTIONS"),
        ("/shared/", "GET, HEAD, PROPFIND, OPTIONS"),
        (
            "/shared/bob/a",
            "GET, HEAD, PUT, DELETE, MKCOL, MOVE, COPY, PROPFIND, PROPPATCH, LOCK, UNLOCK, OPTIONS",
        ),
        ("/uploads", "GET, HEAD, POST, OPTIONS"),
        ("/uploads/x", "HEAD, PATCH, DELETE, OPTIONS"),
        ("/app/", "GET, HEAD, OPTIONS"),
        ("/app/login", "GET, HEAD, POST, OPTIONS"),
        ("/app/signup", "GET, HEAD, POST, OPTIONS"),
        ("/app/logout", "POST, OPTIONS"),
        ("/app/account", "GET, HEAD, OPTIONS"),
        ("/app/password", "GET, HEAD, POST, OPTIONS"),
        ("/app/language", "POST, OPTIONS"),
        ("/app/entry", "GET, HEAD, OPTIONS"),
        ("/app/shares", "GET, HEAD, OPTIONS"),
        ("/app/trash", "GET, HEAD, OPTIONS"),
        ("/app/do", "POST, OPTIONS"),
        ("/metrics", "GET, HEAD, OPTIONS"),
        ("/in.txt", "GET, HEAD, OPTIONS"),
    ] {
        let response = client.ask("OPTIONS", target, "", "").await;
        assert_eq!((response.status, response.field("Allow")), (204, Some(methods)), "{target}");
        for method in ["POST", "PATCH", "PROPFIND", "TRACE", "PUT"] {
            if methods.contains(method) {
                continue;
            }
            let refused = client.ask(method, target, "", "").await;
            assert!(!refused.problem(405).is_empty());
            assert_eq!(refused.field("Allow"), Some(methods), "{method} {target}");
        }
        client.ask("BREW", target, "", "").await.problem(501);
    }
    assert_eq!(client.ask("OPTIONS", "*", "", "").await.status, 204);
    assert_eq!(client.get("/in.txt").await.text(), "in the site\n");
}

async fn an_unknown_api_path_is_never_served_from_a_site(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for target in [
        "/api",
        "/api/",
        "/api/x",
        "/api/accounts/",
        "/api/shares/",
        "/api/shares/a/b",
        "/api/trash/",
        "/api/trash/a/b",
        "/api/operate",
        "/api/operate/accounts/",
        "/api/operate/accounts/a/b",
    ] {
        for method in ["GET", "POST", "DELETE", "OPTIONS"] {
            alice.ask(method, target, "", "").await.problem(404);
        }
    }
    assert_eq!(alice.get("/healthz").await.text(), "ok\n");
    assert_eq!(alice.client.status().await.status, 200);
    assert_eq!(alice.get("/%61pi/whoami").await.json()["account"], "alice");
}

async fn a_path_that_cannot_be_is_refused_whatever_is_asked_of_it(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for target in
        ["/files/../in.txt", "/files/%2e%2e/in.txt", "/files/a%2f..%2fb", "/files/%00", "/api/./whoami"]
    {
        for method in ["GET", "PUT", "DELETE", "MKCOL", "MOVE", "COPY", "POST"] {
            alice.ask(method, target, "", "").await.problem(400);
        }
    }
}

async fn errors_are_pages_for_people_and_are_not_kept(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let browser = "Accept: text/html,*/*;q=0.8\r\n";
    let page = alice.ask("GET", "/files/missing", browser, "").await;
    assert_eq!((page.status, page.field("Content-Type")), (404, Some("text/html; charset=utf-8")));
    assert!(page.text().contains("Check the path"));
    let problem = alice.get("/files/missing").await;
    assert!(problem.problem(404).contains("Check the path"));
    for answer in [page, problem] {
        assert_eq!((answer.field("Cache-Control"), answer.field("Vary")), (Some("no-store"), Some("Accept")));
    }
}

async fn metrics_have_what_was_done(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "hello").await;
    let counted = alice.client.get_with("/metrics", AS_OPERATOR).await;
    assert_eq!(counted.status, 200);
    assert!(counted.field("Content-Type").unwrap().starts_with("text/plain; version=0.0.4"));
    let text = counted.text();
    let upload = "{protocol=\"http\",operation=\"upload\"}";
    for line in [
        &format!("plimsoll_operation_bytes_total{upload} 5"),
        &format!("plimsoll_operation_duration_seconds_count{upload} 1"),
        "plimsoll_connections_open 1",
        "# TYPE plimsoll_answers_total counter",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (_, value) = line.rsplit_once(' ').expect("a name and a value");
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}

/// Returns a target for a path template of the description.
fn target_of(path: &str, missing: bool) -> String {
    let (name, id) = if missing { ("missing", "0".repeat(32)) } else { ("a", "f".repeat(32)) };
    path.replace("{path}", name).replace("{owner}", "bob").replace("{name}", "bob").replace("{id}", &id)
}

/// Returns the body that the description gives as an example.
fn example_of(operation: &Value) -> (String, String) {
    let Some(content) = operation["requestBody"]["content"].as_object() else { return Default::default() };
    let (media, described) = content.iter().next().expect("a media type");
    let body = match &described["example"] {
        Value::Null => "hello".to_owned(),
        example => example.to_string(),
    };
    (format!("Content-Type: {media}\r\n"), body)
}

/// Returns the fields that the description requires, with its examples.
fn fields_of(operation: &Value) -> String {
    let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
    let needed = parameters.iter().filter(|one| one["in"] == "header" && one["required"] == true);
    let line = |one: &Value| {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{}: {}\r\n", text(&one["name"]), text(&one["example"]))
    };
    needed.map(line).collect()
}

async fn the_description_says_what_the_server_does(scene: Scene) {
    let auth = &scene.accounts().auth;
    let mut alice = Person::new(&scene, "alice").await;
    let _bob = Person::with(&scene, "bob", Quota::default(), Permissions::default()).await;
    let described = alice.get("/api/openapi.json").await;
    assert_eq!(described.field("Content-Type"), Some("application/json"));
    let described = described.json();
    for (path, item) in described["paths"].as_object().expect("paths") {
        let allowed = scene.connect().await.ask("OPTIONS", &target_of(path, false), "", "").await;
        let allowed = allowed.field("Allow").map(str::to_owned);
        let mut methods: Vec<String> = Vec::new();
        for (method, operation) in
            item.as_object().unwrap().iter().filter(|(name, _)| !name.starts_with("x-"))
        {
            let method = method.to_uppercase();
            let (fields, body) = example_of(operation);
            let fields = format!("{}{fields}", fields_of(operation));
            for (missing, known) in [(false, true), (true, true), (false, false)] {
                let target = target_of(path, missing);
                let answer = if known {
                    // A new session for each request, because the one before may have ended it.
                    auth.set_password(&scene.io, "alice", &PASSWORD.into()).await.unwrap();
                    let mut alice = Person::again(&scene, "alice").await;
                    alice.ask(&method, &target, &fields, &body).await
                } else {
                    scene.connect().await.ask(&method, &target, &fields, &body).await
                };
                let status = answer.status.to_string();
                assert!(
                    operation["responses"].get(&status).is_some(),
                    "{method} {target} answers {status}, which the description does not have: {}",
                    String::from_utf8_lossy(&answer.body)
                );
                assert_ne!(answer.status / 100, 5, "{method} {target}");
            }
            methods.push(method);
        }
        let more = item["x-methods"].as_array().cloned().unwrap_or_default();
        methods.extend(more.iter().map(|method| method.as_str().unwrap().to_owned()));
        if let Some(allowed) = allowed {
            let mut allowed: Vec<&str> = allowed.split(", ").filter(|method| *method != "OPTIONS").collect();
            methods.sort_unstable();
            allowed.sort_unstable();
            assert_eq!(methods, allowed, "{path}");
        }
    }
}

behaviours!(scenario and remote and tls;
    every_resource_says_what_it_takes,
    an_unknown_api_path_is_never_served_from_a_site,
    a_path_that_cannot_be_is_refused_whatever_is_asked_of_it,
    errors_are_pages_for_people_and_are_not_kept,
    metrics_have_what_was_done,
    the_description_says_what_the_server_does,
);
