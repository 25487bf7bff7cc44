//! Folders: deleting, moving and copying (RFC 4918).

use plimsoll_tests::accounts::{FolderContents, settings};
use plimsoll_tests::{Person, Scenario, Scene, behaviours};

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), ..Scenario::default() }
}

/// Creates a test user with `docs/a`, `docs/deep/b` and `file`.
async fn furnished(scene: &Scene, name: &str) -> Person {
    let mut person = Person::new(scene, name).await;
    for folder in ["/files/docs", "/files/docs/deep/"] {
        assert_eq!(person.ask("MKCOL", folder, "", "").await.status, 201);
    }
    for (file, bytes) in [("/files/docs/a", "one"), ("/files/docs/deep/b", "two"), ("/files/file", "three")] {
        assert_eq!(person.put(file, bytes).await.status, 201);
    }
    person
}

fn paths(held: &FolderContents) -> Vec<&str> {
    held.keys().map(String::as_str).collect()
}

/// Asserts that the server's usage, without the trash, equals the contents on the disk.
async fn assert_counted(scene: &Scene, person: &mut Person) {
    let known = person.get("/api/whoami").await.json();
    let number = |of: &str, unit: &str| known[of][unit].as_u64().unwrap();
    let counted = ["bytes", "files", "folders"].map(|unit| number("usage", unit) - number("trash", unit));
    let held = scene.home(&person.name);
    let bytes: usize = held.values().flatten().map(Vec::len).sum();
    let files = held.values().flatten().count();
    assert_eq!(counted, [bytes, files, held.len() - files].map(|number| number as u64));
}

fn to(destination: &str) -> String {
    format!("Destination: {destination}\r\n")
}

async fn a_folder_is_made_where_there_is_nothing(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let made = alice.ask("MKCOL", "/files/docs", "", "").await;
    assert_eq!((made.status, made.field("Location")), (201, Some("/files/docs")));
    alice.put("/files/file", "x").await;
    for taken in ["/files/docs", "/files/docs/", "/files/file", "/files/"] {
        let refused = alice.ask("MKCOL", taken, "", "").await;
        assert!(!refused.problem(405).is_empty(), "{taken}");
        assert!(refused.field("Allow").expect("what it takes").contains("DELETE"));
    }
    for orphan in ["/files/none/docs", "/files/file/docs"] {
        let refused = alice.ask("MKCOL", orphan, "", "").await;
        assert!(refused.problem(409).contains("Create it first"));
        assert_eq!(refused.json()["code"], "no-parent-folder");
    }
    alice.ask("MKCOL", "/files/more", "Content-Type: text/xml\r\n", "<x/>").await.problem(415);
    assert_eq!(paths(&scene.home("alice")), ["docs", "file"]);
}

async fn deleting_a_folder_takes_all_that_is_in_it(scene: Scene) {
    let mut alice = furnished(&scene, "alice").await;
    alice.ask("DELETE", "/files/docs/", "Depth: 0\r\n", "").await.problem(400);
    alice.delete("/files/file/").await.problem(404);
    for missing in ["/files/none", "/files/docs/none", "/files/file/x", "/files/none/x"] {
        alice.delete(missing).await.problem(404);
    }
    alice.delete("/files/").await.problem(403);
    assert_eq!(scene.home("alice").len(), 5);
    assert_eq!(alice.ask("DELETE", "/files/docs/", "Depth: infinity\r\n", "").await.status, 204);
    assert_eq!(paths(&scene.home("alice")), ["file"]);
    assert_eq!(alice.delete("/files/file").await.status, 204);
    alice.get("/files/file").await.problem(404);
    assert_counted(&scene, &mut alice).await;
    scene.until(|| scene.pending("alice").is_empty()).await;
}

async fn a_moved_entry_has_the_new_name_and_not_the_old_one(scene: Scene) {
    let mut alice = furnished(&scene, "alice").await;
    let moved = alice.ask("MOVE", "/files/file", &to("/files/docs/new%20name"), "").await;
    assert_eq!((moved.status, moved.field("Location")), (201, Some("/files/docs/new%20name")));
    let whole = alice.ask("MOVE", "/files/docs/", &to("http://test/files/papers/"), "").await;
    assert_eq!(whole.status, 201, "{}", whole.text());
    assert_eq!(
        paths(&scene.home("alice")),
        ["papers", "papers/a", "papers/deep", "papers/deep/b", "papers/new name"]
    );
    let replaced = alice.ask("MOVE", "/files/papers/a", &to("/files/papers/deep/b"), "").await;
    assert_eq!((replaced.status, replaced.field("Location")), (204, None));
    assert_eq!(alice.get("/files/papers/deep/b").await.text(), "one");
    assert_counted(&scene, &mut alice).await;
}

async fn a_copied_entry_is_there_twice(scene: Scene) {
    let mut alice = furnished(&scene, "alice").await;
    assert_eq!(alice.ask("COPY", "/files/file", &to("/files/docs/copy"), "").await.status, 201);
    assert_eq!(alice.ask("COPY", "/files/docs/", &to("/files/all/"), "").await.status, 201);
    assert_eq!(
        alice.ask("COPY", "/files/docs/", &format!("{}Depth: 0\r\n", to("/files/bare")), "").await.status,
        201
    );
    assert_eq!(
        paths(&scene.home("alice")),
        [
            "all",
            "all/a",
            "all/copy",
            "all/deep",
            "all/deep/b",
            "bare",
            "docs",
            "docs/a",
            "docs/copy",
            "docs/deep",
            "docs/deep/b",
            "file"
        ]
    );
    assert_eq!(alice.get("/files/all/deep/b").await.text(), "two");
    assert_eq!(alice.ask("COPY", "/files/file", &to("/files/all/a"), "").await.status, 204);
    assert_eq!(
        (alice.get("/files/all/a").await.text(), alice.get("/files/docs/a").await.text()),
        ("three".into(), "one".into())
    );
    assert_counted(&scene, &mut alice).await;
    scene.until(|| scene.pending("alice").is_empty()).await;
}

async fn an_existing_entry_is_replaced_only_with_overwrite(scene: Scene) {
    let mut alice = furnished(&scene, "alice").await;
    let kept = format!("{}Overwrite: F\r\n", to("/files/docs/a"));
    for method in ["MOVE", "COPY"] {
        assert!(alice.ask(method, "/files/file", &kept, "").await.problem(412).contains("Overwrite"));
        alice
            .ask(method, "/files/file", &format!("{}Overwrite: yes\r\n", to("/files/x")), "")
            .await
            .problem(400);
    }
    assert_eq!(alice.get("/files/docs/a").await.text(), "one");
    let replacing = format!("{}Overwrite: T\r\n", to("/files/docs/"));
    assert_eq!(alice.ask("MOVE", "/files/file", &replacing, "").await.status, 204);
    assert_eq!(paths(&scene.home("alice")), ["docs"]);
    assert_eq!(alice.get("/files/docs").await.text(), "three");
    assert_counted(&scene, &mut alice).await;
}

async fn a_destination_is_on_this_server_and_can_be(scene: Scene) {
    let mut alice = furnished(&scene, "alice").await;
    let before = scene.home("alice");
    for method in ["MOVE", "COPY"] {
        for (fields, status) in [
            (String::new(), 400),
            (to("files/x"), 400),
            (to("/files/../x"), 400),
            (to("/files/%2e%2e/x"), 400),
            (to("/files/a%2fb"), 400),
            (to("http://elsewhere.example/files/x"), 502),
            (to("/x"), 403),
            (to("/api/whoami"), 403),
            (to("/files/"), 403),
            (to("/files/none/x"), 409),
            (to("/files/file/x"), 403),
            (to("/shared/bob/x"), 404),
            (format!("{}Depth: 1\r\n", to("/files/x")), 400),
            (format!("{}If-Match: *\r\n", to("/files/x")), 400),
        ] {
            let answer = alice.ask(method, "/files/file", &fields, "").await;
            assert!(!answer.problem(status).is_empty(), "{method} {fields}");
        }
        alice.ask(method, "/files/missing", &to("/files/x"), "").await.problem(404);
        alice.ask(method, "/files/docs", &to("/files/docs/deep/docs"), "").await.problem(403);
        alice.ask(method, "/files/docs", &to("/files/docs"), "").await.problem(403);
    }
    alice.ask("MOVE", "/files/docs", &format!("{}Depth: 0\r\n", to("/files/x")), "").await.problem(400);
    assert_eq!(scene.home("alice"), before);
}

behaviours!(scenario and remote and tls;
    a_folder_is_made_where_there_is_nothing,
    deleting_a_folder_takes_all_that_is_in_it,
    a_moved_entry_has_the_new_name_and_not_the_old_one,
    a_copied_entry_is_there_twice,
    an_existing_entry_is_replaced_only_with_overwrite,
    a_destination_is_on_this_server_and_can_be,
);
