//! A right that ends while a transfer uses it: the transfer ends, and no byte of it is committed.

use std::time::Duration;

use plimsoll_auth::Permissions;
use plimsoll_io::Instant;
use plimsoll_tests::accounts::PASSWORD;
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Engine, FtpClient, Person, Scene, behaviours};
use serde_json::json;

use super::{alice, large_bytes, until_moved, with_accounts};

/// Asserts that at most a second has passed, or ten on a real machine, which may be loaded.
fn assert_soon(scene: &Scene, since: Instant) {
    let most = Duration::from_secs(if scene.engine == Engine::Simulator { 1 } else { 10 });
    let took = scene.io.now() - since;
    assert!(took <= most, "{took:?}");
}

async fn an_upload_ends_with_the_password_that_it_was_logged_in_with(scene: Scene) {
    let (mut person, mut client) = alice(&scene).await;
    client.stor("a", "old").await;
    let mut data = client.begin("STOR a").await;
    data.send("begin").await.unwrap();
    until_moved(&scene, &mut client, 5).await;
    let change = json!({ "old": PASSWORD, "new": "another horse" });
    assert_eq!(person.send("PUT", "/api/password", &change).await.status, 204);
    let since = scene.io.now();
    client.reply().await.expect(421);
    assert_soon(&scene, since);
    client.expect_end().await;
    assert_eq!(scene.home("alice")["a"].as_deref(), Some(&b"old"[..]));
}

async fn an_upload_whose_end_comes_after_its_right_has_ended_is_not_committed(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "old").await;
    for (may, code) in
        [(Permissions { write: false, ..Permissions::default() }, 550), (Permissions::default(), 226)]
    {
        let mut data = client.begin("STOR a").await;
        data.send("new").await.unwrap();
        until_moved(&scene, &mut client, 3).await;
        scene.accounts().auth.set_permissions(&scene.io, "alice", may).await.unwrap();
        let _ = data.finish().await;
        client.reply().await.expect(code);
        let expected: &[u8] = if code == 226 { b"new" } else { b"old" };
        assert_eq!(scene.home("alice")["a"].as_deref(), Some(expected));
        scene.accounts().auth.set_permissions(&scene.io, "alice", Permissions::default()).await.unwrap();
    }
}

async fn a_download_ends_when_the_account_is_disabled(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    // The first upload creates the home.
    client.stor("first", "").await;
    let bytes = noise(4, large_bytes(scene.engine));
    scene.write_home("alice", "large", &bytes);
    let mut data = client.begin("RETR large").await;
    data.receive().await.unwrap().expect("its beginning");
    scene.accounts().auth.set_enabled(&scene.io, "alice", false).await.unwrap();
    let since = scene.io.now();
    client.reply().await.expect(421);
    assert_soon(&scene, since);
    assert!(data.all().await.is_err(), "what was cut short has no clean end");
}

async fn transfers_of_a_share_end_when_the_share_does(scene: Scene) {
    let (mut owner, mut client) = alice(&scene).await;
    client.command("MKD docs").await.expect(257);
    let bytes = noise(4, large_bytes(scene.engine));
    scene.write_home("alice", "docs/large", &bytes);
    Person::new(&scene, "bob").await;
    let share = owner.share("docs", "bob", "write").await;
    let (mut reader, mut writer) = (FtpClient::of(&scene, "bob").await, FtpClient::of(&scene, "bob").await);
    let mut read = reader.begin("RETR /shared/alice/docs/large").await;
    read.receive().await.unwrap().expect("its beginning");
    let mut written = writer.begin("STOR /shared/alice/docs/new").await;
    written.send("begin").await.unwrap();
    until_moved(&scene, &mut writer, 5).await;
    assert_eq!(owner.delete(&format!("/api/shares/{share}")).await.status, 204);
    let since = scene.io.now();
    writer.reply().await.expect(550);
    reader.reply().await.expect(550);
    assert_soon(&scene, since);
    assert!(read.all().await.is_err(), "what was cut short has no clean end");
    assert_eq!(scene.home("alice").keys().collect::<Vec<_>>(), ["docs", "docs/large"]);
    // The login is still valid.
    reader.command("PWD").await.expect(257);
}

behaviours!(with_accounts and remote and tls;
    an_upload_ends_with_the_password_that_it_was_logged_in_with,
    an_upload_whose_end_comes_after_its_right_has_ended_is_not_committed,
    a_download_ends_when_the_account_is_disabled,
    transfers_of_a_share_end_when_the_share_does,
);
