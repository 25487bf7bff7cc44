//! The trash: what is deleted over any protocol can be restored by its owner alone, and takes no room that is
//! needed.

use plimsoll_auth::{Permissions, Quota};
use plimsoll_tests::accounts::settings;
use plimsoll_tests::archive::unzipped;
use plimsoll_tests::{Answer, Ftp, FtpClient, Person, Scenario, Scene, behaviours};
use serde_json::{Value, json};

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), ftp: Some(Ftp::default()), ..Scenario::default() }
}

/// Returns the entries of an account's trash, the newest first.
async fn entries(person: &mut Person) -> Vec<Value> {
    let listed = person.get("/api/trash").await;
    assert_eq!(listed.status, 200, "{}", listed.text());
    listed.json()["entries"].as_array().unwrap().clone()
}

async fn paths(person: &mut Person) -> Vec<String> {
    entries(person).await.iter().map(|entry| entry["path"].as_str().unwrap().to_owned()).collect()
}

/// Returns the id of the entry that had a path.
async fn id_of(person: &mut Person, path: &str) -> String {
    let entries = entries(person).await;
    let entry = entries.iter().find(|entry| entry["path"] == path);
    entry.unwrap_or_else(|| panic!("{path} is not in {entries:?}"))["id"].as_str().unwrap().to_owned()
}

async fn restore(person: &mut Person, path: &str) -> Answer {
    let id = id_of(person, path).await;
    person.ask("POST", &format!("/api/trash/{id}/restore"), "", "").await
}

async fn a_deleted_file_and_folder_are_listed_and_restored(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for folder in ["/files/f", "/files/f/g"] {
        assert_eq!(alice.ask("MKCOL", folder, "", "").await.status, 201);
    }
    alice.put("/files/f/g/a%20b", "inner").await;
    alice.put("/files/c", "outer").await;
    let before = scene.home("alice");
    let deleted = alice.delete("/files/c").await;
    let id = deleted.field("Plimsoll-Trash").expect("the entry").to_owned();
    assert_eq!((deleted.status, &*id), (204, &*id_of(&mut alice, "/c").await));
    assert_eq!(alice.delete("/files/f/").await.status, 204);
    assert!(scene.home("alice").is_empty());
    let listed = entries(&mut alice).await;
    let of = |path: &str| listed.iter().find(|entry| entry["path"] == path).unwrap();
    assert_eq!((&of("/f")["kind"], &of("/f")["size"]), (&json!("folder"), &json!(5)));
    assert_eq!((&of("/c")["kind"], &of("/c")["url"]), (&json!("file"), &json!("/files/c")));
    assert!(of("/c")["expires"].as_str() > of("/c")["deleted"].as_str());
    let known = alice.get("/api/whoami").await.json();
    assert_eq!(known["usage"], json!({ "bytes": 10, "files": 2, "folders": 2 }));
    assert_eq!(known["trash"], known["usage"]);
    let restored = restore(&mut alice, "/f").await;
    assert_eq!((restored.status, restored.json()), (200, json!({ "path": "/f", "url": "/files/f" })));
    assert_eq!(restore(&mut alice, "/c").await.status, 200);
    assert_eq!(scene.home("alice"), before);
    assert!(entries(&mut alice).await.is_empty());
    alice.ask("POST", &format!("/api/trash/{id}/restore"), "", "").await.problem(404);
}

async fn a_restored_path_that_is_taken_is_refused_and_another_one_is_not(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "old").await;
    alice.delete("/files/a").await;
    alice.put("/files/a", "new").await;
    assert!(restore(&mut alice, "/a").await.problem(409).contains("another"));
    let id = id_of(&mut alice, "/a").await;
    let target = format!("/api/trash/{id}/restore");
    for (body, status) in [(json!({ "path": "/../b" }), 400), (json!({ "path": "b", "href": "b" }), 400)] {
        alice.send("POST", &target, &body).await.problem(status);
    }
    let restored = alice.send("POST", &target, &json!({ "path": "/new/folder/b" })).await;
    assert_eq!((restored.status, &restored.json()["path"]), (200, &json!("/new/folder/b")));
    assert_eq!(alice.get("/files/a").await.text(), "new");
    assert_eq!(alice.get("/files/new/folder/b").await.text(), "old");
}

async fn files_deleted_for_good_are_gone(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for name in ["a", "b", "c", "d"] {
        alice.put(&format!("/files/{name}"), "12345").await;
    }
    let deleted = alice.delete("/files/a?trash=no").await;
    assert_eq!((deleted.status, deleted.field("Plimsoll-Trash")), (204, None));
    alice.delete("/files/b?trash=maybe").await.problem(400);
    for name in ["b", "c", "d"] {
        alice.delete(&format!("/files/{name}")).await;
    }
    assert_eq!(entries(&mut alice).await.len(), 3);
    let id = id_of(&mut alice, "/b").await;
    assert_eq!(alice.delete(&format!("/api/trash/{id}")).await.status, 204);
    alice.delete(&format!("/api/trash/{id}")).await.problem(404);
    assert_eq!(entries(&mut alice).await.len(), 2);
    assert_eq!(alice.delete("/api/trash").await.status, 204);
    assert!(entries(&mut alice).await.is_empty());
    assert_eq!(alice.get("/api/whoami").await.json()["usage"]["bytes"], 0);
}

async fn a_file_deleted_over_ftp_is_restored_over_http(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut client = FtpClient::of(&scene, "alice").await;
    client.command("MKD f").await.expect(257);
    client.stor("f/a", "over FTP").await;
    client.command("DELE f/a").await.expect(250);
    client.command("RMD f").await.expect(250);
    assert_eq!(paths(&mut alice).await, ["/f/a"], "an empty folder is no entry");
    assert_eq!(restore(&mut alice, "/f/a").await.status, 200);
    assert_eq!(client.retr("f/a").await, b"over FTP");
    for path in ["trash", "../trash", "pending/../../trash"] {
        assert_eq!(client.command(format!("CWD {path}")).await.code, 550, "{path}");
    }
}

async fn a_deleted_file_is_in_no_listing_search_or_archive_and_its_link_has_ended(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut visitor = scene.connect().await;
    alice.ask("MKCOL", "/files/docs", "", "").await;
    alice.put("/files/docs/report", "deleted").await;
    let new = json!({ "path": "/docs/report", "permission": "read" });
    let link = alice.send("POST", "/api/links", &new).await.json()["url"].as_str().unwrap().to_owned();
    let link = link.split_once("://test").expect("this server").1;
    assert_eq!(visitor.get(link).await.text(), "deleted");
    assert_eq!(alice.delete("/files/docs/report").await.status, 204);
    visitor.get(link).await.problem(404);
    assert_eq!(alice.get("/api/search?name=report").await.json()["entries"], json!([]));
    let archive = alice.get("/files/?archive=zip").await;
    assert_eq!(unzipped(&archive.body).into_keys().collect::<Vec<_>>(), ["docs"]);
    let found = alice.ask("PROPFIND", "/files/docs/", "Depth: 1\r\n", "").await;
    assert!(found.status == 207 && !found.text().contains("report"), "{}", found.text());
    // An entry that another one replaces is not kept.
    for name in ["new", "old"] {
        alice.put(&format!("/files/{name}"), name).await;
    }
    let moved = alice.ask("MOVE", "/files/new", "Destination: /files/old\r\n", "").await;
    assert_eq!((moved.status, paths(&mut alice).await), (204, vec!["/docs/report".to_owned()]));
    assert_eq!(restore(&mut alice, "/docs/report").await.status, 200);
    assert_eq!(alice.get("/files/docs/report").await.text(), "deleted");
    visitor.get(link).await.problem(404);
}

async fn a_file_deleted_by_others_in_a_share_is_in_the_owners_trash(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut bob = Person::new(&scene, "bob").await;
    alice.ask("MKCOL", "/files/docs", "", "").await;
    alice.put("/files/docs/a", "of alice").await;
    alice.share("/docs", "bob", "write").await;
    alice.share("/docs/a", "bob", "read").await;
    bob.delete("/shared/alice/docs/a?trash=no").await.problem(403);
    let deleted = bob.delete("/shared/alice/docs/a").await;
    assert_eq!((deleted.status, deleted.field("Plimsoll-Trash")), (204, None));
    assert!(entries(&mut bob).await.is_empty());
    let id = id_of(&mut alice, "/docs/a").await;
    bob.ask("POST", &format!("/api/trash/{id}/restore"), "", "").await.problem(404);
    bob.delete(&format!("/api/trash/{id}")).await.problem(404);
    scene.connect().await.ask("GET", "/api/trash", "", "").await.problem(401);
    // A deleted share's path stays unshared.
    alice.delete("/files/docs").await;
    assert_eq!(restore(&mut alice, "/docs").await.status, 200);
    assert_eq!(restore(&mut alice, "/docs/a").await.status, 200);
    assert_eq!(alice.get("/files/docs/a").await.text(), "of alice");
    bob.get("/shared/alice/docs/a").await.problem(404);
    assert_eq!(alice.get("/api/shares").await.json()["shares"], json!([]));
}

async fn an_account_restores_and_deletes_only_as_it_is_permitted(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "kept").await;
    alice.delete("/files/a").await;
    let id = id_of(&mut alice, "/a").await;
    let (auth, io) = (&scene.accounts().auth, &scene.io);
    let may = Permissions { write: false, delete: false, ..Permissions::default() };
    auth.set_permissions(io, "alice", may).await.unwrap();
    let mut alice = Person::again(&scene, "alice").await;
    alice.ask("POST", &format!("/api/trash/{id}/restore"), "", "").await.problem(403);
    alice.delete(&format!("/api/trash/{id}")).await.problem(403);
    alice.delete("/api/trash").await.problem(403);
    assert_eq!(paths(&mut alice).await, ["/a"]);
}

async fn the_trash_gives_way_to_an_upload_that_needs_its_room(scene: Scene) {
    let quota = Quota { bytes: Some(100), files: None };
    let mut alice = Person::with(&scene, "alice", quota, Permissions::default()).await;
    for name in ["old", "young"] {
        assert_eq!(alice.put(&format!("/files/{name}"), vec![b'x'; 40]).await.status, 201);
        alice.delete(&format!("/files/{name}")).await;
        scene.io.sleep(std::time::Duration::from_millis(3)).await;
    }
    alice.put("/files/a", vec![b'a'; 101]).await.problem(507);
    assert_eq!(paths(&mut alice).await, ["/young", "/old"]);
    assert_eq!(alice.put("/files/a", vec![b'a'; 60]).await.status, 201);
    assert_eq!(paths(&mut alice).await, ["/young"]);
    assert_eq!(alice.get("/api/whoami").await.json()["usage"]["bytes"], 100);
}

async fn the_trash_is_listed_page_by_page(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for name in 0..5 {
        alice.put(&format!("/files/{name}"), "x").await;
        alice.delete(&format!("/files/{name}")).await;
    }
    let (mut found, mut target) = (Vec::new(), "/api/trash?limit=2".to_owned());
    loop {
        let page = alice.get(&target).await.json();
        found.extend(page["entries"].as_array().unwrap().clone());
        let Some(next) = page["next"].as_str() else { break };
        target = format!("/api/trash?limit=2&after={next}");
    }
    assert_eq!(found, entries(&mut alice).await);
    assert_eq!(found.len(), 5);
    for query in ["limit=0", "limit=1001", "limit=x"] {
        alice.get(&format!("/api/trash?{query}")).await.problem(400);
    }
    alice.get("/api/trash?after=x").await.problem(404);
}

behaviours!(scenario and remote and tls;
    a_deleted_file_and_folder_are_listed_and_restored,
    a_restored_path_that_is_taken_is_refused_and_another_one_is_not,
    files_deleted_for_good_are_gone,
    a_file_deleted_over_ftp_is_restored_over_http,
    a_deleted_file_is_in_no_listing_search_or_archive_and_its_link_has_ended,
    a_file_deleted_by_others_in_a_share_is_in_the_owners_trash,
    an_account_restores_and_deletes_only_as_it_is_permitted,
    the_trash_gives_way_to_an_upload_that_needs_its_room,
    the_trash_is_listed_page_by_page,
);
