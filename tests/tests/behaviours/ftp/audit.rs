//! The transfer log and the xferlog: one line for each operation, with its bytes and result.

use plimsoll_tests::{Scene, behaviours};
use serde_json::Value;

use super::{alice, until_moved, with_accounts};

/// Returns the lines of `operation` so far.
fn lines(scene: &Scene, operation: &str) -> Vec<Value> {
    let all = scene.accounts().lines();
    all.into_iter().filter(|line| line["protocol"] == "ftp" && line["operation"] == operation).collect()
}

/// Waits until there are `count` lines of `operation`, and returns path, bytes and result of the last.
async fn last(scene: &Scene, operation: &str, count: usize) -> (String, u64, String) {
    scene.until(|| lines(scene, operation).len() >= count).await;
    let all = lines(scene, operation);
    assert_eq!(all.len(), count, "{all:?}");
    let line = all.last().unwrap();
    assert_eq!(line["account"], "alice", "{line}");
    assert!(line["start"].as_u64().unwrap() <= line["end"].as_u64().unwrap(), "{line}");
    let text = |name: &str| line[name].as_str().unwrap().to_owned();
    (text("path"), line["bytes"].as_u64().unwrap(), text("result"))
}

/// Returns the expected path, bytes and result of a line.
fn entry(path: &str, bytes: u64, result: &str) -> (String, u64, String) {
    (path.to_owned(), bytes, result.to_owned())
}

async fn transfers_have_a_line_with_their_bytes(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    assert_eq!(last(&scene, "login", 1).await.2, "ok");
    client.stor("a b", "hello").await;
    assert_eq!(last(&scene, "upload", 1).await, entry("/a b", 5, "ok"));
    client.retr("a b").await;
    assert_eq!(last(&scene, "download", 1).await, entry("/a b", 5, "ok"));
    client.command("REST 3").await.expect(350);
    client.retr("a b").await;
    assert_eq!(last(&scene, "download", 2).await, entry("/a b", 2, "ok"));
    client.send("APPE a b", "more").await.expect(226);
    assert_eq!(last(&scene, "upload", 2).await, entry("/a b", 4, "ok"));
    client.refused("RETR none").await.expect(550);
    assert_eq!(last(&scene, "download", 3).await, entry("/none", 0, "not found"));
    client.fetch("LIST").await;
    assert_eq!(last(&scene, "list", 1).await.2, "ok");
    client.command("DELE a b").await.expect(250);
    assert_eq!(last(&scene, "delete", 1).await.0, "/a b");
}

async fn an_aborted_transfer_has_a_line_that_says_so(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    let mut data = client.begin("STOR a").await;
    data.send("hello").await.unwrap();
    until_moved(&scene, &mut client, 5).await;
    data.abort();
    client.reply().await.expect(426);
    assert_eq!(last(&scene, "upload", 1).await, entry("/a", 5, "broken off"));
    client.epsv().await.unwrap();
    client.command("STOR b").await.expect(150);
    client.command("ABOR").await.expect(426);
    assert_eq!(last(&scene, "upload", 2).await, entry("/b", 0, "broken off"));
    client.reply().await.expect(226);
    client.stor("c", "x").await;
    for (count, line) in ["RETR c", "LIST"].into_iter().enumerate() {
        client.epsv().await.unwrap();
        client.command(line).await.expect(150);
        client.command("ABOR").await.expect(426);
        client.reply().await.expect(226);
        let operation = ["download", "list"][count];
        assert_eq!(last(&scene, operation, 1).await.2, "broken off", "{line}");
    }
    client.command("LIST").await.expect(425);
    assert_eq!(last(&scene, "list", 2).await.2, "no data connection");
}

async fn a_failed_login_has_a_line(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.command("USER alice").await.expect(331);
    client.command("PASS wrong").await.expect(530);
    let (_, _, result) = last(&scene, "login", 2).await;
    assert_ne!(result, "ok");
    assert!(!scene.accounts().transfers.text().contains("correct horse"));
}

async fn xferlog_has_files_that_came_and_went(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a b", "hello").await;
    client.command("TYPE A").await.expect(200);
    client.retr("a b").await;
    client.command("TYPE I").await.expect(200);
    let mut data = client.begin("STOR c").await;
    data.send("hel").await.unwrap();
    until_moved(&scene, &mut client, 3).await;
    data.abort();
    client.reply().await.expect(426);
    let xferlog = &scene.accounts().xferlog;
    scene.until(|| xferlog.text().lines().count() >= 3).await;
    let text = xferlog.text();
    for (line, wanted) in text.lines().zip([
        " 5 /a_b b _ i r alice ftp 0 * c",
        " 5 /a_b a _ o r alice ftp 0 * c",
        " 3 /c b _ i r alice ftp 0 * i",
    ]) {
        assert!(line.ends_with(wanted), "{text}");
    }
    assert_eq!(text.lines().count(), 3, "{text}");
}

behaviours!(with_accounts and remote and tls;
    transfers_have_a_line_with_their_bytes,
    an_aborted_transfer_has_a_line_that_says_so,
    a_failed_login_has_a_line,
    xferlog_has_files_that_came_and_went,
);

mod delivered {
    //! The end of a download: the client's machine has acknowledged the last byte.
    //!
    //! These run over real sockets: a simulated kernel buffers no more than its peer (see `simulated/ftp`).
    use plimsoll_tests::tree::noise;

    use super::*;

    /// More than the buffer of a receiver that does not read, and less than that with the sender's.
    const BYTES: usize = 400_000;

    /// Starts a download, and reads the whole conversation about it but no byte of the file.
    async fn sent(
        scene: &Scene,
    ) -> (plimsoll_tests::Person, plimsoll_tests::FtpClient, plimsoll_tests::Data) {
        let (person, mut client) = alice(scene).await;
        client.stor("a", noise(5, BYTES)).await;
        let mut data = client.begin("RETR a").await;
        data.stream().await.unwrap();
        client.reply().await.expect(226);
        (person, client, data)
    }

    async fn the_audit_entry_ends_when_the_client_has_received_the_file(scene: Scene) {
        let (_person, _client, mut data) = sent(&scene).await;
        let before = micros(&scene);
        assert!(data.all().await.unwrap() == noise(5, BYTES));
        assert_eq!(last(&scene, "download", 1).await, entry("/a", BYTES as u64, "ok"));
        let end = lines(&scene, "download")[0]["end"].as_u64().unwrap();
        assert!(end >= before, "the record has ended {} us before the client read", before - end);
    }

    async fn a_client_that_closes_before_has_broken_it_off(scene: Scene) {
        let (_person, _client, data) = sent(&scene).await;
        data.abort();
        assert_eq!(last(&scene, "download", 1).await.2, "broken off");
    }

    async fn the_next_command_ends_the_audit_entry(scene: Scene) {
        let (_person, mut client, mut data) = sent(&scene).await;
        client.command("NOOP").await.expect(200);
        assert_eq!(last(&scene, "download", 1).await, entry("/a", BYTES as u64, "ok"));
        assert!(data.all().await.unwrap() == noise(5, BYTES));
    }

    async fn the_end_of_the_session_ends_the_audit_entry(scene: Scene) {
        let (_person, mut client, mut data) = sent(&scene).await;
        client.end();
        client.expect_end().await;
        assert_eq!(last(&scene, "download", 1).await, entry("/a", BYTES as u64, "ok"));
        assert!(data.all().await.unwrap() == noise(5, BYTES));
    }

    fn micros(scene: &Scene) -> u64 {
        let now = scene.io.wall_exact().duration_since(std::time::UNIX_EPOCH).unwrap();
        u64::try_from(now.as_micros()).unwrap()
    }

    /// Names the behaviours under an engine.
    macro_rules! over_real_sockets {
        ($($engine:ident $kind:ident),*) => { $(
            mod $engine {
                use plimsoll_tests::{Engine, under};

                use super::super::with_accounts;

                #[test]
                fn the_audit_entry_ends_when_the_client_has_received_the_file() {
                    under(
                        Engine::$kind,
                        with_accounts,
                        super::the_audit_entry_ends_when_the_client_has_received_the_file,
                    );
                }

                #[test]
                fn a_client_that_closes_before_has_broken_it_off() {
                    under(Engine::$kind, with_accounts, super::a_client_that_closes_before_has_broken_it_off);
                }

                #[test]
                fn the_next_command_ends_the_audit_entry() {
                    under(Engine::$kind, with_accounts, super::the_next_command_ends_the_audit_entry);
                }

                #[test]
                fn the_end_of_the_session_ends_the_audit_entry() {
                    under(Engine::$kind, with_accounts, super::the_end_of_the_session_ends_the_audit_entry);
                }
            }
        )* };
    }

    over_real_sockets!(under_epoll Epoll, under_thread Thread, under_pool Pool, under_uring Uring);
}
