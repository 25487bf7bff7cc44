//! One FTP session, each of whose connections is split once: after each of its bytes in turn.

use std::time::Duration;

use plimsoll_io::sim::Faults;
use plimsoll_tests::under::simulated;
use plimsoll_tests::{DataMode, FtpClient, Person, Scene};

use super::scenario;

/// More bytes than either side sends in a session.
const SAID_BYTES: usize = 700;

async fn a_session_is_held(scene: Scene) {
    drop(Person::new(&scene, "alice").await);
    let mut client = FtpClient::of(&scene, "alice").await;
    client.stor("a b", "some bytes of a file\n").await;
    client.mode = DataMode::Active;
    assert_eq!(client.retr("a b").await, b"some bytes of a file\n");
    assert_eq!(client.fetch_lines("NLST").await, ["a b"]);
    client.command("FEAT").await.expect(211);
    assert!(client.command("MLST a b").await.expect(250).lines[1].ends_with(" /a b"));
    client.command("QUIT").await.expect(221);
    client.expect_end().await;
    scene.until(|| scene.open() == 0).await;
}

#[test]
fn a_session_is_held_wherever_its_connections_are_cut() {
    for bytes in 0..SAID_BYTES {
        simulated(0, Faults::split_at(bytes), &scenario(), a_session_is_held);
    }
}

/// Pipelined lines, with one pause after each number of bytes in turn.
#[test]
fn commands_are_obeyed_wherever_their_sender_pauses() {
    const LINES: &str = "USER alice\r\nPASS correct horse\r\nMKD a\r\n\
        CWD a\r\nPWD\r\nCDUP\r\nRMD a\r\nQUIT\r\n";
    for bytes in 1..LINES.len() {
        simulated(0, Faults::none(), &scenario(), move |scene| async move {
            drop(Person::new(&scene, "alice").await);
            let mut client = FtpClient::connect(&scene).await;
            let (first, second) = LINES.split_at(bytes);
            client.push(first);
            scene.io.sleep(Duration::from_secs(1)).await;
            client.push(second);
            for code in [331, 230, 257, 250, 257, 250, 250, 221] {
                assert_eq!(client.reply().await.code, code, "cut after {bytes} bytes");
            }
            client.expect_end().await;
        });
    }
}
