//! Public links: files and folders for visitors without an account, who see these and nothing beside them.

use std::time::Duration;

use plimsoll_auth::{Permissions, Settings};
use plimsoll_tests::accounts::settings;
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Answer, Client, Engine, Person, Scenario, Scene, behaviours};
use serde_json::{Value, json};

mod drop;

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), ..Scenario::default() }
}

/// Creates alice with `docs/a.txt`, `docs/deep/b` and, beside them, `other` and `docs2/c`.
async fn alice(scene: &Scene) -> Person {
    let mut alice = Person::new(scene, "alice").await;
    for folder in ["/files/docs", "/files/docs/deep", "/files/docs2"] {
        assert_eq!(alice.ask("MKCOL", folder, "", "").await.status, 201);
    }
    let files = [("docs/a.txt", "one"), ("docs/deep/b", "two"), ("other", "secret"), ("docs2/c", "secret")];
    for (file, bytes) in files {
        assert_eq!(alice.put(&format!("/files/{file}"), bytes).await.status, 201);
    }
    alice
}

/// Makes a link, and returns its JSON and its path.
async fn link(alice: &mut Person, new: Value) -> (Value, String) {
    let made = alice.send("POST", "/api/links", &new).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let link = made.json();
    let url = link["url"].as_str().expect("a URL").to_owned();
    let path = url.split_once("://test").expect("this server").1.to_owned();
    (link, path)
}

async fn read_link(alice: &mut Person, path: &str) -> String {
    link(alice, json!({ "path": path, "permission": "read" })).await.1
}

const ACCEPT: &str = "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\nSec-Fetch-Site: none\r\n";

fn is_unlisted(answer: &Answer) {
    assert_eq!(answer.field("Referrer-Policy"), Some("no-referrer"));
    assert_eq!(answer.field("X-Robots-Tag"), Some("noindex, nofollow"));
    assert!(answer.field("Cache-Control").is_some_and(|value| value.contains("no-store")), "{answer:?}");
}

async fn a_linked_file_is_read_by_any_client_and_shown_to_browsers(scene: Scene) {
    let mut alice = alice(&scene).await;
    let path = read_link(&mut alice, "docs/a.txt").await;
    let mut visitor = scene.connect().await;
    let got = visitor.get(&path).await;
    assert_eq!((got.status, &*got.text()), (200, "one"));
    let named = "attachment; filename=\"a.txt\"";
    assert_eq!(got.field("Content-Disposition"), Some(named));
    is_unlisted(&got);
    let head = visitor.head_with(&path, "").await;
    assert_eq!((head.status, head.field("Content-Length")), (200, Some("3")));
    let part = visitor.get_with(&path, "Range: bytes=1-\r\n").await;
    assert_eq!((part.status, &*part.text()), (206, "ne"));
    let page = visitor.get_with(&path, ACCEPT).await;
    let text = page.text();
    assert!(page.status == 200 && text.contains("a.txt") && text.contains("href=\"?download\""), "{text}");
    assert!(!text.contains("docs") && !text.contains("alice") && !text.contains("<script"), "{text}");
    is_unlisted(&page);
    let download = visitor.get_with(&format!("{path}?download"), ACCEPT).await;
    assert_eq!((&*download.text(), download.field("Content-Disposition")), ("one", Some(named)));
    let view = visitor.get_with(&format!("{path}?view"), ACCEPT).await;
    let shown = "inline; filename=\"a.txt\"";
    assert_eq!(view.field("Content-Disposition"), Some(shown));
    assert!(view.field("Content-Security-Policy").is_some_and(|policy| policy.starts_with("sandbox")));
    for method in ["PUT", "DELETE", "MKCOL", "PATCH"] {
        assert_eq!(visitor.ask(method, &path, "", "").await.status, 405, "{method}");
    }
    assert_eq!(alice.get("/files/docs/a.txt").await.text(), "one");
}

async fn a_linked_folder_is_listed_and_read_and_nothing_beside_it(scene: Scene) {
    let mut alice = alice(&scene).await;
    let path = read_link(&mut alice, "/docs/").await;
    let mut visitor = scene.connect().await;
    let moved = visitor.get(&path).await;
    assert_eq!((moved.status, moved.field("Location")), (302, Some(&*format!("{path}/"))));
    let listed = visitor.get(&format!("{path}/?format=json")).await;
    let names: Vec<_> =
        listed.json()["entries"].as_array().unwrap().iter().map(|entry| entry["name"].clone()).collect();
    assert_eq!((listed.json()["path"].clone(), names), (json!("/"), vec![json!("deep"), json!("a.txt")]));
    is_unlisted(&listed);
    let page = visitor.get_with(&format!("{path}/"), ACCEPT).await;
    let text = page.text();
    assert!(
        page.status == 200 && text.contains("href=\"a.txt\"") && text.contains("href=\"deep/\""),
        "{text}"
    );
    assert!(text.contains("docs") && !text.contains("alice") && !text.contains("docs2"), "{text}");
    assert!(!text.contains("../../") && !text.contains("/app/entry"), "{text}");
    assert_eq!(visitor.get(&format!("{path}/deep/b")).await.text(), "two");
    assert_eq!(visitor.get(&format!("{path}/deep")).await.status, 302);
    visitor.get(&format!("{path}/none")).await.problem(404);
    visitor.get(&format!("{path}/a.txt/more")).await.problem(404);
}

/// As the scope escapes of other servers: CVE-2025-58753 in copyparty, where a link of a file gave those
/// beside it, and those of File Browser, by `..`, encoded slashes, symbolic links and absolute paths.
async fn no_path_leads_out_of_a_link(scene: Scene) {
    let mut alice = alice(&scene).await;
    scene.link_into_home("alice", "docs/up", "../other");
    scene.link_into_home("alice", "docs/beside", "../docs2");
    scene.link_into_home("alice", "docs/root", "/");
    let (folder, file) = (read_link(&mut alice, "docs").await, read_link(&mut alice, "docs/a.txt").await);
    let escapes = [
        "/../other",
        "/deep/../../other",
        "/%2e%2e/other",
        "/..%2fother",
        "/%2e%2e%2fother",
        "%2f..%2fother",
        "/..",
        "/../",
        "//other",
        "/./../other",
        "/up",
        "/beside/c",
        "/beside/",
        "/root/etc/passwd",
        "/root/",
        "/deep/b/../../../other",
        "/..;/other",
        "/..\\other",
        "/docs2/c",
        "/deep/b%00",
        "/other",
        "2/c",
        "/?path=../other",
        "/?archive=zip",
        "/../?archive=zip",
        "/..%2f?archive=zip",
        "/beside/?archive=zip",
        "/root/?archive=zip",
    ];
    for escape in escapes {
        for path in [&folder, &file] {
            let mut visitor = scene.connect().await;
            let got = visitor.get(&format!("{path}{escape}")).await;
            let is_own = escape.starts_with("/?") && path == &folder;
            // Files are stored in an archive as they are.
            let text = String::from_utf8_lossy(&got.body);
            assert!(got.status >= 300 || is_own, "{path}{escape}: {} {text}", got.status);
            assert!(!text.contains("secret") && !text.contains("root:"), "{path}{escape}");
        }
    }
    // A linked file gives none beside it.
    let mut visitor = scene.connect().await;
    for beside in ["/a.txt", "/../a.txt", "/deep/b", "/"] {
        let got = visitor.get(&format!("{file}{beside}")).await;
        assert!(got.status >= 300 && got.text() != "one" && got.text() != "two", "{beside}: {}", got.status);
    }
    for method in ["MOVE", "COPY"] {
        let destination = "Destination: /files/stolen\r\n";
        let moved = visitor.ask(method, &format!("{folder}/a.txt"), destination, "").await;
        assert_eq!(moved.status, 405, "{method}");
        let destination = format!("Destination: {folder}/new\r\n");
        let moved = alice.ask(method, "/files/other", &destination, "").await;
        assert!(moved.status >= 400, "{method}: {}", moved.status);
    }
    assert!(!scene.home("alice").contains_key("docs/new"));
}

async fn a_token_opens_nothing_but_its_link(scene: Scene) {
    let mut alice = alice(&scene).await;
    let path = read_link(&mut alice, "docs").await;
    let token = path.strip_prefix("/s/").unwrap().to_owned();
    let mut visitor = scene.connect().await;
    let bearer = format!("Authorization: Bearer {token}\r\n");
    visitor.get_with("/files/", &bearer).await.problem(401);
    visitor.get_with("/files/", &format!("Cookie: plimsoll={token}\r\n")).await.problem(401);
    let id = alice.get("/api/links").await.json()["links"][0]["id"].as_str().unwrap().to_owned();
    assert_ne!(id, token);
    for other in [format!("/s/{id}"), format!("/s/{}", "0".repeat(32)), format!("/s/{}", &token[..31])] {
        visitor.get(&other).await.problem(404);
    }
    let page = visitor.get_with(&format!("/s/{}", "0".repeat(32)), ACCEPT).await;
    assert!(page.status == 404 && page.text().contains("no such link"), "{}", page.text());
    is_unlisted(&page);
}

async fn a_redirect_to_a_link_is_stored_by_no_cache(scene: Scene) {
    let mut alice = alice(&scene).await;
    let path = read_link(&mut alice, "docs").await;
    let mut visitor = scene.connect().await;
    let moved = visitor.get(&format!("/{path}//a.txt")).await;
    assert_eq!((moved.status, moved.field("Location")), (308, Some(&*format!("{path}/a.txt"))));
    assert_eq!(moved.field("Cache-Control"), Some("no-store"));
    assert_eq!(moved.field("Referrer-Policy"), Some("no-referrer"));
}

async fn an_ended_link_has_ended_at_the_next_request(scene: Scene) {
    let mut alice = alice(&scene).await;
    let (made, path) = link(&mut alice, json!({ "path": "docs", "permission": "read" })).await;
    let mut visitor = scene.connect().await;
    assert_eq!(visitor.get(&format!("{path}/?format=json&limit=1")).await.status, 200);
    let mut bob = Person::new(&scene, "bob").await;
    let one = format!("/api/links/{}", made["id"].as_str().unwrap());
    bob.delete(&one).await.problem(404);
    assert_eq!(visitor.get(&format!("{path}/a.txt")).await.status, 200);
    assert_eq!(alice.delete(&one).await.status, 204);
    // In the middle of listing pages, too.
    visitor.get(&format!("{path}/?format=json&limit=1&after=a.txt")).await.problem(404);
    let detail = visitor.get(&format!("{path}/a.txt")).await.problem(404);
    assert!(detail.contains("has ended"), "{detail}");
    alice.delete(&one).await.problem(404);
}

async fn a_link_ends_with_its_path_and_does_not_come_back(scene: Scene) {
    let mut alice = alice(&scene).await;
    let (file, folder) =
        (read_link(&mut alice, "docs/a.txt").await, read_link(&mut alice, "docs/deep").await);
    let kept = read_link(&mut alice, "other").await;
    assert_eq!(alice.delete("/files/docs/a.txt").await.status, 204);
    assert_eq!(alice.put("/files/docs/a.txt", "another").await.status, 201);
    let moved = alice.ask("MOVE", "/files/docs", "Destination: /files/moved\r\n", "").await;
    assert_eq!(moved.status, 201);
    let mut visitor = scene.connect().await;
    for path in [&file, &format!("{folder}/b")] {
        visitor.get(path).await.problem(404);
    }
    assert_eq!(visitor.get(&kept).await.text(), "secret");
    let listed = alice.get("/api/links").await.json();
    assert_eq!(listed["links"].as_array().unwrap().len(), 1);
    // A file that is replaced keeps its link.
    assert_eq!(alice.put("/files/other", "new").await.status, 204);
    assert_eq!(visitor.get(&kept).await.text(), "new");
    scene.accounts().auth.set_enabled(&scene.io, "alice", false).await.expect("an account");
    visitor.get(&kept).await.problem(404);
}

async fn a_download_by_a_link_ends_when_the_link_does(scene: Scene) {
    let mut alice = alice(&scene).await;
    let length = if scene.engine == Engine::Simulator { 2_000_000 } else { 24_000_000 };
    scene.write_home("alice", "large", &noise(1, length));
    let (made, path) = link(&mut alice, json!({ "path": "large", "permission": "read" })).await;
    let mut visitor = scene.connect().await;
    visitor.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n")).await;
    visitor.receive().await.expect("bytes").expect("bytes");
    let open = (scene.connections)();
    assert_eq!(alice.delete(&format!("/api/links/{}", made["id"].as_str().unwrap())).await.status, 204);
    while (scene.connections)() >= open {
        scene.io.sleep(Duration::from_millis(5)).await;
    }
    assert!(visitor.expect_abort().await.len() < length);
}

/// Returns the value of a cookie that a response stores.
fn cookie_of(answer: &Answer) -> String {
    let field = answer.field("Set-Cookie").expect("a cookie");
    assert!(field.contains("HttpOnly; SameSite=Lax") && field.contains("Path=/s/"), "{field}");
    field.split(';').next().unwrap().to_owned()
}

async fn a_password_is_requested_by_a_form_and_of_curl(scene: Scene) {
    let mut alice = alice(&scene).await;
    let new = json!({ "path": "docs", "permission": "read", "password": "open sesame now" });
    let (made, path) = link(&mut alice, new).await;
    assert_eq!(made["password"], json!(true));
    let target = format!("{path}/a.txt");
    let mut visitor = scene.connect().await;
    let refused = visitor.get(&target).await;
    assert!(
        refused
            .field("WWW-Authenticate")
            .is_some_and(|value| value.starts_with("Basic realm=\"plimsoll link\""))
    );
    refused.problem(401);
    // anyone:wrong, and anyone:open sesame now
    let basic = |encoded: &str| format!("Authorization: Basic {encoded}\r\n");
    visitor.get_with(&target, &basic("YW55b25lOndyb25n")).await.problem(401);
    let right = basic("YW55b25lOm9wZW4gc2VzYW1lIG5vdw==");
    assert_eq!(visitor.get_with(&target, &right).await.text(), "one");
    let page = visitor.get_with(&target, ACCEPT).await;
    assert!(page.status == 401 && page.text().contains("type=\"password\""), "{}", page.text());
    assert!(page.field("WWW-Authenticate").is_none(), "{page:?}");
    let form = format!("{ACCEPT}Content-Type: application/x-www-form-urlencoded\r\nOrigin: null\r\n");
    let wrong = visitor.ask("POST", &target, &form, "password=wrong").await;
    assert!(wrong.status == 401 && wrong.text().contains("password is wrong"), "{}", wrong.text());
    let unlocked = visitor.ask("POST", &target, &form, "password=open+sesame+now").await;
    assert_eq!((unlocked.status, unlocked.field("Location")), (303, Some(&*target)));
    let cookie = format!("Cookie: {}\r\n", cookie_of(&unlocked));
    assert_eq!(visitor.get_with(&target, &cookie).await.text(), "one");
    assert_eq!(visitor.get_with(&format!("{path}/?format=json"), &cookie).await.status, 200);
    // It is good for no other link, and another site's page sends none.
    let new = json!({ "path": "docs", "permission": "read", "password": "open sesame now" });
    let (_, other) = link(&mut alice, new).await;
    visitor.get_with(&format!("{other}/a.txt"), &cookie).await.problem(401);
    let foreign = "Content-Type: application/x-www-form-urlencoded\r\nSec-Fetch-Site: cross-site\r\n";
    visitor.ask("POST", &target, foreign, "password=open+sesame+now").await.problem(403);
    alice
        .send("POST", "/api/links", &json!({ "path": "docs", "permission": "read", "password": "a" }))
        .await
        .problem(400);
}

async fn downloads_are_limited_and_one_that_was_counted_is_continued(scene: Scene) {
    let mut alice = alice(&scene).await;
    let (_, path) =
        link(&mut alice, json!({ "path": "docs/a.txt", "permission": "read", "downloads": 2 })).await;
    let mut visitor = scene.connect().await;
    for _ in 0..3 {
        assert_eq!(visitor.head_with(&path, "").await.status, 200);
        assert_eq!(visitor.get_with(&path, ACCEPT).await.status, 200);
    }
    let first = visitor.get_with(&path, "Range: bytes=0-0\r\n").await;
    assert_eq!((first.status, &*first.text()), (206, "o"));
    let cookie = format!("Cookie: {}\r\nRange: bytes=1-\r\n", cookie_of(&first));
    for _ in 0..3 {
        let rest = visitor.get_with(&path, &cookie).await;
        assert_eq!((rest.status, &*rest.text()), (206, "ne"));
        // A further proof would make the time of the first one endless.
        assert_eq!(rest.field("Set-Cookie"), None);
    }
    // Without the proof, a later range is a download as well.
    assert_eq!(visitor.get_with(&path, "Range: bytes=1-\r\n").await.status, 206);
    for range in
        ["", "Range: bytes=0-0\r\n", "Range: bytes=1-\r\n", "Range: bytes=-1\r\n", "Range: bytes=1-1,0-0\r\n"]
    {
        let detail = visitor.get_with(&path, range).await.problem(410);
        assert!(detail.contains("used up"), "{detail}");
    }
    assert_eq!(visitor.get_with(&path, &cookie).await.text(), "ne");
    let page = visitor.get_with(&format!("{path}?download"), ACCEPT).await;
    assert!(page.status == 410 && page.text().contains("<h1>"), "{}", page.text());
    let listed = alice.get("/api/links").await.json();
    assert_eq!((&listed["links"][0]["downloads"], &listed["links"][0]["downloaded"]), (&json!(2), &json!(2)));
    // The proof is for this version of the file only.
    assert_eq!(alice.put("/files/docs/a.txt", "another").await.status, 204);
    visitor.get_with(&path, &cookie).await.problem(410);
}

async fn a_link_is_closed_while_its_owner_may_not_share(scene: Scene) {
    let mut alice = alice(&scene).await;
    let path = read_link(&mut alice, "docs/a.txt").await;
    let mut visitor = scene.connect().await;
    assert_eq!(visitor.get(&path).await.text(), "one");
    let may = Permissions { share: false, ..Permissions::default() };
    scene.accounts().auth.set_permissions(&scene.io, "alice", may).await.expect("an account");
    let detail = visitor.get(&path).await.problem(403);
    assert!(detail.contains("does not permit"), "{detail}");
    let may = Permissions::default();
    scene.accounts().auth.set_permissions(&scene.io, "alice", may).await.expect("an account");
    assert_eq!(visitor.get(&path).await.text(), "one");
}

async fn links_are_listed_page_by_page_without_their_url(scene: Scene) {
    let mut alice = alice(&scene).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let (made, _) = link(&mut alice, json!({ "href": "/docs/a%2Etxt", "permission": "read" })).await;
        assert_eq!((&made["path"], &made["permission"]), (&json!("/docs/a.txt"), &json!("read")));
        ids.push(made["id"].as_str().unwrap().to_owned());
    }
    ids.sort();
    let (mut listed, mut target) = (Vec::new(), "/api/links?limit=2".to_owned());
    loop {
        let page = alice.get(&target).await.json();
        for link in page["links"].as_array().unwrap() {
            assert!(link.get("url").is_none(), "{link}");
            listed.push(link["id"].as_str().unwrap().to_owned());
        }
        let Some(next) = page["next"].as_str() else { break };
        target = format!("/api/links?limit=2&after={next}");
    }
    assert_eq!(listed, ids);
    alice.send("POST", "/api/links", &json!({ "path": "none", "permission": "read" })).await.problem(404);
    alice.send("POST", "/api/links", &json!({ "path": "docs", "permission": "write" })).await.problem(400);
    let past = json!({ "path": "docs", "permission": "read", "expires": "2001-01-01T00:00:00Z" });
    alice.send("POST", "/api/links", &past).await.problem(400);
    let may = Permissions { share: false, ..Permissions::default() };
    scene.accounts().auth.set_permissions(&scene.io, "alice", may).await.expect("an account");
    alice.send("POST", "/api/links", &json!({ "path": "docs", "permission": "read" })).await.problem(403);
}

async fn a_links_token_is_in_no_log_and_its_id_is_in_the_transfer_log(scene: Scene) {
    let mut alice = alice(&scene).await;
    let (made, path) = link(&mut alice, json!({ "path": "docs", "permission": "read" })).await;
    let token = path.strip_prefix("/s/").unwrap();
    let mut visitor = scene.connect().await;
    visitor.get(&format!("{path}/a.txt")).await;
    visitor.get(&format!("/%73/{token}/a.txt?download")).await;
    visitor.get(&format!("//s/{token}")).await;
    // Mail and chat programs take a character behind an address for a part of it. The third is refused.
    for other in [format!("/s/{token})"), format!("/s/{token}%20"), format!("/s/x/../{token}")] {
        scene.connect().await.get(&other).await;
    }
    visitor.get(&format!("/none?next=%2Fs%2F{token}&x=y")).await;
    scene.until(|| scene.log.text().matches("...").count() >= 7).await;
    let is_ours = |line: &&Value| line["operation"] == "download" && line["result"] == "ok";
    scene.until(|| scene.accounts().lines().iter().filter(is_ours).count() >= 2).await;
    assert!(!scene.log.text().contains(token), "{}", scene.log.text());
    assert!(scene.log.text().contains("GET /%73/.../a.txt?download"), "{}", scene.log.text());
    let lines = scene.accounts().lines();
    let line = lines.iter().find(is_ours).unwrap();
    assert_eq!((&line["account"], &line["path"]), (&json!("alice"), &json!("/docs/a.txt")));
    assert_eq!((&line["link"], &line["bytes"]), (&made["id"], &json!(3)));
    assert!(!scene.accounts().transfers.text().contains(token));
}

behaviours!(scenario and remote and tls;
    a_linked_file_is_read_by_any_client_and_shown_to_browsers,
    a_linked_folder_is_listed_and_read_and_nothing_beside_it,
    no_path_leads_out_of_a_link,
    a_token_opens_nothing_but_its_link,
    a_redirect_to_a_link_is_stored_by_no_cache,
    an_ended_link_has_ended_at_the_next_request,
    a_link_ends_with_its_path_and_does_not_come_back,
    a_download_by_a_link_ends_when_the_link_does,
    a_password_is_requested_by_a_form_and_of_curl,
    downloads_are_limited_and_one_that_was_counted_is_continued,
    a_link_is_closed_while_its_owner_may_not_share,
    links_are_listed_page_by_page_without_their_url,
    a_links_token_is_in_no_log_and_its_id_is_in_the_transfer_log,
);

mod turned_off {
    use super::*;

    fn scenario() -> Scenario {
        Scenario { accounts: Some(Settings { links: false, ..settings() }), ..Scenario::default() }
    }

    async fn a_server_without_links_makes_none_and_says_so(scene: Scene) {
        let mut alice = alice(&scene).await;
        let new = json!({ "path": "docs", "permission": "read" });
        let detail = alice.send("POST", "/api/links", &new).await.problem(403);
        assert!(detail.contains("no public links"), "{detail}");
        assert_eq!(alice.get("/api/links").await.json(), json!({ "links": [] }));
        let mut visitor: Client = scene.connect().await;
        visitor.get(&format!("/s/{}", "0".repeat(32))).await.problem(404);
        let page = alice.ask("GET", "/app/entry?at=/files/docs", "Accept: text/html\r\n", "").await;
        assert!(page.status == 200 && !page.text().contains("value=\"link\""), "{}", page.text());
    }

    behaviours!(scenario; a_server_without_links_makes_none_and_says_so);
}

async fn a_link_is_made_and_ended_by_the_page_without_a_script(scene: Scene) {
    let mut alice = alice(&scene).await;
    let details = "/app/entry?at=%2Ffiles%2Fdocs%2Fa.txt";
    let page = alice.ask("GET", details, ACCEPT, "").await.text();
    assert!(page.contains("name=\"downloads\"") && page.contains("value=\"link\""), "{page}");
    let form =
        format!("{ACCEPT}Content-Type: application/x-www-form-urlencoded\r\n").replace("none", "same-origin");
    let fields = "action=link&at=%2Ffiles%2Fdocs%2Fa.txt&next=%2Fapp%2Fshares&downloads=5&expires=2999-01-01";
    let made = alice.ask("POST", "/app/do", &form, &format!("{fields}&password=")).await;
    let text = made.text();
    assert!(made.status == 200 && text.contains("<svg class=\"qr\""), "{text}");
    assert_eq!(made.field("Cache-Control"), Some("no-store"));
    let start = text.find("://test/s/").expect("the URL") + "://test".len();
    let path = &text[start..start + "/s/".len() + 32];
    let mut visitor = scene.connect().await;
    assert_eq!(visitor.get(path).await.text(), "one");
    let listed = alice.ask("GET", "/app/shares", ACCEPT, "").await.text();
    assert!(listed.contains("/<bdi>docs/a.txt</bdi>") && listed.contains("1 of 5 used"), "{listed}");
    assert!(!listed.contains(path), "{listed}");
    let id = alice.get("/api/links").await.json()["links"][0]["id"].as_str().unwrap().to_owned();
    let ended =
        alice.ask("POST", "/app/do", &form, format!("action=unlink&id={id}&next=%2Fapp%2Fshares")).await;
    assert_eq!((ended.status, ended.field("Location")), (303, Some("/app/shares?done=unlinked")));
    visitor.get(path).await.problem(404);
    // A link for uploads has limits: of the form, or of the server.
    let inbox = "action=link&at=%2Ffiles%2Fdocs&next=%2Fapp%2Fshares&permission=upload";
    let made = alice.ask("POST", "/app/do", &form, &format!("{inbox}&bytes=5MiB")).await;
    assert!(made.status == 200 && made.text().contains("0 of 1000 used"), "{}", made.text());
    let made = alice.ask("POST", "/app/do", &form, &format!("{inbox}&bytes=much")).await;
    assert_eq!(made.status, 400, "{}", made.text());
    let links = alice.get("/api/links").await.json()["links"].clone();
    assert_eq!((&links[0]["files"], &links[0]["bytes"]), (&json!(1000), &json!(5 << 20)));
    let id = links[0]["id"].as_str().unwrap();
    assert_eq!(alice.delete(&format!("/api/links/{id}")).await.status, 204);
    let foreign = form.replace("same-origin", "cross-site");
    alice.ask("POST", "/app/do", &foreign, fields).await;
    assert_eq!(alice.get("/api/links").await.json(), json!({ "links": [] }));
}

mod by_page {
    use super::*;

    behaviours!(scenario; a_link_is_made_and_ended_by_the_page_without_a_script);
}
