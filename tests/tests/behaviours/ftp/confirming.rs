//! Uploads whose end must be confirmed: by what the client announced, or by its being there.

use std::time::Duration;

use plimsoll_tests::tree::noise;
use plimsoll_tests::{Engine, FtpClient, Scene, behaviours};

use super::{alice, with_accounts};

const OLD: &[u8] = b"the old one\n";

/// Longer than the server's wait for a client, a round trip and the sync of a file.
const LONGER_THAN_THE_WAIT: Duration = Duration::from_millis(1_500);

/// Sends bytes by `line`, and ends both connections as a client that is killed on a busy machine: the control
/// connection some time after the data. Expects that the session ends.
async fn is_killed(scene: &Scene, mut client: FtpClient, line: &str, bytes: &[u8]) {
    let sessions = scene.open();
    let mut data = client.begin(line).await;
    data.send(bytes).await.unwrap();
    let _ = data.end().await;
    scene.io.sleep(Duration::from_millis(20)).await;
    client.end();
    scene.until(|| scene.open() < sessions).await;
}

/// Not in the simulator, whose network may delay an end by more than the server waits.
async fn an_end_of_the_control_connection_shortly_after_that_of_the_data_aborts(scene: Scene) {
    if scene.engine == Engine::Simulator {
        return;
    }
    let (_person, mut client) = alice(&scene).await;
    for name in ["stor", "appe"] {
        client.stor(name, OLD).await;
    }
    for line in ["STOR stor", "APPE appe", "STOU", "STOR new"] {
        is_killed(&scene, FtpClient::of(&scene, "alice").await, line, b"shor").await;
        let home = scene.home("alice");
        assert_eq!(home.keys().collect::<Vec<_>>(), ["appe", "stor"], "{line}");
        assert!(home.values().all(|bytes| bytes.as_deref() == Some(OLD)), "{line}: {home:?}");
    }
    client.command("REST 4").await.expect(350);
    is_killed(&scene, client, "STOR new", b"t and too short").await;
    assert_eq!(scene.home("alice").len(), 2);
}

async fn a_client_that_stays_needs_to_announce_nothing(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    for line in ["STOR a", "APPE a", "STOR a", "STOU"] {
        client.send(line, OLD).await.expect(226);
    }
    assert_eq!(client.retr("a").await, OLD);
    assert_eq!(scene.home("alice").len(), 2);
}

/// The end of the control connection then takes back nothing, unless it comes before that of the data.
async fn an_upload_of_the_announced_size_is_complete_without_its_client(scene: Scene) {
    let (person, mut client) = alice(&scene).await;
    drop(person);
    let bytes = noise(3, 5_000);
    for announced in ["ALLO 5000", "allo 5000 R 80", "OPTS STOR SIZE 5000"] {
        client.command(announced).await.expect(200);
        client.send("STOR a", &bytes[..]).await.expect(226);
    }
    client.command("ALLO 5000").await.expect(200);
    let mut data = client.begin("STOR d").await;
    data.send(&bytes[..]).await.unwrap();
    data.finish().await.unwrap();
    client.end();
    scene.until(|| scene.open() == 0).await;
    let home = scene.home("alice");
    assert!(home["a"] == home["d"]);
}

async fn an_upload_with_another_digest_than_announced_is_not_stored(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", OLD).await;
    let digest = "OPTS STOR SHA-256 50adea61fa4e77ab111b814716097abfd05f83a207b47eb4529bbd4f54e111e0";
    for (bytes, code) in [("hello\n\n", 226), ("hello\n", 551)] {
        client.command(digest).await.expect(200);
        client.send("STOR a", bytes).await.expect(code);
        assert_eq!(client.retr("a").await, b"hello\n\n");
    }
}

async fn an_upload_below_the_room_it_asked_for_waits_longer_for_its_client(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.command("ALLO 4096").await.expect(200);
    let before = scene.io.now();
    client.send("STOR a", OLD).await.expect(226);
    assert!(scene.io.now() - before >= Duration::from_secs(1));
    assert_eq!(client.retr("a").await, OLD);
    if scene.engine == Engine::Simulator {
        return;
    }
    client.command("ALLO 4096").await.expect(200);
    let mut data = client.begin("STOR a").await;
    data.send("short").await.unwrap();
    let _ = data.end().await;
    scene.io.sleep(Duration::from_millis(300)).await;
    client.end();
    scene.until(|| scene.open() == 1).await;
    assert_eq!(scene.home("alice")["a"].as_deref(), Some(OLD));
}

async fn an_upload_of_another_size_than_it_must_have_is_not_stored(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", OLD).await;
    client.command("OPTS STOR SIZE 10").await.expect(200);
    client.send("STOR a", "01234").await.expect(426);
    assert_eq!(client.retr("a").await, OLD);
    client.command("OPTS STOR SIZE 10").await.expect(200);
    client.command("REST 5").await.expect(350);
    client.send("STOR a", "56789").await.expect(226);
    assert_eq!(client.retr("a").await, b"0123456789");
    client.command("OPTS STOR SIZE 10").await.expect(200);
    client.send("STOR a", "0123456789A").await.expect(426);
    // It was for one upload.
    client.send("STOR a", OLD).await.expect(226);
}

/// Announcements are of the bytes of the file, and a text has other ones on the network.
async fn a_text_is_not_compared_with_what_was_announced(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.command("TYPE A").await.expect(200);
    client.command("OPTS STOR SIZE 3").await.expect(200);
    client.send("STOR a", "1\r\n2\r\n").await.expect(226);
    assert_eq!(scene.home("alice")["a"].as_deref(), Some(&b"1\n2\n"[..]));
}

async fn other_clients_are_served_while_one_is_waited_for(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let mut other = FtpClient::of(&scene, "alice").await;
    client.command("ALLO 4096").await.expect(200);
    let mut data = client.begin("STOR a").await;
    data.send(OLD).await.unwrap();
    data.finish().await.unwrap();
    let before = scene.io.now();
    other.command("NOOP").await.expect(200);
    other.command("MDTM a").await.expect(550);
    assert!(scene.engine == Engine::Simulator || scene.io.now() - before < LONGER_THAN_THE_WAIT / 2);
    client.reply().await.expect(226);
    other.command("MDTM a").await.expect(213);
}

behaviours!(with_accounts and remote and tls;
    an_end_of_the_control_connection_shortly_after_that_of_the_data_aborts,
    a_client_that_stays_needs_to_announce_nothing,
    an_upload_of_the_announced_size_is_complete_without_its_client,
    an_upload_with_another_digest_than_announced_is_not_stored,
    an_upload_below_the_room_it_asked_for_waits_longer_for_its_client,
    an_upload_of_another_size_than_it_must_have_is_not_stored,
    a_text_is_not_compared_with_what_was_announced,
    other_clients_are_served_while_one_is_waited_for,
);
