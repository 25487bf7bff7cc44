//! Clients that close the control connection before their uploads are confirmed, where those are kept.

use std::time::Duration;

use plimsoll_proto::ftp::Unconfirmed;
use plimsoll_tests::{Ftp, FtpClient, Scenario, Scene, behaviours};

use super::{alice, until_moved, with_accounts};

fn scenario() -> Scenario {
    Scenario { ftp: Some(Ftp { unconfirmed: Unconfirmed::Keep, ..Ftp::default() }), ..with_accounts() }
}

async fn an_upload_is_kept_whose_client_closes_both_connections_at_once(scene: Scene) {
    let (person, mut client) = alice(&scene).await;
    drop(person);
    let mut data = client.begin("STOR a").await;
    data.send("hello").await.unwrap();
    let ended = data.end();
    client.end();
    let _ = ended.await;
    scene.until(|| scene.open() == 0).await;
    assert_eq!(scene.home("alice")["a"].as_deref(), Some(&b"hello"[..]));
}

async fn an_upload_is_kept_whose_client_closes_the_control_connection_first(scene: Scene) {
    let (person, mut client) = alice(&scene).await;
    drop(person);
    let mut data = client.begin("STOR a").await;
    data.send("hello").await.unwrap();
    until_moved(&scene, &mut client, 5).await;
    // A client that has not read its replies resets the connection.
    drop(client);
    scene.io.sleep(Duration::from_millis(30)).await;
    data.send(" again").await.unwrap();
    data.finish().await.unwrap();
    scene.until(|| scene.open() == 0).await;
    assert_eq!(scene.home("alice")["a"].as_deref(), Some(&b"hello again"[..]));
}

async fn abor_and_a_broken_data_connection_abort_all_the_same(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let mut data = client.begin("STOR a").await;
    data.send("hello").await.unwrap();
    client.command("ABOR").await.expect(426);
    client.reply().await.expect(226);
    drop(data);
    let mut client = FtpClient::of(&scene, "alice").await;
    let mut data = client.begin("STOR a").await;
    data.send("hello").await.unwrap();
    until_moved(&scene, &mut client, 5).await;
    data.abort();
    client.reply().await.expect(426);
    assert!(scene.home("alice").is_empty());
}

async fn the_end_of_the_control_connection_stops_a_download(scene: Scene) {
    let (person, mut client) = alice(&scene).await;
    client.stor("a", vec![0; super::large_bytes(scene.engine)]).await;
    let mut data = client.begin("RETR a").await;
    data.stream().await.unwrap();
    drop((person, client));
    scene.until(|| scene.open() == 0).await;
    drop(data);
}

behaviours!(scenario and remote and tls;
    an_upload_is_kept_whose_client_closes_both_connections_at_once,
    an_upload_is_kept_whose_client_closes_the_control_connection_first,
    abor_and_a_broken_data_connection_abort_all_the_same,
    the_end_of_the_control_connection_stops_a_download,
);
