//! Names with control characters, which an operator or another program may have made: they are read, moved
//! away and removed over every protocol that can carry them, and no new one is made.

use plimsoll_tests::accounts::settings;
use plimsoll_tests::{Answer, Ftp, FtpClient, Person, Scenario, Scene, Tree, behaviours};

const TAB: &str = "a\tb\u{1b}[2J";
const TAB_ENCODED: &str = "a%09b%1B%5B2J";
const LINE: &str = "a\nb";
const LINE_ENCODED: &str = "a%0Ab";

fn scenario() -> Scenario {
    let tree = Tree::new().file(TAB, "of the site").file(LINE, "of the site").file("c", "c");
    let ftp = Some(Ftp { guests: true, ..Ftp::default() });
    Scenario { tree, accounts: Some(settings()), ftp, ..Scenario::default() }
}

fn names(answer: &Answer) -> Vec<String> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let entries = answer.json()["entries"].as_array().expect("entries").clone();
    let mut names: Vec<_> = entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

async fn with_files(scene: &Scene) -> Person {
    let mut alice = Person::new(scene, "alice").await;
    assert_eq!(alice.ask("MKCOL", "/files/d", "", "").await.status, 201);
    for name in [TAB, LINE] {
        scene.write_home("alice", &format!("d/{name}"), b"the bytes");
    }
    alice
}

async fn such_a_name_is_listed_read_replaced_moved_and_removed_over_http(scene: Scene) {
    let mut alice = with_files(&scene).await;
    assert_eq!(names(&alice.get("/files/d/?format=json").await), [TAB, LINE]);
    for name in [TAB_ENCODED, LINE_ENCODED] {
        let target = format!("/files/d/{name}");
        assert_eq!(alice.get(&target).await.text(), "the bytes", "{name}");
        assert_eq!(alice.put(&target, "replaced").await.status, 204, "{name}");
        assert_eq!(alice.get(&target).await.text(), "replaced", "{name}");
    }
    let moved = alice.ask("MOVE", &format!("/files/d/{LINE_ENCODED}"), "Destination: /files/e\r\n", "").await;
    assert_eq!(moved.status, 201, "{}", moved.text());
    assert_eq!(alice.delete(&format!("/files/d/{TAB_ENCODED}")).await.status, 204);
    assert!(names(&alice.get("/files/d/?format=json").await).is_empty());
}

async fn no_new_name_has_a_control_character(scene: Scene) {
    let mut alice = with_files(&scene).await;
    for name in ["x%09y", "x%0Ay", "%7F"] {
        alice.put(&format!("/files/{name}"), "x").await.problem(400);
        alice.ask("MKCOL", &format!("/files/{name}"), "", "").await.problem(400);
        for method in ["MOVE", "COPY"] {
            let to = format!("Destination: /files/{name}\r\n");
            alice.ask(method, &format!("/files/d/{TAB_ENCODED}"), &to, "").await.problem(400);
        }
    }
    let mut client = FtpClient::of(&scene, "alice").await;
    client.command("MKD x\ty").await.expect(553);
    client.refused("STOR x\ty").await.expect(553);
    assert_eq!(scene.home("alice").len(), 3);
}

async fn a_folder_with_such_names_is_emptied_over_ftp(scene: Scene) {
    let mut alice = with_files(&scene).await;
    let mut client = FtpClient::of(&scene, "alice").await;
    assert_eq!(client.fetch_lines("NLST d").await, [format!("d/{TAB}")]);
    client.command(format!("SIZE d/{TAB}")).await.expect(213);
    assert_eq!(client.retr(&format!("d/{TAB}")).await, b"the bytes");
    client.command(format!("RNFR d/{TAB}")).await.expect(350);
    client.command("RNTO d/c").await.expect(250);
    client.command("DELE d/c").await.expect(250);
    assert!(client.fetch_lines("LIST d").await.is_empty());
    let refused = client.command("RMD d").await;
    assert!(refused.code == 550 && refused.text().contains("line end"), "{}", refused.text());
    assert_eq!(alice.delete(&format!("/files/d/{LINE_ENCODED}")).await.status, 204);
    client.command("RMD d").await.expect(250);
}

async fn guests_find_one_file_by_one_name_over_every_protocol(scene: Scene) {
    let mut http = scene.connect().await;
    for name in [TAB_ENCODED, LINE_ENCODED] {
        assert_eq!(http.get(&format!("/{name}")).await.text(), "of the site");
    }
    let page = http.get("/").await.text();
    assert!(page.contains(TAB_ENCODED) && page.contains(LINE_ENCODED), "{page}");
    assert!(!page.contains('\u{1b}'), "{page}");
    let mut guest = FtpClient::connect(&scene).await;
    guest.command("USER anonymous").await.expect(331);
    guest.command("PASS me@example.org").await.expect(230);
    assert_eq!(guest.fetch_lines("NLST").await, [TAB, "c"]);
    guest.command(format!("SIZE {TAB}")).await.expect(213);
    assert_eq!(guest.retr(TAB).await, b"of the site");
}

async fn a_folder_that_lists_empty_is_removed(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for folder in ["d", "e"] {
        assert_eq!(alice.ask("MKCOL", &format!("/files/{folder}"), "", "").await.status, 201);
    }
    scene.link_into_home("alice", "d/dangling", "nowhere");
    scene.link_into_home("alice", "e/link", "../d");
    let mut client = FtpClient::of(&scene, "alice").await;
    assert!(client.fetch_lines("LIST d").await.is_empty());
    client.command("RMD d").await.expect(250);
    // The link of this one is dangling too, because its folder is gone.
    client.command("RMD e").await.expect(250);
    assert!(scene.home("alice").is_empty(), "{:?}", scene.home("alice"));
}

behaviours!(scenario and remote and tls;
    such_a_name_is_listed_read_replaced_moved_and_removed_over_http,
    no_new_name_has_a_control_character,
    a_folder_with_such_names_is_emptied_over_ftp,
    guests_find_one_file_by_one_name_over_every_protocol,
    a_folder_that_lists_empty_is_removed,
);
