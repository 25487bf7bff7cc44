//! Permissions of an account: a removed permission is refused at the next command.

use plimsoll_auth::Permissions;
use plimsoll_tests::{Scene, behaviours};

use super::{alice, until_moved, with_accounts};

async fn permit(scene: &Scene, may: Permissions) {
    scene.accounts().auth.set_permissions(&scene.io, "alice", may).await.unwrap();
}

async fn an_account_without_read_downloads_and_lists_nothing(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "x").await;
    permit(&scene, Permissions { read: false, ..Permissions::default() }).await;
    for line in ["RETR a", "LIST", "NLST", "MLSD"] {
        let refused = client.refused(line).await;
        assert_eq!(refused.code, 550, "{line}: {}", refused.text());
    }
    for line in ["MLST a", "HASH a"] {
        client.command(line).await.expect(550);
    }
    permit(&scene, Permissions::default()).await;
    assert_eq!(client.retr("a").await, b"x");
}

async fn an_account_without_write_adds_nothing(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "x").await;
    permit(&scene, Permissions { write: false, ..Permissions::default() }).await;
    for line in ["STOR a", "STOR b", "APPE a", "STOU"] {
        client.refused(line).await.expect(550);
    }
    for line in ["MKD b", "MFMT 20200101000000 a"] {
        client.command(line).await.expect(550);
    }
    assert_eq!(client.retr("a").await, b"x");
    permit(&scene, Permissions::default()).await;
    client.stor("a", "y").await;
}

async fn an_account_without_delete_may_add_and_replaces_nothing(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "x").await;
    client.command("MKD folder").await.expect(257);
    permit(&scene, Permissions { delete: false, ..Permissions::default() }).await;
    client.stor("b", "new\n").await;
    client.refused("STOR a").await.expect(550);
    client.command("DELE a").await.expect(550);
    client.command("RMD folder").await.expect(550);
    if client.command("RNFR a").await.code == 350 {
        client.command("RNTO c").await.expect(550);
    }
    assert_eq!(client.retr("a").await, b"x");
    assert_eq!(scene.home("alice").len(), 3);
}

async fn a_permission_that_ends_during_a_transfer_ends_the_next(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let mut data = client.begin("STOR a").await;
    data.send("x").await.unwrap();
    until_moved(&scene, &mut client, 1).await;
    permit(&scene, Permissions { write: false, ..Permissions::default() }).await;
    // The transfer may end with its permission before this does.
    let _ = data.finish().await;
    client.reply().await;
    client.refused("STOR b").await.expect(550);
    assert!(!scene.home("alice").contains_key("b"));
}

behaviours!(with_accounts and remote and tls;
    an_account_without_read_downloads_and_lists_nothing,
    an_account_without_write_adds_nothing,
    an_account_without_delete_may_add_and_replaces_nothing,
    a_permission_that_ends_during_a_transfer_ends_the_next,
);
