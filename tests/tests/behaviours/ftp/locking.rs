//! A lock that was taken over WebDAV excludes changes over FTP. The client may try again when it has ended:
//! 450.

use plimsoll_tests::{Scene, behaviours};

use super::{alice, with_accounts};

const LOCKINFO: &str = "<lockinfo xmlns=\"DAV:\"><lockscope><exclusive/></lockscope>\
                        <locktype><write/></locktype></lockinfo>";

async fn a_locked_file_is_neither_stored_nor_removed_nor_renamed(scene: Scene) {
    let (mut alice, mut client) = alice(&scene).await;
    client.stor("a", "one").await;
    client.stor("b", "other").await;
    client.command("MKD d").await.expect(257);
    let locked = alice.ask("LOCK", "/files/a", "Depth: 0\r\n", LOCKINFO).await;
    assert_eq!(locked.status, 200, "{}", locked.text());
    assert_eq!(alice.ask("LOCK", "/files/d", "", LOCKINFO).await.status, 200);
    let reason = client.refused("STOR a").await.expect(450).text();
    assert!(reason.contains("alice has locked this"), "{reason}");
    client.refused("APPE a").await.expect(450);
    client.refused("STOR d/new").await.expect(450);
    client.command("DELE a").await.expect(450);
    client.command("RNFR a").await.expect(350);
    client.command("RNTO c").await.expect(450);
    client.command("RNFR b").await.expect(350);
    client.command("RNTO a").await.expect(450);
    client.command("MKD d/e").await.expect(450);
    client.command("RMD d").await.expect(450);
    client.command("MFMT 20200913122640 a").await.expect(450);
    assert_eq!(client.retr("a").await, b"one");
    let token = format!("Lock-Token: {}\r\n", locked.field("Lock-Token").expect("a token"));
    assert_eq!(alice.ask("UNLOCK", "/files/a", &token, "").await.status, 204);
    client.stor("a", "two").await;
    client.command("DELE a").await.expect(250);
}

behaviours!(with_accounts and remote;
    a_locked_file_is_neither_stored_nor_removed_nor_renamed,
);
