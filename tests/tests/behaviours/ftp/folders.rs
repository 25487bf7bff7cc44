//! Making, removing and renaming: MKD, RMD, DELE, RNFR and RNTO.

use plimsoll_tests::{Scene, behaviours};

use super::{alice, with_accounts};

async fn folders_are_created_and_reported_with_their_whole_path(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    assert_eq!(client.command("MKD a").await.expect(257).quoted(), "/a");
    client.command("CWD a").await.expect(250);
    assert_eq!(client.command("XMKD b \"c\"").await.expect(257).quoted(), "/a/b \"c\"");
    client.command("CWD b \"c\"").await.expect(250);
    assert_eq!(client.command("XPWD").await.expect(257).quoted(), "/a/b \"c\"");
    for name in ["/a", "../b \"c\"", "/", "/none/a", "."] {
        client.command(format!("MKD {name}")).await.expect(550);
    }
    assert_eq!(scene.home("alice").into_keys().collect::<Vec<_>>(), ["a", "a/b \"c\""]);
}

async fn only_an_empty_folder_is_removed(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.command("MKD a").await.expect(257);
    client.stor("a/b", "x").await;
    client.command("RMD a").await.expect(550);
    client.command("RMD a/b").await.expect(550);
    client.command("RMD none").await.expect(550);
    client.command("RMD /").await.expect(550);
    assert_eq!(scene.home("alice").len(), 2);
    client.command("DELE a/b").await.expect(250);
    client.command("RMD a").await.expect(250);
    assert!(scene.home("alice").is_empty());
}

async fn only_a_file_is_deleted(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.command("MKD a").await.expect(257);
    client.stor("b", "x").await;
    for name in ["a", "none", "/", "b/c", "/shared"] {
        let answer = client.command(format!("DELE {name}")).await;
        assert!(matches!(answer.code, 550 | 553), "{name}: {}", answer.text());
    }
    client.command("DELE b").await.expect(250);
    client.command("DELE b").await.expect(550);
    assert_eq!(scene.home("alice").into_keys().collect::<Vec<_>>(), ["a"]);
}

async fn a_file_and_a_folder_get_other_names(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.command("MKD a").await.expect(257);
    client.stor("a/b", "x").await;
    for (from, to) in [("a/b", "a/c d"), ("a", "z"), ("/z/c d", "e")] {
        client.command(format!("RNFR {from}")).await.expect(350);
        client.command(format!("RNTO {to}")).await.expect(250);
    }
    let held = scene.home("alice");
    assert_eq!(held.keys().collect::<Vec<_>>(), ["e", "z"]);
    assert_eq!(held["e"].as_deref(), Some(&b"x"[..]));
}

async fn a_name_replaces_a_file_and_never_a_folder(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.command("MKD folder").await.expect(257);
    client.command("MKD other").await.expect(257);
    client.stor("a", "new").await;
    client.stor("b", "old").await;
    for (from, to) in
        [("a", "folder"), ("other", "folder"), ("folder", "b"), ("folder", "folder/inner"), ("a", "none/a")]
    {
        client.command(format!("RNFR {from}")).await.expect(350);
        let answer = client.command(format!("RNTO {to}")).await;
        assert!(matches!(answer.code, 550 | 553), "{from} to {to}: {}", answer.text());
    }
    assert_eq!(scene.home("alice").len(), 4);
    client.command("RNFR a").await.expect(350);
    client.command("RNTO b").await.expect(250);
    assert_eq!(client.retr("b").await, b"new");
    client.command("RNFR b").await.expect(350);
    client.command("RNTO b").await.expect(250);
    assert_eq!(client.retr("b").await, b"new");
}

async fn a_name_of_the_same_thing_is_not_its_new_name(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.command("MKD dir").await.expect(257);
    client.stor("f", "x").await;
    scene.link_into_home("alice", "l", "f");
    scene.link_into_home("alice", "d", "dir");
    for (from, to) in [("l", "f"), ("f", "l"), ("dir", "d/y"), ("dir", "/shared/alice/d/y")] {
        client.command(format!("RNFR {from}")).await.expect(350);
        client.command(format!("RNTO {to}")).await.expect(553);
    }
    assert_eq!((client.retr("f").await, client.retr("l").await), (b"x".to_vec(), b"x".to_vec()));
    client.command("RNFR l").await.expect(350);
    client.command("RNTO m").await.expect(250);
    assert_eq!(client.retr("m").await, b"x");
}

async fn rnto_follows_rnfr_at_once(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "x").await;
    client.command("RNTO b").await.expect(503);
    client.command("RNFR none").await.expect(550);
    client.command("RNTO b").await.expect(503);
    client.command("RNFR a").await.expect(350);
    client.command("NOOP").await.expect(200);
    client.command("RNTO b").await.expect(503);
    client.command("RNFR a").await.expect(350);
    client.command("RNTO b").await.expect(250);
    client.command("RNTO c").await.expect(503);
}

behaviours!(with_accounts and remote and tls;
    folders_are_created_and_reported_with_their_whole_path,
    only_an_empty_folder_is_removed,
    only_a_file_is_deleted,
    a_file_and_a_folder_get_other_names,
    a_name_replaces_a_file_and_never_a_folder,
    a_name_of_the_same_thing_is_not_its_new_name,
    rnto_follows_rnfr_at_once,
);
