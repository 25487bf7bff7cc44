//! Interrupted uploads, in each way possible: no file appears, and the received bytes are kept.

use plimsoll_proto::ftp::limits::QUEUED_COMMANDS_MAX;
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Data, Engine, FtpClient, Scene, behaviours};

use super::{alice, until_moved, with_accounts};

const ALL: usize = 60_000;
const FIRST: usize = 40_000;

/// Returns the bytes of every upload here.
fn bytes() -> Vec<u8> {
    noise(7, ALL)
}

/// Starts an upload of `a`, of which the server has received the first part.
async fn begun(scene: &Scene, client: &mut FtpClient) -> Data {
    let mut data = client.begin("STOR a").await;
    data.send(&bytes()[..FIRST]).await.unwrap();
    until_moved(scene, client, FIRST).await;
    data
}

/// Resumes the interrupted upload on the same control connection.
async fn assert_session_continues(scene: &Scene, client: &mut FtpClient) {
    assert_eq!(client.command("SIZE a").await.expect(213).text(), FIRST.to_string());
    client.command(format!("REST {FIRST}")).await.expect(350);
    client.send("STOR a", &bytes()[FIRST..]).await.expect(226);
    assert!(client.retr("a").await == bytes());
    scene.until(|| scene.pending("alice").is_empty()).await;
}

/// Resumes the interrupted upload on a new control connection.
async fn comes_back(scene: &Scene, sessions: usize) {
    scene.until(|| scene.open() == sessions).await;
    assert!(scene.home("alice").is_empty());
    let mut client = FtpClient::of(scene, "alice").await;
    assert_session_continues(scene, &mut client).await;
}

async fn a_data_connection_that_breaks(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    begun(&scene, &mut client).await.abort();
    client.reply().await.expect(426);
    assert!(scene.home("alice").is_empty());
    assert_session_continues(&scene, &mut client).await;
}

async fn abor_while_the_client_sends_nothing(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let data = begun(&scene, &mut client).await;
    client.command("ABOR").await.expect(426);
    client.reply().await.expect(226);
    drop(data);
    assert!(scene.home("alice").is_empty());
    assert_session_continues(&scene, &mut client).await;
}

async fn abor_as_old_clients_say_it(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let data = begun(&scene, &mut client).await;
    // IAC IP, and the first byte of IAC DM before the line, as RFC 959 specifies.
    client.push(b"\xff\xf4\xff\xf2ABOR\r\n");
    client.reply().await.expect(426);
    client.reply().await.expect(226);
    drop(data);
    assert_session_continues(&scene, &mut client).await;
}

async fn abor_before_the_end_of_the_bytes(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let mut data = begun(&scene, &mut client).await;
    client.push("ABOR\r\n");
    client.reply().await.expect(426);
    // The client's own end comes after ABOR, so it does not mean that all was sent.
    let _ = data.end().await;
    client.reply().await.expect(226);
    assert!(scene.home("alice").is_empty());
    assert_session_continues(&scene, &mut client).await;
}

async fn a_control_connection_that_breaks(scene: Scene) {
    let (person, mut client) = alice(&scene).await;
    let data = begun(&scene, &mut client).await;
    drop(person);
    drop(client);
    comes_back(&scene, 0).await;
    drop(data);
}

async fn a_control_connection_that_ends(scene: Scene) {
    let (person, mut client) = alice(&scene).await;
    let _data = begun(&scene, &mut client).await;
    drop(person);
    client.end();
    comes_back(&scene, 0).await;
}

/// A killed process: the kernel ends both connections, as if all had been sent.
async fn a_client_that_is_killed(scene: Scene) {
    let (person, mut client) = alice(&scene).await;
    let mut data = begun(&scene, &mut client).await;
    drop(person);
    client.end();
    scene.io.sleep(std::time::Duration::from_millis(30)).await;
    let _ = data.end().await;
    comes_back(&scene, 0).await;
}

/// The same, where the end of the data comes first, as if the client had sent all and waited for the
/// answer. Not in the simulator, whose network may delay the other end arbitrarily.
async fn a_client_that_is_killed_whose_data_connection_ends_first(scene: Scene) {
    if scene.engine == Engine::Simulator {
        return;
    }
    let (person, mut client) = alice(&scene).await;
    let mut data = begun(&scene, &mut client).await;
    drop(person);
    let ended = data.end();
    client.end();
    let _ = ended.await;
    comes_back(&scene, 0).await;
}

async fn a_client_that_kept_the_connection_alive_is_killed(scene: Scene) {
    let (person, mut client) = alice(&scene).await;
    let mut data = begun(&scene, &mut client).await;
    client.push("NOOP\r\n".repeat(2 * QUEUED_COMMANDS_MAX));
    client.expect_silence(std::time::Duration::from_millis(30)).await;
    drop(person);
    client.end();
    // A simulated network may delay each byte.
    let pause = if scene.engine == Engine::Simulator { 10_000 } else { 30 };
    scene.io.sleep(std::time::Duration::from_millis(pause)).await;
    let _ = data.end().await;
    comes_back(&scene, 0).await;
}

async fn abor_behind_other_commands_is_heard_at_once_and_answered_after_them(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let data = begun(&scene, &mut client).await;
    client.push("PWD\r\nSYST\r\nABOR\r\nPWD\r\n");
    for code in [426, 257, 215, 226, 257] {
        client.reply().await.expect(code);
    }
    drop(data);
    assert_session_continues(&scene, &mut client).await;
}

async fn a_client_that_sends_too_many_commands_is_disconnected(scene: Scene) {
    let (person, mut client) = alice(&scene).await;
    let data = begun(&scene, &mut client).await;
    client.push((0..=QUEUED_COMMANDS_MAX).map(|number| format!("CWD {number}\r\n")).collect::<String>());
    client.reply().await.expect(426);
    client.expect_end().await;
    drop((person, client));
    comes_back(&scene, 0).await;
    drop(data);
}

async fn a_client_that_takes_back_its_last_bytes(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let data = begun(&scene, &mut client).await;
    drop(data);
    client.reply().await.expect(426);
    client.command("ABOR").await.expect(226);
    assert_session_continues(&scene, &mut client).await;
}

async fn an_upload_over_a_file_leaves_it_as_it_was(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "the old one\n").await;
    begun(&scene, &mut client).await.abort();
    client.reply().await.expect(426);
    assert_eq!(
        client.command("SIZE a").await.expect(213).text(),
        "12",
        "a download must not be cut short by it"
    );
    assert_eq!(client.retr("a").await, b"the old one\n");
    client.command(format!("REST {FIRST}")).await.expect(350);
    client.send("STOR a", &bytes()[FIRST..]).await.expect(226);
    assert!(client.retr("a").await == bytes());
}

async fn an_aborted_upload_without_a_byte_leaves_nothing(scene: Scene) {
    let (mut person, mut client) = alice(&scene).await;
    client.begin("STOR a").await.abort();
    client.reply().await.expect(426);
    client.command("SIZE a").await.expect(550);
    scene.until(|| scene.pending("alice").is_empty()).await;
    assert_eq!(person.get("/uploads").await.json(), serde_json::json!({ "uploads": [] }));
}

behaviours!(with_accounts and remote;
    a_data_connection_that_breaks,
    abor_while_the_client_sends_nothing,
    abor_as_old_clients_say_it,
    abor_before_the_end_of_the_bytes,
    a_control_connection_that_breaks,
    a_control_connection_that_ends,
    a_client_that_is_killed,
    a_client_that_is_killed_whose_data_connection_ends_first,
    a_client_that_kept_the_connection_alive_is_killed,
    abor_behind_other_commands_is_heard_at_once_and_answered_after_them,
    a_client_that_sends_too_many_commands_is_disconnected,
    a_client_that_takes_back_its_last_bytes,
    an_upload_over_a_file_leaves_it_as_it_was,
    an_aborted_upload_without_a_byte_leaves_nothing,
);
