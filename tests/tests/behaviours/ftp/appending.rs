//! APPE to a file, and STOU.

use plimsoll_tests::{FtpClient, Scene, behaviours};

use super::{alice, until_moved, with_accounts};

async fn appended_bytes_follow_the_existing_ones(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    for expected in ["one,", "one,one,", "one,one,one,"] {
        client.send("APPE a", "one,").await.expect(226);
        assert_eq!(client.retr("a").await, expected.as_bytes());
    }
    client.send("APPE a", "").await.expect(226);
    assert_eq!(client.command("SIZE a").await.expect(213).text(), "12");
}

async fn no_client_sees_a_part_of_an_append(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "old,").await;
    let mut other = FtpClient::of(&scene, "alice").await;
    let mut data = client.begin("APPE a").await;
    data.send("ne").await.unwrap();
    until_moved(&scene, &mut client, 2).await;
    assert_eq!(other.retr("a").await, b"old,");
    data.send("w").await.unwrap();
    data.finish().await.unwrap();
    client.reply().await.expect(226);
    assert_eq!(other.retr("a").await, b"old,new");
}

async fn an_aborted_append_leaves_the_file_unchanged(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "old,").await;
    let mut data = client.begin("APPE a").await;
    data.send("ne").await.unwrap();
    until_moved(&scene, &mut client, 2).await;
    data.abort();
    client.reply().await.expect(426);
    assert_eq!(client.command("SIZE a").await.expect(213).text(), "4", "the file's own");
    client.send("APPE a", "new").await.expect(226);
    assert_eq!(client.retr("a").await, b"old,new");
}

async fn two_that_append_at_once_lose_nothing_unseen(scene: Scene) {
    let (_person, mut first) = alice(&scene).await;
    first.stor("a", "old,").await;
    let mut second = FtpClient::of(&scene, "alice").await;
    let (mut data1, mut data2) = (first.begin("APPE a").await, second.begin("APPE a").await);
    data1.send("one,").await.unwrap();
    data2.send("two,").await.unwrap();
    data1.finish().await.unwrap();
    first.reply().await.expect(226);
    data2.finish().await.unwrap();
    let refused = second.reply().await;
    assert!((400..600).contains(&refused.code), "{}", refused.text());
    assert_eq!(second.retr("a").await, b"old,one,");
}

async fn stou_makes_a_new_file_each_time(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.command("MKD folder").await.expect(257);
    client.command("CWD folder").await.expect(250);
    let mut names = Vec::new();
    for round in 0..4 {
        let mut data = client.data().await;
        let reply = client.command("STOU").await.expect(150).text();
        let name = reply.strip_prefix("FILE: ").expect("as RFC 1123 has it").to_owned();
        data.send(format!("{round}")).await.unwrap();
        data.finish().await.unwrap();
        client.reply().await.expect(226);
        assert_eq!(client.retr(&name).await, format!("{round}").as_bytes());
        names.push(name);
    }
    names.sort();
    assert_eq!(client.fetch_lines("NLST").await, names, "one for each");
}

behaviours!(with_accounts and remote and tls;
    appended_bytes_follow_the_existing_ones,
    no_client_sees_a_part_of_an_append,
    an_aborted_append_leaves_the_file_unchanged,
    two_that_append_at_once_lose_nothing_unseen,
    stou_makes_a_new_file_each_time,
);
