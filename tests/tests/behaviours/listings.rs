//! Listings of folders: as JSON for programs, as a page for people, and the entries that both omit.

use std::fmt::Write as _;
use std::time::Duration;

use plimsoll_content::limits::LISTING_ENTRIES_MAX;
use plimsoll_io::sim::Faults;
use plimsoll_tests::accounts::settings;
use plimsoll_tests::under::simulated;
use plimsoll_tests::{
    Answer, Client, Engine, LOOKED_UP_EACH_TIME, Person, Scenario, Scene, Tree, behaviours,
};
use serde_json::Value;

const BROWSER: &str = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n";

/// Names with special characters, and one that is not UTF-8.
const ODD: [&[u8]; 9] = [
    b"<script>alert(1)".as_slice(),
    b"a&b;\"c\" 'd'",
    b"two words",
    b"100% #1?",
    b"javascript:alert(1)",
    b"back\\slash",
    "grüße 日本".as_bytes(),
    b"\xff\xfe",
    b"?sort=size",
];

fn scenario() -> Scenario {
    let at = |seconds: u64| Duration::new(784_111_777 + seconds, 500_000_000);
    let tree = Tree::new()
        .file_of("sorted/file10.txt", "1".repeat(300), at(1))
        .file_of("sorted/file2.txt", "1".repeat(200), at(3))
        .file_of("sorted/File1.txt", "1".repeat(400), at(2))
        .file_of("sorted/alone.txt", "", at(0))
        .file_of("sorted/same size.txt", "2".repeat(200), at(4))
        .file("sorted/folder b/in.txt", "in b")
        .file("sorted/Folder A/in.txt", "in a")
        .folder("empty")
        .file("mixed/seen.txt", "seen")
        .file("mixed/folder/in.txt", "in it")
        .file("mixed/.hidden", "not shown")
        .file("mixed/.git/config", "not shown")
        .file("mixed/.well-known/x.txt", "not shown")
        .file("mixed/line\nbreak", "no request can name it")
        .pipe("mixed/pipe")
        .link("mixed/loop", "loop")
        .link("mixed/dangling", "missing")
        .link("mixed/outside", "../../../../../../etc/passwd")
        .link("mixed/absolute", "/")
        .link("mixed/inside", "../sorted/file2.txt")
        .link("mixed/inside folder", "../sorted")
        .file("odd/index.htm", "no index page")
        .file("odd/a:b c/d?e/deep.txt", "deep\n")
        .file(b"odd/caf\xe9/in.txt", "in a folder\n")
        .folder("many");
    let tree = ODD.iter().fold(tree, |tree, name| tree.file([b"odd/", *name].concat(), *name));
    Scenario { tree, hot: LOOKED_UP_EACH_TIME, ..Scenario::default() }
}

async fn entries(client: &mut Client, target: &str) -> Vec<Value> {
    let answer = client.get_with(target, "Accept: application/json\r\n").await;
    assert_eq!((answer.status, answer.field("Content-Type")), (200, Some("application/json")), "{target}");
    answer.json()["entries"].as_array().expect("entries").clone()
}

async fn names(client: &mut Client, target: &str) -> Vec<String> {
    let name = |entry: Value| entry["name"].as_str().expect("a name").to_owned();
    entries(client, target).await.into_iter().map(name).collect()
}

/// Returns the page of a folder as a browser receives it.
async fn page(client: &mut Client, target: &str) -> Answer {
    let answer = client.get_with(target, BROWSER).await;
    assert_eq!(answer.status, 200, "{target}");
    assert_eq!(answer.field("Content-Type"), Some("text/html; charset=utf-8"), "{target}");
    answer
}

/// Returns all links of a page, unescaped.
fn links(page: &str) -> Vec<String> {
    let values = page.split(" href=\"").skip(1).map(|rest| rest.split('"').next().expect("its end"));
    values.map(unescape).collect()
}

fn unescape(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&amp;", "&")
}

/// Resolves a link on the page at `base`, by the parts of RFC 3986 that occur here.
fn resolve(base: &str, link: &str) -> String {
    let base = base.split('?').next().unwrap_or_default();
    let folder = &base[..=base.rfind('/').expect("a path")];
    match link {
        _ if link.starts_with('/') => return link.to_owned(),
        _ if link.starts_with('?') => return format!("{base}{link}"),
        _ => assert!(!link.split('/').next().unwrap_or_default().contains(':'), "{link} has a scheme"),
    }
    let mut steps: Vec<&str> = folder.trim_end_matches('/').split('/').collect();
    let mut last = "";
    for step in link.split('/') {
        last = step;
        match step {
            "." | "" => {}
            ".." => drop(steps.pop()),
            _ => steps.push(step),
        }
    }
    let mut target = steps.join("/");
    if matches!(last, "" | "." | "..") {
        target.push('/');
    }
    target
}

async fn a_folder_is_listed_as_json(scene: Scene) {
    let mut client = scene.connect().await;
    let answer = client.get("/mixed/folder/?format=json").await;
    assert_eq!((answer.status, answer.field("Content-Type")), (200, Some("application/json")));
    assert_eq!(answer.field("Vary"), Some("Accept"));
    assert_eq!(answer.field("Cache-Control"), Some("no-cache"));
    assert_eq!(answer.field("X-Content-Type-Options"), Some("nosniff"));
    let listing = answer.json();
    assert_eq!(listing["path"], "/mixed/folder/");
    assert_eq!(listing["entries"].as_array().map(Vec::len), Some(1));
    for accepted in ["application/json", "application/json, text/html;q=0.5", "application/json, */*;q=0.1"] {
        let same = client.get_with("/mixed/folder/", &format!("Accept: {accepted}\r\n")).await;
        assert_eq!(same.body, answer.body, "{accepted}");
    }
}

/// wget, lftp and rclone send `*/*` or nothing, and follow the links of a page.
async fn a_folder_is_a_page_unless_json_is_wanted(scene: Scene) {
    let mut client = scene.connect().await;
    let page = client.get("/mixed/folder/").await;
    assert_eq!(page.field("Content-Type"), Some("text/html; charset=utf-8"));
    assert!(page.text().contains("<a href=\"in.txt\">"), "{}", page.text());
    for accepted in ["*/*", "image/png", "text/html, application/json", ""] {
        let same = client.get_with("/mixed/folder/", &format!("Accept: {accepted}\r\n")).await;
        assert_eq!(same.body, page.body, "{accepted}");
    }
}

async fn an_entry_says_what_its_own_answer_would(scene: Scene) {
    let mut client = scene.connect().await;
    let entries = entries(&mut client, "/sorted/").await;
    assert_eq!(entries.len(), 7);
    for entry in &entries {
        let target = format!("/sorted/{}", entry["href"].as_str().expect("a link"));
        let answer = client.get(&target).await;
        assert_eq!(answer.status, 200, "{target}");
        let is_folder = entry["kind"] == "folder";
        assert_eq!(target.ends_with('/'), is_folder, "{target}");
        assert!(is_folder || entry["kind"] == "file", "{entry}");
        if is_folder {
            assert!(entry.get("size").is_none(), "{entry}");
        } else {
            assert_eq!(entry["size"], answer.body.len(), "{entry}");
            assert_eq!(entry["etag"].as_str(), answer.field("ETag"), "{entry}");
        }
    }
    let alone = entries.iter().find(|entry| entry["name"] == "alone.txt").expect("it is listed");
    assert_eq!((&alone["modified"], &alone["size"]), (&"1994-11-06T08:49:37Z".into(), &0.into()));
}

async fn folders_come_first_and_numbers_count(scene: Scene) {
    let mut client = scene.connect().await;
    let (folders, files) =
        (["Folder A", "folder b"], ["alone.txt", "File1.txt", "file2.txt", "file10.txt", "same size.txt"]);
    let expected = [&folders[..], &files[..]].concat();
    for query in ["", "?", "?sort=name", "?sort=name&order=asc", "?sort=colour&order=up", "?x=y&&="] {
        assert_eq!(names(&mut client, &format!("/sorted/{query}")).await, expected, "{query}");
    }
    let backwards: Vec<&str> = folders.into_iter().rev().chain(files.into_iter().rev()).collect();
    assert_eq!(names(&mut client, "/sorted/?order=desc").await, backwards);
}

async fn a_listing_is_sorted_as_the_query_says(scene: Scene) {
    let mut client = scene.connect().await;
    let by_size = ["alone.txt", "file2.txt", "same size.txt", "file10.txt", "File1.txt"];
    let largest_first = ["File1.txt", "file10.txt", "file2.txt", "same size.txt", "alone.txt"];
    let by_time = ["alone.txt", "file10.txt", "File1.txt", "file2.txt", "same size.txt"];
    let newest_first: Vec<&str> = by_time.into_iter().rev().collect();
    for (query, expected) in [
        ("sort=size", &by_size[..]),
        ("sort=size&order=desc", &largest_first[..]),
        ("order=asc&sort=modified", &by_time[..]),
        ("sort=modified&order=desc", &newest_first[..]),
    ] {
        let names = names(&mut client, &format!("/sorted/?{query}")).await;
        assert_eq!(names[2..], *expected, "{query}");
        assert!(names[..2].iter().all(|name| name.to_lowercase().starts_with("folder")), "{query}");
    }
}

async fn a_page_has_the_same_order_as_the_json(scene: Scene) {
    let mut client = scene.connect().await;
    for query in ["", "?sort=size&order=desc", "?sort=modified&order=asc"] {
        let target = format!("/sorted/{query}");
        let hrefs: Vec<String> = entries(&mut client, &target)
            .await
            .iter()
            .map(|entry| entry["href"].as_str().expect("a link").to_owned())
            .collect();
        let links = links(&page(&mut client, &target).await.text());
        let listed: Vec<&String> = links.iter().filter(|link| hrefs.contains(link)).collect();
        assert!(listed.into_iter().eq(&hrefs), "{query}: {links:?}");
    }
}

async fn an_entry_without_a_url_is_not_listed(scene: Scene) {
    let mut client = scene.connect().await;
    let shown = names(&mut client, "/mixed/").await;
    assert_eq!(shown, ["folder", "inside folder", "inside", "line\nbreak", "seen.txt"]);
    // The forms that sort have fields of the type `hidden`.
    let page = page(&mut client, "/mixed/").await.text().replace("type=\"hidden\"", "");
    for hidden in ["hidden", ".git", "well-known", "pipe", "loop", "dangling", "outside", "absolute"] {
        assert!(!page.contains(&format!("{hidden}\"")) && !page.contains(&format!(">{hidden}")), "{hidden}");
    }
}

async fn a_link_within_the_site_is_listed_as_what_it_leads_to(scene: Scene) {
    let mut client = scene.connect().await;
    let entries = entries(&mut client, "/mixed/").await;
    let (folder, file) = (&entries[1], &entries[2]);
    assert_eq!((&folder["kind"], &folder["href"]), (&"folder".into(), &"inside%20folder/".into()));
    assert_eq!((&file["kind"], &file["size"]), (&"file".into(), &200.into()));
    assert_eq!(
        client.get("/mixed/inside%20folder/?format=json").await.json()["entries"].as_array().unwrap().len(),
        7
    );
}

async fn an_empty_folder_is_listed_too(scene: Scene) {
    let mut client = scene.connect().await;
    assert!(names(&mut client, "/empty/").await.is_empty());
    let page = page(&mut client, "/empty/").await.text();
    assert!(links(&page).contains(&"../".to_owned()), "{page}");
}

async fn every_link_of_a_page_leads_somewhere(scene: Scene) {
    let mut client = scene.connect().await;
    for base in [
        "/",
        "/odd/",
        "/odd/a%3Ab%20c/d%3Fe/",
        "/odd/caf%E9/",
        "/mixed/?sort=size&order=desc",
        "/mixed/inside%20folder/",
        "/empty/",
    ] {
        let text = page(&mut client, base).await.text();
        let links: Vec<String> = links(&text).into_iter().filter(|link| !link.starts_with("data:")).collect();
        assert!(links.len() > 1, "{base}");
        for link in links {
            let target = resolve(base, &link);
            let answer = client.get_with(&target, BROWSER).await;
            assert_eq!(answer.status, 200, "{link} on {base} leads to {target}");
        }
    }
}

async fn a_name_of_any_bytes_is_listed_and_its_link_leads_to_it(scene: Scene) {
    let mut client = scene.connect().await;
    let entries = entries(&mut client, "/odd/").await;
    let links = links(&page(&mut client, "/odd/").await.text());
    for name in ODD {
        let text = String::from_utf8_lossy(name);
        let entry = entries.iter().find(|entry| entry["name"] == *text).expect("it is listed");
        let href = entry["href"].as_str().expect("a link");
        assert!(links.iter().any(|link| link == href), "{text} is not on the page");
        // The contents of each file are its name.
        assert_eq!(client.get(&resolve("/odd/", href)).await.body, name, "{text}");
    }
}

async fn no_name_is_ever_markup(scene: Scene) {
    let mut client = scene.connect().await;
    let answer = page(&mut client, "/odd/").await;
    let text = answer.text();
    assert!(!text.contains("<script") && !text.contains("&b;") && !text.contains("href=\"javascript:"));
    assert!(text.contains("&lt;script&gt;alert(1)"));
    assert!(text.contains("a&amp;b;"));
    assert!(text.contains("grüße 日本"));
}

async fn a_page_may_load_and_run_nothing(scene: Scene) {
    let mut client = scene.connect().await;
    for target in ["/", "/empty/", "/odd/"] {
        let answer = page(&mut client, target).await;
        let policy = answer.field("Content-Security-Policy").expect("a policy");
        assert!(policy.contains("default-src 'none'") && !policy.contains("script-src"), "{policy}");
        assert!(policy.contains("frame-ancestors 'self'"), "{policy}");
        assert_eq!(answer.field("X-Content-Type-Options"), Some("nosniff"));
        assert_eq!(answer.field("Vary"), Some("Accept"));
        assert_eq!(answer.field("Cache-Control"), Some("no-cache"));
    }
}

async fn a_listing_shows_the_folder_as_it_is_now(scene: Scene) {
    let mut client = scene.connect().await;
    let before = entries(&mut client, "/mixed/folder/").await;
    scene.io.sleep(Duration::from_millis(20)).await;
    scene.write("mixed/folder/another.txt", b"new");
    scene.write("mixed/folder/in.txt", b"changed and longer");
    let after = entries(&mut client, "/mixed/folder/").await;
    assert_eq!((after.len(), &after[0]["name"]), (2, &"another.txt".into()));
    assert_eq!(after[1]["size"], 18);
    assert_ne!(after[1]["etag"], before[0]["etag"]);
    scene.remove("mixed/folder/in.txt");
    assert_eq!(names(&mut client, "/mixed/folder/").await, ["another.txt"]);
}

async fn a_folder_of_many_files_is_listed_whole(scene: Scene) {
    let count = if scene.engine == Engine::Simulator { 200 } else { 2_000 };
    let mut expected = Vec::new();
    for number in 0..count {
        let mut name = String::new();
        write!(name, "file {number}").expect("a string takes all");
        scene.write(&format!("many/{name}"), b"");
        expected.push(name);
    }
    let mut client = scene.connect().await;
    assert_eq!(names(&mut client, "/many/").await, expected);
    let links = links(&page(&mut client, "/many/").await.text());
    assert_eq!(links.iter().filter(|link| link.starts_with("file%20")).count(), count);
    assert_eq!(client.get("/mixed/seen.txt").await.text(), "seen");
}

behaviours!(scenario and tls;
    a_folder_is_listed_as_json,
    a_folder_is_a_page_unless_json_is_wanted,
    an_entry_says_what_its_own_answer_would,
    folders_come_first_and_numbers_count,
    a_listing_is_sorted_as_the_query_says,
    a_page_has_the_same_order_as_the_json,
    an_entry_without_a_url_is_not_listed,
    a_link_within_the_site_is_listed_as_what_it_leads_to,
    an_empty_folder_is_listed_too,
    every_link_of_a_page_leads_somewhere,
    a_name_of_any_bytes_is_listed_and_its_link_leads_to_it,
    no_name_is_ever_markup,
    a_page_may_load_and_run_nothing,
    a_listing_shows_the_folder_as_it_is_now,
    a_folder_of_many_files_is_listed_whole,
);

/// In the simulator alone: so many files take too long on a disk.
#[test]
fn a_folder_of_too_many_files_is_listed_in_pages_only() {
    let scenario = Scenario { accounts: Some(settings()), ..Scenario::default() };
    simulated(0, Faults::none(), &scenario, |scene| async move {
        let mut alice = Person::new(&scene, "alice").await;
        alice.put("/files/0", "").await;
        for file in 1..=LISTING_ENTRIES_MAX {
            scene.write_home("alice", &file.to_string(), b"");
            scene.write(&file.to_string(), b"");
        }
        scene.write("one more", b"");
        for answer in [alice.get("/files/?format=json").await, alice.get("/?format=json").await] {
            assert!(answer.problem(503).contains("in pages") && answer.field("Retry-After").is_some());
        }
        let page = alice.get("/files/?format=json&limit=2").await.json();
        assert_eq!((page["entries"].as_array().map(Vec::len), &page["next"]), (Some(2), &Value::from("1")));
    });
}
