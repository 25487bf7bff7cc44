//! Commands during a transfer: ABOR, STAT, QUIT, and commands that wait for its end.

use std::time::Duration;

use plimsoll_tests::tree::noise;
use plimsoll_tests::{Data, FtpClient, Scene, behaviours};

use super::{alice, large_bytes, until_moved, with_accounts};

/// Starts a download that cannot end before the client reads it.
async fn downloading(scene: &Scene) -> (FtpClient, Data, Vec<u8>) {
    let (mut person, mut client) = alice(scene).await;
    let bytes = noise(4, large_bytes(scene.engine));
    person.put("/files/large", &bytes).await;
    let mut data = client.begin("RETR large").await;
    data.stream().await.unwrap();
    (client, data, bytes)
}

async fn abor_stops_a_download(scene: Scene) {
    let (mut client, mut data, bytes) = downloading(&scene).await;
    data.receive().await.unwrap().expect("its beginning");
    client.push("ABOR\r\n");
    client.reply().await.expect(426);
    client.reply().await.expect(226);
    assert!(data.all().await.is_err(), "what was stopped has no clean end");
    assert!(client.retr("large").await == bytes);
}

async fn abor_when_nothing_goes_on_says_so(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.command("ABOR").await.expect(226);
    client.stor("a", "x").await;
    client.command("ABOR").await.expect(226);
    assert_eq!(client.retr("a").await, b"x");
}

async fn abor_ends_a_wait_for_a_data_connection(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "x").await;
    for line in ["RETR a", "STOR b", "LIST"] {
        client.epsv().await.unwrap();
        client.command(line).await.expect(150);
        client.command("ABOR").await.expect(426);
        client.reply().await.expect(226);
    }
    assert_eq!(scene.home("alice").len(), 1);
    assert_eq!(client.retr("a").await, b"x");
}

async fn stat_is_answered_while_bytes_flow(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let mut data = client.begin("STOR a").await;
    for sent in 1..=3_usize {
        data.send(noise(sent as u64, 1_000)).await.unwrap();
        until_moved(&scene, &mut client, sent * 1_000).await;
    }
    data.finish().await.unwrap();
    client.reply().await.expect(226);
    client.command("STAT").await.expect(211);
}

async fn stat_is_answered_while_a_download_goes_on(scene: Scene) {
    let (mut client, mut data, bytes) = downloading(&scene).await;
    client.command("STAT").await.expect(213);
    assert!(data.all().await.unwrap() == bytes);
    client.reply().await.expect(226);
}

async fn quit_waits_for_the_transfers_end(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let mut data = client.begin("STOR a").await;
    data.send("hel").await.unwrap();
    client.push("QUIT\r\n");
    client.expect_silence(Duration::from_millis(30)).await;
    data.send("lo").await.unwrap();
    data.finish().await.unwrap();
    client.reply().await.expect(226);
    client.reply().await.expect(221);
    client.expect_end().await;
    assert_eq!(scene.home("alice")["a"].as_deref(), Some(&b"hello"[..]));
}

/// The server may process either first; its answer about the upload must match the file.
async fn abor_right_behind_the_last_bytes_takes_them_back_or_is_too_late(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "the old one").await;
    for round in 0..8 {
        let new = format!("new {round}");
        let mut data = client.begin("STOR a").await;
        let before = scene.home("alice")["a"].clone();
        data.send(new.clone()).await.unwrap();
        data.finish().await.unwrap();
        client.push("ABOR\r\n");
        let reply = client.reply().await;
        client.reply().await.expect(226);
        let is_taken_back = reply.code == 426;
        let expected = if is_taken_back { before } else { Some(new.into_bytes()) };
        assert_eq!(scene.home("alice")["a"], expected, "{reply:?}");
    }
    scene.until(|| scene.home("alice").len() == 1).await;
}

async fn quit_and_an_end_after_it_take_no_upload_back(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let mut data = client.begin("STOR a").await;
    data.send("hello").await.unwrap();
    data.finish().await.unwrap();
    client.push("QUIT\r\n");
    client.reply().await.expect(226);
    client.reply().await.expect(221);
    client.expect_end().await;
    assert_eq!(scene.home("alice")["a"].as_deref(), Some(&b"hello"[..]));
}

async fn commands_that_come_during_a_transfer_are_obeyed_after_it(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let mut data = client.begin("STOR a").await;
    client.push("SYST\r\nSIZE a\r\nMKD folder\r\nCWD folder\r\nPWD\r\n");
    client.push("NOOP\r\n".repeat(400));
    client.expect_silence(Duration::from_millis(30)).await;
    data.send("hello").await.unwrap();
    data.finish().await.unwrap();
    client.reply().await.expect(226);
    client.reply().await.expect(215);
    assert_eq!(client.reply().await.expect(213).text(), "5");
    client.reply().await.expect(257);
    client.reply().await.expect(250);
    assert_eq!(client.reply().await.expect(257).quoted(), "/folder");
    for _ in 0..400 {
        client.reply().await.expect(200);
    }
    client.command("QUIT").await.expect(221);
}

async fn commands_may_be_said_ahead(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.push("MKD a\r\nCWD a\r\nMKD b\r\nCWD b\r\nPWD\r\nCDUP\r\nRMD b\r\nPWD\r\nQUIT\r\n");
    let mut codes = Vec::new();
    for _ in 0..9 {
        codes.push(client.reply().await.code);
    }
    assert_eq!(codes, [257, 250, 257, 250, 257, 250, 250, 257, 221]);
    client.expect_end().await;
}

async fn a_control_connection_that_ends_stops_a_download(scene: Scene) {
    let (client, data, _) = downloading(&scene).await;
    drop(client);
    // The connection over HTTP has ended, too.
    scene.until(|| scene.open() == 0).await;
    drop(data);
}

behaviours!(with_accounts and remote and tls;
    abor_stops_a_download,
    abor_when_nothing_goes_on_says_so,
    abor_ends_a_wait_for_a_data_connection,
    stat_is_answered_while_bytes_flow,
    stat_is_answered_while_a_download_goes_on,
    quit_waits_for_the_transfers_end,
    abor_right_behind_the_last_bytes_takes_them_back_or_is_too_late,
    quit_and_an_end_after_it_take_no_upload_back,
    commands_that_come_during_a_transfer_are_obeyed_after_it,
    commands_may_be_said_ahead,
    a_control_connection_that_ends_stops_a_download,
);
