//! Search by name below a folder, over the API and as a page.

use plimsoll_store::limits::PATH_NAMES_MAX;
use plimsoll_tests::accounts::settings;
use plimsoll_tests::{Answer, Person, Scenario, Scene, behaviours};

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), ..Scenario::default() }
}

const FILES: [&str; 5] =
    ["2026/Report.txt", "2026/inner/my report (2).TXT", "other", "report", "z/Grüße.txt"];

async fn planted(scene: &Scene) -> Person {
    let mut alice = Person::new(scene, "alice").await;
    for folder in ["2026", "2026/inner", "z", "z/reports"] {
        assert_eq!(alice.ask("MKCOL", &format!("/files/{folder}"), "", "").await.status, 201);
    }
    FILES.into_iter().for_each(|file| scene.write_home("alice", file, b"1234"));
    alice
}

fn paths(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let entries = answer.json()["entries"].as_array().expect("entries").clone();
    entries.iter().map(|entry| entry["path"].as_str().expect("a path").to_owned()).collect()
}

/// Returns the results of a search and of all that continue it.
async fn all_paths(person: &mut Person, query: &str) -> Vec<String> {
    let (mut found, mut query) = (Vec::new(), format!("?{query}"));
    loop {
        let page = person.get(&format!("/api/search{query}")).await;
        found.extend(paths(&page));
        match page.json().get("next_href") {
            Some(next) => query = next.as_str().expect("a query").to_owned(),
            None => return found,
        }
    }
}

async fn entries_below_a_folder_are_found_by_a_part_of_their_name(scene: Scene) {
    let mut alice = planted(&scene).await;
    let found = alice.get("/api/search?name=REPORT").await;
    let all = ["/2026/Report.txt", "/2026/inner/my report (2).TXT", "/report", "/z/reports"];
    assert_eq!(paths(&found), all);
    let entry = &found.json()["entries"][1];
    assert_eq!(entry["href"], "/files/2026/inner/my%20report%20%282%29.TXT");
    assert_eq!((&entry["kind"], &entry["size"]), (&"file".into(), &4.into()));
    assert_eq!(found.json()["entries"][3]["href"], "/files/z/reports/");
    assert!(found.json().get("next_href").is_none());
    assert_eq!(paths(&alice.get("/api/search?path=/2026/inner&name=report").await), all[1..2]);
    // The name in its other Unicode form, in capitals.
    assert_eq!(paths(&alice.get("/api/search?name=GRU%CC%88").await), ["/z/Grüße.txt"]);
    for (query, status) in [("", 400), ("name=", 400), ("name=a&limit=0", 400), ("name=a&path=missing", 404)]
    {
        alice.get(&format!("/api/search?{query}")).await.problem(status);
    }
    scene.connect().await.get("/api/search?name=report").await.problem(401);
}

async fn a_search_continues_where_it_has_stopped(scene: Scene) {
    let mut alice = planted(&scene).await;
    let (mut found, mut query) = (Vec::new(), "?name=e&limit=1".to_owned());
    loop {
        let page = alice.get(&format!("/api/search{query}")).await;
        found.extend(paths(&page));
        match page.json().get("next_href") {
            Some(next) => query = next.as_str().expect("a query").to_owned(),
            None => break,
        }
        // The entry after which it continues may be gone.
        if found.len() == 2 {
            scene.remove_in_home("alice", "2026/inner");
        }
    }
    assert_eq!(found, ["/2026/Report.txt", "/2026/inner", "/other", "/report", "/z/Grüße.txt", "/z/reports"]);
}

/// A folder that was moved may have entries deeper than paths may be. A search of so many folders may take
/// several requests.
async fn entries_deeper_than_paths_may_be_do_not_end_a_search(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    assert_eq!(alice.ask("MKCOL", "/files/z", "", "").await.status, 201);
    let deep = "d/".repeat(PATH_NAMES_MAX);
    scene.write_home("alice", &format!("a/{deep}file"), b"");
    scene.write_home("alice", "z/end", b"");
    let found = all_paths(&mut alice, "name=d").await;
    // The first entry that is too deep, which the search does not enter everywhere.
    let too_deep = format!("/a/{}", deep.trim_end_matches('/'));
    assert_eq!((found.len(), found.last().map(String::as_str)), (PATH_NAMES_MAX + 1, Some("/z/end")));
    assert!(found.contains(&too_deep), "{found:?}");
    // A search may have stopped there.
    let after = too_deep.trim_start_matches('/');
    assert_eq!(all_paths(&mut alice, &format!("name=d&after={after}")).await, ["/z/end"]);
}

async fn a_shared_folder_is_searched_and_nothing_beside_it(scene: Scene) {
    let mut alice = planted(&scene).await;
    let mut bob = Person::new(&scene, "bob").await;
    bob.get("/api/search?owner=alice&path=2026&name=report").await.problem(404);
    alice.share("/2026", "bob", "read").await;
    let found = bob.get("/api/search?owner=alice&path=2026&name=report").await;
    assert_eq!(paths(&found), ["/2026/Report.txt", "/2026/inner/my report (2).TXT"]);
    assert_eq!(found.json()["entries"][0]["href"], "/shared/alice/2026/Report.txt");
    bob.get("/api/search?owner=alice&name=report").await.problem(403);
    bob.get("/api/search?owner=alice&path=z&name=report").await.problem(404);
    assert!(paths(&bob.get("/api/search?name=report").await).is_empty());
}

async fn the_page_finds_what_the_api_finds(scene: Scene) {
    let mut alice = planted(&scene).await;
    let folder = alice.ask("GET", "/files/2026/", "Accept: text/html\r\n", "").await.text();
    assert!(
        folder.contains("action=\"/app/search\"") && folder.contains("value=\"/files/2026/\""),
        "{folder}"
    );
    let found =
        alice.ask("GET", "/app/search?in=/files/2026/&name=report", "Accept: text/html\r\n", "").await;
    assert_eq!(found.status, 200);
    let text = found.text();
    assert!(text.contains("href=\"/files/2026/inner/my%20report%20%282%29.TXT\""), "{text}");
    assert!(!text.contains("href=\"/files/report\""), "{text}");
}

behaviours!(scenario and remote;
    entries_below_a_folder_are_found_by_a_part_of_their_name,
    a_search_continues_where_it_has_stopped,
    entries_deeper_than_paths_may_be_do_not_end_a_search,
    a_shared_folder_is_searched_and_nothing_beside_it,
    the_page_finds_what_the_api_finds,
);
