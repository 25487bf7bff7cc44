//! Resuming interrupted uploads: SIZE reports the offset, and REST with STOR, or APPE, resumes there.

use plimsoll_tests::accounts::UPLOAD_KEPT_TIME;
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Engine, FtpClient, Scene, behaviours, under};

use super::{alice, large_bytes, someone, until_moved, with_accounts};

/// Interrupts an upload of `path` after `bytes`.
async fn abort_upload(scene: &Scene, client: &mut FtpClient, path: &str, bytes: &[u8]) {
    let mut data = client.begin(format!("STOR {path}")).await;
    data.send(bytes).await.unwrap();
    until_moved(scene, client, bytes.len()).await;
    data.abort();
    client.reply().await.expect(426);
}

async fn size_tells_where_to_go_on(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.command("SIZE a").await.expect(550);
    abort_upload(&scene, &mut client, "a", b"01234").await;
    assert_eq!(client.command("SIZE a").await.expect(213).text(), "5");
    client.command("SIZE b").await.expect(550);
    client.command("MLST a").await.expect(550);
    client.refused("RETR a").await.expect(550);
}

async fn all_received_bytes_of_a_large_upload_can_be_resumed(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let bytes = noise(3, large_bytes(scene.engine) / 4);
    let (mut from, third) = (0, bytes.len() / 3);
    for (round, to) in [third, 2 * third, bytes.len()].into_iter().enumerate() {
        if from > 0 {
            assert_eq!(client.command("SIZE a").await.expect(213).text(), from.to_string());
            client.command(format!("REST {from}")).await.expect(350);
        }
        let mut data = client.begin("STOR a").await;
        data.send(&bytes[from..to]).await.unwrap();
        if round == 2 {
            data.finish().await.unwrap();
            client.reply().await.expect(226);
            break;
        }
        // The sent bytes are in the file, or in a buffer on the way to it.
        until_moved(&scene, &mut client, to - from).await;
        data.abort();
        client.reply().await.expect(426);
        from = to;
    }
    assert!(client.retr("a").await == bytes);
    assert!(scene.pending("alice").is_empty());
}

async fn an_upload_that_size_reports_can_be_deleted(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    abort_upload(&scene, &mut client, "a", b"01234").await;
    client.command("DELE b").await.expect(550);
    client.command("DELE a").await.expect(250);
    client.command("SIZE a").await.expect(550);
    assert!(scene.pending("alice").is_empty());
    client.command("DELE a").await.expect(550);
}

async fn a_file_is_deleted_before_an_upload_of_it(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "old").await;
    abort_upload(&scene, &mut client, "a", b"01234").await;
    client.command("DELE a").await.expect(250);
    assert_eq!(client.command("SIZE a").await.expect(213).text(), "5");
}

async fn appe_goes_on_where_it_was(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    abort_upload(&scene, &mut client, "a", b"01234").await;
    assert_eq!(client.command("SIZE a").await.expect(213).text(), "5");
    client.send("APPE a", "56789").await.expect(226);
    assert_eq!(client.retr("a").await, b"0123456789");
    assert!(scene.pending("alice").is_empty());
}

async fn rest_may_go_back_within_the_received_bytes(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    abort_upload(&scene, &mut client, "a", b"01234").await;
    client.command("REST 3").await.expect(350);
    client.send("STOR a", "xyz").await.expect(226);
    assert_eq!(client.retr("a").await, b"012xyz");
    assert!(scene.pending("alice").is_empty());
}

async fn rest_beyond_the_received_bytes_is_refused_with_their_number(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    abort_upload(&scene, &mut client, "a", b"01234").await;
    client.command("REST 6").await.expect(350);
    let reply = client.refused("STOR a").await.expect(554).text();
    assert!(reply.contains("REST 5"), "{reply}");
    client.command("REST 1").await.expect(350);
    client.refused("STOR none").await.expect(554);
    client.command("REST 5").await.expect(350);
    client.send("STOR a", "56789").await.expect(226);
    assert_eq!(client.retr("a").await, b"0123456789");
}

async fn an_upload_may_be_aborted_many_times(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let all = noise(3, 50_000);
    abort_upload(&scene, &mut client, "a", &all[..10_000]).await;
    for at in [10_000, 20_000, 30_000, 40_000] {
        assert_eq!(client.command("SIZE a").await.expect(213).text(), at.to_string());
        client.command(format!("REST {at}")).await.expect(350);
        let mut data = client.begin("STOR a").await;
        data.send(&all[at..at + 10_000]).await.unwrap();
        until_moved(&scene, &mut client, 10_000).await;
        data.abort();
        client.reply().await.expect(426);
    }
    assert_eq!(client.command("SIZE a").await.expect(213).text(), "50000");
    client.send("APPE a", "").await.expect(226);
    assert!(client.retr("a").await == all);
}

async fn a_plain_stor_begins_anew(scene: Scene) {
    let (mut person, mut client) = alice(&scene).await;
    abort_upload(&scene, &mut client, "a", b"01234").await;
    client.command("REST 3").await.expect(350);
    client.command("REST 0").await.expect(350);
    client.stor("a", "new\n").await;
    assert_eq!(client.retr("a").await, b"new\n");
    assert_eq!(person.get("/uploads").await.json(), serde_json::json!({ "uploads": [] }));
    assert!(scene.pending("alice").is_empty());
}

async fn a_file_can_be_resumed_at_any_of_its_bytes(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    for (from, expected) in [(4, "0123xy"), (6, "012345xy"), (1, "0xy")] {
        client.stor("a", "012345").await;
        client.command(format!("REST {from}")).await.expect(350);
        client.send("STOR a", "xy").await.expect(226);
        assert_eq!(client.retr("a").await, expected.as_bytes());
    }
    client.stor("a", "012345").await;
    client.command("REST 7").await.expect(350);
    let reply = client.refused("STOR a").await.expect(554).text();
    assert!(reply.contains("REST 6"), "{reply}");
    assert_eq!(client.retr("a").await, b"012345");
}

async fn a_file_that_changes_under_it_is_not_mixed(scene: Scene) {
    let (mut person, mut client) = alice(&scene).await;
    client.stor("a", "012345").await;
    client.command("REST 3").await.expect(350);
    let mut data = client.begin("STOR a").await;
    data.send("xyz").await.unwrap();
    until_moved(&scene, &mut client, 3).await;
    person.put("/files/a", "another one\n").await;
    data.finish().await.unwrap();
    let refused = client.reply().await;
    assert!((400..600).contains(&refused.code), "{}", refused.text());
    assert_eq!(client.retr("a").await, b"another one\n");
}

async fn no_other_account_sees_a_resumable_upload(scene: Scene) {
    let (mut person, mut client) = alice(&scene).await;
    let (mut other, mut bob) = someone(&scene, "bob").await;
    person.ask("MKCOL", "/files/both", "", "").await;
    person.share("both", "bob", "write").await;
    abort_upload(&scene, &mut client, "both/a", b"01234").await;
    assert_eq!(other.get("/uploads").await.json(), serde_json::json!({ "uploads": [] }));
    bob.command("SIZE /shared/alice/both/a").await.expect(550);
    bob.command("SIZE both/a").await.expect(550);
    bob.command("REST 5").await.expect(350);
    bob.refused("STOR /shared/alice/both/a").await.expect(554);
    assert!(bob.fetch("LIST /shared/alice/both").await.is_empty());
    // A file of another account at the same path does not remove the interrupted upload.
    bob.send("APPE /shared/alice/both/a", "of bob").await.expect(226);
    assert_eq!(client.retr("both/a").await, b"of bob");
}

async fn an_upload_aborted_in_a_share_is_not_kept(scene: Scene) {
    let (mut person, _client) = alice(&scene).await;
    let (_other, mut bob) = someone(&scene, "bob").await;
    person.ask("MKCOL", "/files/both", "", "").await;
    person.share("both", "bob", "write").await;
    abort_upload(&scene, &mut bob, "/shared/alice/both/a", b"01234").await;
    bob.command("SIZE /shared/alice/both/a").await.expect(550);
    scene.until(|| scene.pending("alice").is_empty() && scene.pending("bob").is_empty()).await;
    assert_eq!(person.get("/uploads").await.json(), serde_json::json!({ "uploads": [] }));
}

async fn a_resumable_upload_is_listed_over_http_and_can_be_deleted_there(scene: Scene) {
    let (mut person, mut client) = alice(&scene).await;
    abort_upload(&scene, &mut client, "a", b"01234").await;
    let listed = person.get("/uploads").await.json();
    let upload = &listed["uploads"][0];
    assert_eq!((&upload["path"], &upload["offset"]), (&"/a".into(), &5.into()), "{upload}");
    let version = "Tus-Resumable: 1.0.0\r\n";
    assert_eq!(person.ask("DELETE", upload["url"].as_str().unwrap(), version, "").await.status, 204);
    client.command("SIZE a").await.expect(550);
    assert!(scene.pending("alice").is_empty());
}

async fn an_aborted_text_is_kept_in_its_stored_form(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.command("TYPE A").await.expect(200);
    let mut data = client.begin("STOR a").await;
    data.send("a\r\nb\r\n").await.unwrap();
    until_moved(&scene, &mut client, 4).await;
    data.abort();
    client.reply().await.expect(426);
    client.command("TYPE I").await.expect(200);
    assert_eq!(client.command("SIZE a").await.expect(213).text(), "4");
    client.send("APPE a", "c\n").await.expect(226);
    assert_eq!(client.retr("a").await, b"a\nb\nc\n");
}

async fn received_bytes_are_recorded_while_the_upload_continues(scene: Scene) {
    let (mut person, mut client) = alice(&scene).await;
    let mut data = client.begin("STOR a").await;
    for bytes in [1_000, 2_000] {
        data.send([b'x'; 1_000]).await.unwrap();
        // Listings report the recorded offset, and do not trigger a record.
        while person.get("/uploads").await.json()["uploads"][0]["offset"] != bytes {
            scene.io.sleep(std::time::Duration::from_millis(50)).await;
        }
    }
    data.finish().await.unwrap();
    client.reply().await.expect(226);
    assert_eq!(client.command("SIZE a").await.expect(213).text(), "2000");
    assert!(scene.pending("alice").is_empty());
}

behaviours!(with_accounts and remote and tls;
    received_bytes_are_recorded_while_the_upload_continues,
    size_tells_where_to_go_on,
    all_received_bytes_of_a_large_upload_can_be_resumed,
    an_upload_that_size_reports_can_be_deleted,
    a_file_is_deleted_before_an_upload_of_it,
    appe_goes_on_where_it_was,
    rest_may_go_back_within_the_received_bytes,
    rest_beyond_the_received_bytes_is_refused_with_their_number,
    an_upload_may_be_aborted_many_times,
    a_plain_stor_begins_anew,
    a_file_can_be_resumed_at_any_of_its_bytes,
    a_file_that_changes_under_it_is_not_mixed,
    no_other_account_sees_a_resumable_upload,
    an_upload_aborted_in_a_share_is_not_kept,
    a_resumable_upload_is_listed_over_http_and_can_be_deleted_there,
    an_aborted_text_is_kept_in_its_stored_form,
);

/// In the simulator alone: the time is too long for a real clock.
#[test]
fn an_upload_that_is_not_resumed_is_removed_after_its_time() {
    under(Engine::Simulator, with_accounts, |scene| async move {
        let (_person, mut client) = alice(&scene).await;
        abort_upload(&scene, &mut client, "a", b"01234").await;
        drop(client);
        scene.io.sleep(UPLOAD_KEPT_TIME * 2).await;
        let mut client = FtpClient::of(&scene, "alice").await;
        client.command("SIZE a").await.expect(550);
    });
}
