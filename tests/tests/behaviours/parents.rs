//! Uploads into folders that do not exist: by a parameter of PUT, and over FTP by a permission of the
//! account.

use plimsoll_auth::Permissions;
use plimsoll_tests::accounts::settings;
use plimsoll_tests::{Ftp, FtpClient, Person, Scenario, Scene, behaviours};

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), ftp: Some(Ftp::default()), ..Scenario::default() }
}

async fn permit_parents(scene: &Scene, name: &str, parents: bool) {
    let may = Permissions { parents, ..Permissions::default() };
    scene.accounts().auth.set_permissions(&scene.io, name, may).await.unwrap();
}

fn names(scene: &Scene) -> Vec<String> {
    scene.home("alice").into_keys().collect()
}

async fn a_put_makes_the_folders_of_its_path_if_it_asks_for_that(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for target in ["/files/a/b/c", "/files/a/b/c?parents=false", "/files/a/b/c?x=true"] {
        alice.put(target, "x").await.problem(409);
    }
    alice.put("/files/a/b/c?parents=yes", "x").await.problem(400);
    assert!(names(&scene).is_empty());
    assert_eq!(alice.put("/files/a/b/c?parents=true", "x").await.status, 201);
    assert_eq!(alice.put("/files/a/b/c?parents=true", "y").await.status, 204);
    assert_eq!(alice.put("/files/a/d/e?x=1&parents=true", "z").await.status, 201);
    assert_eq!(alice.put("/files/f?parents=true", "z").await.status, 201);
    assert_eq!(names(&scene), ["a", "a/b", "a/b/c", "a/d", "a/d/e", "f"]);
    for target in ["/files/f/g?parents=true", "/files/f/g/h?parents=true"] {
        alice.put(target, "x").await.problem(409);
    }
    alice.put("/files/t%09/u?parents=true", "x").await.problem(400);
    let usage = alice.get("/api/whoami").await.json()["usage"].clone();
    assert_eq!((usage["files"].clone(), usage["folders"].clone()), (3.into(), 3.into()));
}

async fn a_share_is_not_made_again_and_gets_folders_in_it(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut bob = Person::new(&scene, "bob").await;
    assert_eq!(alice.put("/files/s/x?parents=true", "x").await.status, 201);
    alice.share("/s", "bob", "write").await;
    assert_eq!(bob.put("/shared/alice/s/a/b?parents=true", "y").await.status, 201);
    assert_eq!(names(&scene), ["s", "s/a", "s/a/b", "s/x"]);
    // The operator removes the folder; the share does not bring it back.
    scene.remove_in_home("alice", "s");
    bob.put("/shared/alice/s/a/b?parents=true", "y").await.problem(409);
    assert!(names(&scene).is_empty());
}

async fn ftp_makes_folders_for_an_account_that_is_permitted_it(scene: Scene) {
    let _alice = Person::new(&scene, "alice").await;
    let mut client = FtpClient::of(&scene, "alice").await;
    for line in ["STOR a/b/c", "APPE a/b/c"] {
        client.refused(line).await.expect(550);
    }
    client.command("MKD a/b/c").await.expect(550);
    assert!(names(&scene).is_empty());
    permit_parents(&scene, "alice", true).await;
    client.stor("cam/2027/11/27/a.jpg", "a").await;
    client.stor("cam/2027/11/27/a.jpg", "b").await;
    client.send("APPE cam/2028/log", "c").await.expect(226);
    assert_eq!(client.command("MKD d/e/f").await.expect(257).quoted(), "/d/e/f");
    client.command("MKD d/e/f").await.expect(550);
    client.command("CWD d/e/f").await.expect(250);
    client.stor("g/h", "i").await;
    assert_eq!(client.retr("/d/e/f/g/h").await, b"i");
    assert_eq!(client.retr("/cam/2027/11/27/a.jpg").await, b"b");
    client.refused("STOR /cam/2028/log/x/y").await.expect(550);
    permit_parents(&scene, "alice", false).await;
    client.refused("STOR n/o").await.expect(550);
}

behaviours!(scenario and remote and tls;
    a_put_makes_the_folders_of_its_path_if_it_asks_for_that,
    a_share_is_not_made_again_and_gets_folders_in_it,
    ftp_makes_folders_for_an_account_that_is_permitted_it,
);
