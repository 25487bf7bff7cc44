//! Moves and copies between two names of one thing, over HTTP and FTP, in one's own home and in a share.

use plimsoll_tests::accounts::settings;
use plimsoll_tests::{Person, Scenario, Scene, behaviours};

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), ..Scenario::default() }
}

/// Creates alice with `docs/f` and `docs/dir/x`, a link to the file and one to the folder, and shares `docs`.
async fn plant(scene: &Scene) -> Person {
    let mut alice = Person::new(scene, "alice").await;
    for folder in ["docs", "docs/dir"] {
        assert_eq!(alice.ask("MKCOL", &format!("/files/{folder}"), "", "").await.status, 201);
    }
    for file in ["docs/f", "docs/dir/x"] {
        assert_eq!(alice.put(&format!("/files/{file}"), "the bytes").await.status, 201);
    }
    scene.link_into_home("alice", "docs/l", "f");
    scene.link_into_home("alice", "docs/d", "dir");
    alice
}

/// The moves that would destroy what they move.
const ONTO_ITSELF: [(&str, &str); 4] = [("l", "f"), ("f", "l"), ("dir", "d/y"), ("d/x", "dir")];

fn assert_unchanged(scene: &Scene) {
    let home = scene.home("alice");
    for file in ["docs/f", "docs/l", "docs/dir/x"] {
        assert_eq!(home.get(file).cloned().flatten(), Some(b"the bytes".to_vec()), "{file}");
    }
}

async fn a_move_or_copy_onto_another_name_of_the_same_thing_is_refused(scene: Scene) {
    let mut alice = plant(&scene).await;
    let mut bob = Person::new(&scene, "bob").await;
    alice.share("/docs", "bob", "write").await;
    for (from, to) in ONTO_ITSELF {
        for method in ["MOVE", "COPY"] {
            let destination = format!("Destination: /files/docs/{to}\r\n");
            alice.ask(method, &format!("/files/docs/{from}"), &destination, "").await.problem(403);
            let destination = format!("Destination: /shared/alice/docs/{to}\r\n");
            bob.ask(method, &format!("/shared/alice/docs/{from}"), &destination, "").await.problem(403);
            // The same home under its two names.
            alice.ask(method, &format!("/files/docs/{from}"), &destination, "").await.problem(403);
        }
        assert_unchanged(&scene);
    }
}

async fn a_folder_with_a_link_to_a_folder_outside_it_is_not_copied(scene: Scene) {
    let mut alice = plant(&scene).await;
    scene.link_into_home("alice", "docs/dir/out", "../dir");
    let to = "Destination: /files/copy\r\n";
    let detail = alice.ask("COPY", "/files/docs/dir/", to, "").await.problem(409);
    assert!(detail.contains("link"), "{detail}");
    let copied = alice.ask("COPY", "/files/docs/", to, "").await;
    assert_eq!(copied.status, 201, "{}", copied.text());
    assert_eq!(alice.get("/files/copy/l").await.text(), "the bytes");
    assert_eq!(alice.get("/files/copy/d/x").await.text(), "the bytes");
}

behaviours!(scenario and remote and tls;
    a_move_or_copy_onto_another_name_of_the_same_thing_is_refused,
    a_folder_with_a_link_to_a_folder_outside_it_is_not_copied,
);
