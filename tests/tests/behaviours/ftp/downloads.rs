//! RETR, and REST before it.

use plimsoll_tests::tree::noise;
use plimsoll_tests::{FtpClient, Scene, behaviours, together};

use super::{alice, large_bytes, with_accounts};

async fn a_file_arrives_byte_for_byte(scene: Scene) {
    let (mut person, mut client) = alice(&scene).await;
    for len in [0, 1, 1_000, 65_536, 65_537, 150_000] {
        let bytes = noise(len as u64, len);
        person.put("/files/a", &bytes).await;
        assert!(client.retr("a").await == bytes, "{len}");
    }
}

async fn a_download_begins_where_rest_says(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "0123456789").await;
    for (from, rest) in [(0, "0123456789"), (4, "456789"), (9, "9"), (10, "")] {
        client.command(format!("REST {from}")).await.expect(350);
        assert_eq!(client.retr("a").await, rest.as_bytes());
    }
    assert_eq!(client.retr("a").await, b"0123456789", "REST is for one transfer");
    client.command("REST 11").await.expect(350);
    let reply = client.refused("RETR a").await.expect(554).text();
    assert!(reply.contains("10 bytes"), "{reply}");
    for line in ["REST", "REST x", "REST -1", "REST 1 2", "REST 99999999999999999999"] {
        client.command(line).await.expect(501);
    }
}

async fn a_path_that_is_no_file_is_not_sent(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "x").await;
    client.command("MKD folder").await.expect(257);
    for name in ["none", "folder", "folder/none", "a/b", "none/none", "/", "..", "", "a\0b"] {
        let answer = client.refused(format!("RETR {name}")).await;
        assert!(matches!(answer.code, 501 | 550 | 553), "{name:?}: {} {}", answer.code, answer.text());
    }
}

async fn names_are_bytes_that_a_file_can_have(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let names =
        ["two words", " before", "after ", "-la", "--", "grüße.txt", "日本", "a\"b", "*", "[a]", "a\\b", "~"];
    for name in names {
        client.stor(name, name).await;
    }
    for name in names {
        assert_eq!(client.retr(name).await, name.as_bytes());
        assert_eq!(client.retr(&format!("/{name}")).await, name.as_bytes());
    }
    let held = scene.home("alice");
    assert_eq!(held.len(), names.len());
    assert!(names.iter().all(|name| held[*name].as_deref() == Some(name.as_bytes())), "{held:?}");
}

async fn a_path_is_followed_from_where_one_is(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.command("MKD a").await.expect(257);
    client.command("MKD a/b").await.expect(257);
    client.stor("a/b/c", "deep\n").await;
    client.command("CWD a").await.expect(250);
    for path in ["b/c", "./b/c", "../a/b/c", "/a/b/c", "b//c", "../../../../a/b/c"] {
        assert_eq!(client.retr(path).await, b"deep\n", "{path}");
    }
    client.command("CWD b").await.expect(250);
    assert_eq!(client.command("PWD").await.expect(257).quoted(), "/a/b");
    assert_eq!(client.retr("c").await, b"deep\n");
    client.command("CWD c").await.expect(550);
    client.command("CWD none").await.expect(550);
    client.command("CDUP").await.expect(250);
    client.command("CWD ..").await.expect(250);
    client.command("CDUP").await;
    assert_eq!(client.command("PWD").await.expect(257).quoted(), "/");
}

async fn a_file_that_is_replaced_while_it_is_sent_arrives_as_it_was(scene: Scene) {
    let (mut person, mut client) = alice(&scene).await;
    let old = noise(1, large_bytes(scene.engine));
    person.put("/files/a", &old).await;
    let mut data = client.begin("RETR a").await;
    let first = data.receive().await.unwrap().expect("the first bytes").to_vec();
    person.put("/files/a", "new\n").await;
    let rest = data.all().await.unwrap();
    assert!([first, rest].concat() == old);
    client.reply().await.expect(226);
    assert_eq!(client.retr("a").await, b"new\n");
}

async fn many_downloads_at_once_do_not_mix(scene: Scene) {
    const COUNT: usize = 12;
    let (mut person, _client) = alice(&scene).await;
    for at in 0..COUNT {
        person.put(&format!("/files/{at}"), noise(at as u64, 2_000 + 311 * at)).await;
    }
    together((0..COUNT).map(|at| {
        let scene = &scene;
        async move {
            let mut client = FtpClient::of(scene, "alice").await;
            for round in 0..2 {
                let at = (at + round) % COUNT;
                assert!(client.retr(&at.to_string()).await == noise(at as u64, 2_000 + 311 * at));
            }
        }
    }))
    .await;
}

async fn a_client_that_stops_reading_delays_no_other(scene: Scene) {
    let (mut person, mut slow) = alice(&scene).await;
    let large = noise(3, large_bytes(scene.engine));
    person.put("/files/large", &large).await;
    person.put("/files/small", "small\n").await;
    let mut data = slow.begin("RETR large").await;
    let mut other = FtpClient::of(&scene, "alice").await;
    for _ in 0..5 {
        assert_eq!(other.retr("small").await, b"small\n");
    }
    assert!(data.all().await.unwrap() == large);
    slow.reply().await.expect(226);
}

behaviours!(with_accounts and remote and tls;
    a_file_arrives_byte_for_byte,
    a_download_begins_where_rest_says,
    a_path_that_is_no_file_is_not_sent,
    names_are_bytes_that_a_file_can_have,
    a_path_is_followed_from_where_one_is,
    a_file_that_is_replaced_while_it_is_sent_arrives_as_it_was,
    many_downloads_at_once_do_not_mix,
    a_client_that_stops_reading_delays_no_other,
);
