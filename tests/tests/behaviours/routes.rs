//! Routes: the server's own paths, the reserved prefixes, and sites at their prefixes.

use plimsoll_tests::{Answer, Scenario, Scene, Tree, behaviours};

/// Prefixes reserved for the server, even if a site has files at them.
const RESERVED: [&str; 7] = ["api", "files", "shared", "uploads", "healthz", "readyz", "metrics"];

fn scenario() -> Scenario {
    let tree = RESERVED.iter().fold(Tree::new(), |tree, name| {
        tree.file(format!("{name}/x"), "never served").file(format!("{name}x"), "served")
    });
    let tree = tree
        .file("index.html", "<p>the site</p>")
        .file("in.txt", "in the site\n")
        .file("asides/in.txt", "beside it\n")
        .file("aside/in.txt", "aside\n")
        .file("aside/deep/in.txt", "deep aside\n")
        .link("aside/out.txt", "../in.txt")
        .file("aside/api/x", "api of aside\n")
        .file("aside/healthz", "not the server's\n");
    Scenario { tree, ..Scenario::default() }
}

/// Returns all fields except `Date` and `Content-Length`, which depends on the request's counters.
fn lasting(answer: &Answer) -> Vec<&(String, String)> {
    answer.fields.iter().filter(|(name, _)| name != "Date" && name != "Content-Length").collect()
}

async fn healthz_says_that_the_server_lives(scene: Scene) {
    let mut client = scene.connect().await;
    for target in ["/healthz", "/healthz?verbose", "/%68ealthz", "http://test/healthz"] {
        let answer = client.get(target).await;
        assert_eq!((answer.status, &*answer.text()), (200, "ok\n"), "{target}");
        assert_eq!(answer.field("Content-Type"), Some("text/plain"));
        assert_eq!(answer.field("Cache-Control"), Some("no-store"));
    }
}

async fn readyz_says_that_the_server_takes_work(scene: Scene) {
    let mut client = scene.connect().await;
    for target in ["/readyz", "/readyz?verbose", "/%72eadyz"] {
        let answer = client.get(target).await;
        assert_eq!((answer.status, &*answer.text()), (200, "ready\n"), "{target}");
        assert_eq!(answer.field("Cache-Control"), Some("no-store"));
    }
}

async fn the_status_tells_the_engine_the_tiers_and_the_load(scene: Scene) {
    let answer = scene.connect().await.status().await;
    assert_eq!((answer.status, answer.field("Content-Type")), (200, Some("application/json")));
    assert_eq!(answer.field("Cache-Control"), Some("no-store"));
    let status = answer.json();
    assert_eq!((&status["version"], &status["engine"]), (&"0".into(), &"test".into()));
    assert_eq!((&status["threads"], &status["tiers"]["front"]), (&1.into(), &"here".into()));
    for (name, value) in [
        ("connections_open", 1),
        ("connections_max", 2),
        ("connections_accepted", 3),
        ("connections_panicked", 0),
        ("uptime_seconds", 4),
    ] {
        assert_eq!(status["load"][name], value, "{name}");
    }
    assert_eq!(status["load"]["draining"], false);
    assert_eq!(status["dropped_log_lines"], 0);
    assert_eq!(status["lab"], serde_json::json!([]), "nothing that only a laboratory wants is on");
}

async fn the_status_counts_answers_by_class_and_their_bytes(scene: Scene) {
    let mut client = scene.connect().await;
    let before = client.status().await.json();
    assert_eq!(before["answers"], serde_json::json!({ "2xx": 0, "3xx": 0, "4xx": 0, "5xx": 0 }));
    assert_eq!(before["sent_bytes"], 0);
    let mut bytes = client.status().await.body.len();
    // The first answer was counted before this point.
    for (target, times) in [("/in.txt", 3), ("/asides", 2), ("/missing", 4)] {
        for _ in 0..times {
            bytes += client.get(target).await.body.len();
        }
    }
    client.head_with("/in.txt", "").await;
    let status = client.status().await.json();
    assert_eq!(status["answers"], serde_json::json!({ "2xx": 6, "3xx": 2, "4xx": 4, "5xx": 0 }));
    let first = serde_json::to_vec(&before).unwrap().len();
    assert_eq!(status["sent_bytes"], first + bytes);
}

async fn a_reserved_prefix_never_falls_through_to_a_site(scene: Scene) {
    let mut client = scene.connect().await;
    for name in RESERVED {
        let encoded = format!("/%{:02x}{}/x", name.as_bytes()[0], &name[1..]);
        for target in [format!("/{name}/x"), format!("/{name}/"), encoded, format!("http://h/{name}/x?y")] {
            client.get(&target).await.problem(404);
            let page = client.get_with(&target, "Accept: text/html\r\n").await;
            assert_eq!(page.status, 404, "{target}");
        }
        if !["healthz", "readyz", "metrics"].contains(&name) {
            client.get(&format!("/{name}")).await.problem(404);
        }
    }
}

async fn a_name_that_only_begins_like_a_reserved_one_is_the_sites(scene: Scene) {
    let mut client = scene.connect().await;
    for name in RESERVED {
        let target = format!("/{name}x");
        assert_eq!(client.get(&target).await.text(), "served", "{target}");
        client.get(&format!("/{}/x", name.to_uppercase())).await.problem(404);
    }
}

async fn the_longest_prefix_of_a_site_wins(scene: Scene) {
    let mut client = scene.connect().await;
    for (target, text) in [
        ("/", "<p>the site</p>"),
        ("/in.txt", "in the site\n"),
        ("/aside/in.txt", "aside\n"),
        ("/%61side/deep/in.txt", "deep aside\n"),
        ("/asides/in.txt", "beside it\n"),
        ("http://elsewhere.example/aside/in.txt", "aside\n"),
        ("http://elsewhere.example", "<p>the site</p>"),
    ] {
        assert_eq!(client.get(target).await.text(), text, "{target}");
    }
    // A lookup does not fall back to the shorter prefix, in whose root this link would stay.
    client.get("/aside/out.txt").await.problem(404);
}

async fn a_reserved_name_below_another_sites_prefix_is_that_sites(scene: Scene) {
    let mut client = scene.connect().await;
    assert_eq!(client.get("/aside/api/x").await.text(), "api of aside\n");
    assert_eq!(client.get("/aside/healthz").await.text(), "not the server's\n");
}

async fn a_sites_prefix_without_its_slash_leads_to_the_one_with_it(scene: Scene) {
    let mut client = scene.connect().await;
    for (target, location) in [
        ("/aside", "/aside/"),
        ("/aside?sort=size", "/aside/?sort=size"),
        ("/aside/deep", "/aside/deep/"),
        ("http://elsewhere.example/aside", "/aside/"),
    ] {
        let answer = client.get(target).await;
        assert_eq!((answer.status, answer.field("Location")), (301, Some(location)), "{target}");
    }
    let listing = client.get("/aside/?format=json").await.json();
    assert_eq!(listing["path"], "/aside/");
    let names: Vec<&str> =
        listing["entries"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["api", "deep", "healthz", "in.txt"]);
}

async fn a_path_with_adjacent_slashes_is_redirected_to_the_path_with_single_ones(scene: Scene) {
    let mut client = scene.connect().await;
    for (target, location) in [
        ("//in.txt", "/in.txt"),
        ("//", "/"),
        ("/aside//in.txt?a//b", "/aside/in.txt?a//b"),
        ("//aside///deep//", "/aside/deep/"),
        // A proxy that protects these by their paths protects them still.
        ("//metrics", "/metrics"),
        ("/api//status", "/api/status"),
        ("//files/x", "/files/x"),
        // The location stays on this server.
        ("//elsewhere.example/%2e%2ex", "/elsewhere.example/..x"),
        ("http://elsewhere.example//in.txt", "/in.txt"),
    ] {
        for answer in [client.get(target).await, client.ask("PUT", target, "", "x").await] {
            assert_eq!((answer.status, answer.field("Location")), (308, Some(location)), "{target}");
        }
    }
}

async fn head_is_answered_wherever_get_is(scene: Scene) {
    let mut client = scene.connect().await;
    for target in ["/healthz", "/api/status", "/api/x", "/aside", "/aside/", "/aside/in.txt", "/", "/a b%"] {
        let target = target.replace(' ', "%20");
        let (get, head) = (client.get(&target).await, client.head_with(&target, "").await);
        assert_eq!((head.status, lasting(&head)), (get.status, lasting(&get)), "{target}");
        assert!(head.field("Content-Length").is_some(), "{target}");
    }
    assert_eq!(client.get("/healthz").await.text(), "ok\n");
}

behaviours!(scenario and tls;
    healthz_says_that_the_server_lives,
    readyz_says_that_the_server_takes_work,
    the_status_tells_the_engine_the_tiers_and_the_load,
    the_status_counts_answers_by_class_and_their_bytes,
    a_reserved_prefix_never_falls_through_to_a_site,
    a_name_that_only_begins_like_a_reserved_one_is_the_sites,
    the_longest_prefix_of_a_site_wins,
    a_reserved_name_below_another_sites_prefix_is_that_sites,
    a_sites_prefix_without_its_slash_leads_to_the_one_with_it,
    a_path_with_adjacent_slashes_is_redirected_to_the_path_with_single_ones,
    head_is_answered_wherever_get_is,
);
