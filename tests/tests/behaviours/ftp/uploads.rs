//! STOR: a file arrives complete, or the old one stays.

use plimsoll_tests::tree::noise;
use plimsoll_tests::{FtpClient, Scene, behaviours, together};

use super::{alice, large_bytes, until_moved, with_accounts};

async fn a_file_arrives_byte_for_byte(scene: Scene) {
    let (mut person, mut client) = alice(&scene).await;
    for len in [0, 1, 65_536, 150_000] {
        let bytes = noise(len as u64, len);
        let reply = client.send("STOR a", bytes.clone()).await.expect(226).text();
        assert!(reply.contains(&format!("{len} bytes")), "{reply}");
        assert!(scene.home("alice")["a"].as_deref() == Some(&bytes));
        assert!(person.get("/files/a").await.body == bytes);
    }
    scene.until(|| scene.pending("alice").is_empty()).await;
}

async fn no_client_sees_a_part_of_a_new_file(scene: Scene) {
    let (mut person, mut client) = alice(&scene).await;
    let bytes = noise(1, 100_000);
    let mut data = client.begin("STOR a").await;
    data.send(&bytes[..50_000]).await.unwrap();
    until_moved(&scene, &mut client, 50_000).await;
    let mut other = FtpClient::of(&scene, "alice").await;
    other.refused("RETR a").await.expect(550);
    other.command("MLST a").await.expect(550);
    assert!(other.fetch("LIST").await.is_empty());
    assert_eq!(person.get("/files/a").await.status, 404);
    assert!(scene.home("alice").is_empty());
    data.send(&bytes[50_000..]).await.unwrap();
    data.finish().await.unwrap();
    client.reply().await.expect(226);
    assert!(other.retr("a").await == bytes);
    assert!(person.get("/files/a").await.body == bytes);
}

async fn the_old_file_stays_until_the_new_one_is_whole(scene: Scene) {
    let (mut person, mut client) = alice(&scene).await;
    client.stor("a", "the old one\n").await;
    let mut other = FtpClient::of(&scene, "alice").await;
    let mut data = client.begin("STOR a").await;
    for part in ["the ", "new ", "one\n"] {
        assert_eq!(other.retr("a").await, b"the old one\n");
        assert_eq!(person.get("/files/a").await.text(), "the old one\n");
        assert_eq!(other.command("SIZE a").await.expect(213).text(), "12");
        data.send(part).await.unwrap();
    }
    data.finish().await.unwrap();
    client.reply().await.expect(226);
    assert_eq!(other.retr("a").await, b"the new one\n");
}

async fn a_large_file_arrives(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let bytes = noise(2, large_bytes(scene.engine));
    client.stor("large", bytes.clone()).await;
    assert!(client.retr("large").await == bytes);
}

async fn several_large_ones_at_once_arrive_as_they_were_sent(scene: Scene) {
    let (mut person, client) = alice(&scene).await;
    let (len, mut clients) = (large_bytes(scene.engine) / 4, vec![client]);
    for _ in 0..3 {
        clients.push(FtpClient::of(&scene, "alice").await);
    }
    for round in 0..2_u64 {
        let names = [1_u64, 2, 3, 4];
        let sends = names.into_iter().zip(&mut clients).map(async |(name, client)| {
            client.stor(&format!("f{name}"), noise(10 * round + name, len)).await;
        });
        together(sends).await;
        for name in names {
            assert!(person.get(&format!("/files/f{name}")).await.body == noise(10 * round + name, len));
        }
    }
    scene.until(|| scene.pending("alice").is_empty()).await;
}

async fn of_two_at_once_the_last_to_end_stays_whole(scene: Scene) {
    let (_person, mut first) = alice(&scene).await;
    let mut second = FtpClient::of(&scene, "alice").await;
    let (one, other) = (noise(1, 40_000), noise(2, 30_000));
    let (mut data1, mut data2) = (first.begin("STOR a").await, second.begin("STOR a").await);
    data1.send(&one[..20_000]).await.unwrap();
    data2.send(&other[..10_000]).await.unwrap();
    data2.send(&other[10_000..]).await.unwrap();
    data2.finish().await.unwrap();
    second.reply().await.expect(226);
    assert!(second.retr("a").await == other);
    data1.send(&one[20_000..]).await.unwrap();
    data1.finish().await.unwrap();
    first.reply().await.expect(226);
    assert!(second.retr("a").await == one);
    scene.until(|| scene.pending("alice").is_empty()).await;
}

async fn a_path_that_can_be_no_file_is_refused_before_its_bytes(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.command("MKD folder").await.expect(257);
    client.stor("a", "x").await;
    let long = "x".repeat(300);
    for (name, codes) in [
        ("none/a", [550, 550]),
        ("folder", [550, 550]),
        ("a/b", [550, 550]),
        ("/", [550, 553]),
        ("", [550, 501]),
        ("/shared", [553, 550]),
        ("/shared/bob/a", [550, 550]),
        (&long, [553, 553]),
    ] {
        let answer = client.refused(format!("STOR {name}")).await;
        assert!(codes.contains(&answer.code), "{name}: {} {}", answer.code, answer.text());
    }
    assert_eq!(scene.home("alice").len(), 2);
    assert!(scene.pending("alice").is_empty());
}

async fn one_connection_does_many_things(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    for round in 0..10 {
        client.stor("a", noise(round, 1_000)).await;
        assert!(client.retr("a").await == noise(round, 1_000));
        client.command("DELE a").await.expect(250);
    }
    client.command("QUIT").await.expect(221);
    client.expect_end().await;
}

behaviours!(with_accounts and remote and tls;
    a_file_arrives_byte_for_byte,
    no_client_sees_a_part_of_a_new_file,
    the_old_file_stays_until_the_new_one_is_whole,
    a_large_file_arrives,
    several_large_ones_at_once_arrive_as_they_were_sent,
    of_two_at_once_the_last_to_end_stays_whole,
    a_path_that_can_be_no_file_is_refused_before_its_bytes,
    one_connection_does_many_things,
);
