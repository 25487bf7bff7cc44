//! Files of a site: the fields of an answer, folders as files, and missing files.

use std::time::Duration;

use plimsoll_tests::{Answer, Engine, LOOKED_UP_EACH_TIME, Scenario, Scene, Tree, behaviours, under};

/// Sun, 06 Nov 1994 08:49:37 GMT, and a half.
const WRITTEN: Duration = Duration::new(784_111_777, 500_000_000);

/// Longer than the granularity of a file system's timestamps: changes at this interval have different
/// times.
const CLOCK_STEP: Duration = Duration::from_millis(20);

fn scenario() -> Scenario {
    let tree = Tree::new()
        .file_of("plain.txt", "plain text\n", WRITTEN)
        .file("empty.txt", "")
        .file("folder/in.txt", "in the folder\n")
        .file("folder/odd ?#%\u{e9}/in.txt", "odd\n")
        .file(b"folder/\xff/in.txt", "not UTF-8\n")
        .file("page/index.html", "<p>the index</p>")
        .file("no page/index.html/in.txt", "a folder of that name\n")
        .file("aside/404.html", "<p>our own page</p>")
        .file("aside/in.txt", "aside\n");
    Scenario { tree, hot: LOOKED_UP_EACH_TIME, ..Scenario::default() }
}

/// Returns all fields except `Date`.
fn lasting(answer: &Answer) -> Vec<&(String, String)> {
    answer.fields.iter().filter(|(name, _)| name != "Date").collect()
}

async fn a_file_is_described_by_its_fields(scene: Scene) {
    let answer = scene.connect().await.get("/plain.txt").await;
    assert_eq!((answer.status, &*answer.text()), (200, "plain text\n"));
    assert_eq!(answer.field("Content-Type"), Some("text/plain; charset=utf-8"));
    assert_eq!(answer.field("Content-Length"), Some("11"));
    assert_eq!(answer.field("Last-Modified"), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
    assert_eq!(answer.field("Accept-Ranges"), Some("bytes"));
    assert_eq!(answer.field("X-Content-Type-Options"), Some("nosniff"));
    assert!(answer.field("Date").is_some() && answer.field("Content-Range").is_none());
    let tag = answer.field("ETag").expect("an entity tag");
    assert!(tag.len() > 2 && tag.starts_with('"') && tag.ends_with('"'), "{tag} is not strong");
}

async fn a_query_does_not_change_the_file(scene: Scene) {
    let mut client = scene.connect().await;
    let plain = client.get("/plain.txt").await;
    let asked = client.get("/plain.txt?version=2&x=/../y").await;
    assert_eq!((lasting(&asked), &asked.body), (lasting(&plain), &plain.body));
}

async fn an_empty_file_is_a_whole_answer(scene: Scene) {
    let mut client = scene.connect().await;
    let answer = client.get("/empty.txt").await;
    assert_eq!((answer.status, answer.body.len()), (200, 0));
    assert_eq!(answer.field("Content-Length"), Some("0"));
    assert_eq!(answer.field("Content-Type"), Some("text/plain; charset=utf-8"));
    assert_eq!(client.get("/plain.txt").await.text(), "plain text\n");
}

async fn head_says_what_get_says_without_the_body(scene: Scene) {
    let mut client = scene.connect().await;
    for target in ["/plain.txt", "/empty.txt", "/page/", "/folder", "/missing"] {
        let (get, head) = (client.get(target).await, client.head_with(target, "").await);
        assert_eq!((head.status, lasting(&head)), (get.status, lasting(&get)), "{target}");
    }
    client.push("HEAD /plain.txt HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    assert_eq!(client.answer_to_head().await.field("Content-Length"), Some("11"));
    client.expect_end().await;
}

async fn the_entity_tag_stays_while_the_file_does(scene: Scene) {
    let mut client = scene.connect().await;
    let first = client.get("/plain.txt").await;
    scene.io.sleep(CLOCK_STEP).await;
    scene.write("empty.txt", b"another file\n");
    for _ in 0..3 {
        assert_eq!(client.get("/plain.txt").await.field("ETag"), first.field("ETag"));
    }
    assert_ne!(client.get("/empty.txt").await.field("ETag"), first.field("ETag"));
}

async fn the_entity_tag_changes_with_the_contents_though_the_size_does_not(scene: Scene) {
    let mut client = scene.connect().await;
    let mut seen = vec![client.get("/plain.txt").await];
    for contents in ["PLAIN TEXT\n", "plain text\n"] {
        scene.io.sleep(CLOCK_STEP).await;
        scene.write("plain.txt", contents.as_bytes());
        let answer = client.get("/plain.txt").await;
        assert_eq!(answer.text(), contents);
        assert!(seen.iter().all(|before| before.field("ETag") != answer.field("ETag")));
        assert_ne!(answer.field("Last-Modified"), seen[0].field("Last-Modified"));
        seen.push(answer);
    }
}

async fn a_new_file_of_an_old_name_has_another_entity_tag(scene: Scene) {
    let mut client = scene.connect().await;
    let before = client.get("/plain.txt").await;
    scene.remove("plain.txt");
    assert_eq!(client.get("/plain.txt").await.status, 404);
    scene.io.sleep(CLOCK_STEP).await;
    scene.write("plain.txt", b"plain text\n");
    let after = client.get("/plain.txt").await;
    assert_eq!(after.body, before.body);
    assert_ne!(after.field("ETag"), before.field("ETag"));
}

async fn a_folder_with_an_index_page_is_that_page(scene: Scene) {
    let mut client = scene.connect().await;
    let index = client.get("/page/").await;
    assert_eq!((index.status, &*index.text()), (200, "<p>the index</p>"));
    assert_eq!(index.field("Content-Type"), Some("text/html; charset=utf-8"));
    let by_name = client.get("/page/index.html").await;
    assert_eq!(lasting(&index), lasting(&by_name));
    let listing = client.get("/no%20page/?format=json").await;
    assert_eq!(listing.json()["entries"][0]["name"], "index.html");
}

async fn a_folder_without_its_slash_leads_to_the_one_with_it(scene: Scene) {
    let mut client = scene.connect().await;
    for (target, location) in [
        ("/folder", "/folder/"),
        ("/page", "/page/"),
        ("/folder?sort=size&order=desc", "/folder/?sort=size&order=desc"),
        ("/page?", "/page/?"),
        ("/folder/odd%20%3f%23%25%C3%A9?q=%20", "/folder/odd%20%3F%23%25%C3%A9/?q=%20"),
        ("/folder/%ff", "/folder/%FF/"),
        // The redirect stays on the present host, even if the target names another.
        ("http://elsewhere.example/folder?x", "/folder/?x"),
    ] {
        let answer = client.get(target).await;
        assert_eq!((answer.status, answer.field("Location")), (301, Some(location)), "{target}");
        assert_eq!(client.get(location).await.status, 200, "{location}");
    }
}

async fn a_file_with_a_slash_behind_it_is_not_there(scene: Scene) {
    let mut client = scene.connect().await;
    for target in ["/plain.txt/", "/page/index.html/", "/plain.txt/in.txt", "/empty.txt/?x"] {
        client.get(target).await.problem(404);
    }
}

async fn a_missing_file_is_a_problem_document_for_programs(scene: Scene) {
    let mut client = scene.connect().await;
    for fields in ["", "Accept: */*\r\n", "Accept: application/json\r\n", "Accept: image/png\r\n"] {
        for target in ["/missing", "/folder/missing", "/missing/plain.txt", "/PLAIN.TXT", "/aside/missing"] {
            let answer = client.get_with(target, fields).await;
            assert!(!answer.problem(404).is_empty());
            assert!(answer.field("ETag").is_none() && answer.field("Last-Modified").is_none());
        }
    }
}

async fn a_missing_file_is_a_page_for_browsers(scene: Scene) {
    let mut client = scene.connect().await;
    let browser = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n";
    let answer = client.get_with("/missing", browser).await;
    assert_eq!(answer.status, 404);
    assert_eq!(answer.field("Content-Type"), Some("text/html; charset=utf-8"));
    assert!(answer.text().starts_with("<!DOCTYPE html>") && answer.text().contains("404"));
    assert!(answer.field("Content-Security-Policy").expect("a policy").contains("default-src 'none'"));
}

async fn a_site_may_have_a_page_of_its_own_for_what_is_not_there(scene: Scene) {
    let mut client = scene.connect().await;
    for target in ["/aside/missing", "/aside/missing/in.txt", "/aside/.hidden", "/aside/in.txt/"] {
        let answer = client.get_with(target, "Accept: text/html\r\n").await;
        assert_eq!((answer.status, &*answer.text()), (404, "<p>our own page</p>"), "{target}");
        assert_eq!(answer.field("Content-Type"), Some("text/html; charset=utf-8"));
        // The page is the site's own: no content security policy restricts it.
        assert!(answer.field("Content-Security-Policy").is_none());
    }
    assert_eq!(client.get("/aside/404.html").await.status, 200);
    let page = client.get_with("/missing", "Accept: text/html\r\n").await;
    assert!(!page.text().contains("our own page"));
}

async fn the_operators_cache_control_is_in_every_response_about_a_file(scene: Scene) {
    let mut client = scene.connect().await;
    let whole = client.get("/aside/in.txt").await;
    assert_eq!((whole.status, whole.field("Cache-Control")), (200, Some("max-age=60")));
    let known = format!("If-None-Match: {}\r\n", whole.field("ETag").unwrap());
    for (fields, status, value) in [
        ("Range: bytes=1-2\r\n", 206, Some("max-age=60")),
        (&*known, 304, Some("max-age=60")),
        ("If-Match: \"other\"\r\n", 412, None),
        ("Range: bytes=99-\r\n", 416, None),
    ] {
        let answer = client.get_with("/aside/in.txt", fields).await;
        assert_eq!((answer.status, answer.field("Cache-Control")), (status, value), "{fields}");
    }
    assert_eq!(client.get("/aside/404.html").await.field("Cache-Control"), Some("no-store"));
    for target in ["/aside/missing", "/plain.txt"] {
        assert_eq!(client.get(target).await.field("Cache-Control"), None, "{target}");
    }
}

async fn an_answer_that_depends_on_accept_says_so(scene: Scene) {
    let mut client = scene.connect().await;
    for target in ["/missing", "/aside/missing", "/folder/"] {
        for fields in ["", "Accept: application/json\r\n", "Accept: text/html\r\n"] {
            let answer = client.get_with(target, fields).await;
            assert_eq!(answer.field("Vary"), Some("Accept"), "{target} {fields:?}");
        }
    }
}

behaviours!(scenario and tls;
    the_operators_cache_control_is_in_every_response_about_a_file,
    a_file_is_described_by_its_fields,
    a_query_does_not_change_the_file,
    an_empty_file_is_a_whole_answer,
    head_says_what_get_says_without_the_body,
    the_entity_tag_stays_while_the_file_does,
    the_entity_tag_changes_with_the_contents_though_the_size_does_not,
    a_new_file_of_an_old_name_has_another_entity_tag,
    a_folder_with_an_index_page_is_that_page,
    a_folder_without_its_slash_leads_to_the_one_with_it,
    a_file_with_a_slash_behind_it_is_not_there,
    a_missing_file_is_a_problem_document_for_programs,
    a_missing_file_is_a_page_for_browsers,
    a_site_may_have_a_page_of_its_own_for_what_is_not_there,
    an_answer_that_depends_on_accept_says_so,
);

/// In the simulator alone, and so not one of the suite: a real disk denies root nothing.
#[test]
fn a_file_that_may_not_be_read_is_forbidden() {
    under(Engine::Simulator, scenario, |scene| async move {
        scene.forbid("plain.txt");
        let mut client = scene.connect().await;
        client.get("/plain.txt").await.problem(403);
        let page = client.get_with("/plain.txt", "Accept: text/html\r\n").await;
        assert_eq!((page.status, page.field("Content-Type")), (403, Some("text/html; charset=utf-8")));
        assert_eq!(client.get("/folder/in.txt").await.status, 200);
    });
}
