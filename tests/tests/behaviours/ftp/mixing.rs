//! A file never gets the beginning of one upload and the end of another. SIZE, REST and APPE refer to the
//! same bytes, or the transfer is refused with a reason.

use std::time::Duration;

use plimsoll_store::limits::TAKEN_OVER_TIME;
use plimsoll_tests::{Data, Engine, FtpClient, Scene, behaviours, under};

use super::{alice, until_moved, with_accounts};

/// Starts an upload of `path` of which the server has `bytes`.
async fn started(scene: &Scene, client: &mut FtpClient, path: &str, bytes: &str) -> Data {
    let mut data = client.begin(format!("STOR {path}")).await;
    data.send(bytes).await.unwrap();
    until_moved(scene, client, bytes.len()).await;
    data
}

async fn interrupted(scene: &Scene, client: &mut FtpClient, path: &str, bytes: &str) {
    started(scene, client, path, bytes).await.abort();
    client.reply().await.expect(426);
}

/// Asserts that `line`, after `REST offset` if that is not 0, is refused with `code`; returns the reason.
async fn refused(client: &mut FtpClient, offset: usize, line: &str, code: u16) -> String {
    if offset > 0 {
        client.command(format!("REST {offset}")).await.expect(350);
    }
    client.refused(line).await.expect(code).text()
}

async fn size(client: &mut FtpClient, path: &str) -> String {
    client.command(format!("SIZE {path}")).await.expect(213).text()
}

async fn a_client_that_resumes_by_size_does_not_mix_an_old_file_with_an_interrupted_upload(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "old,").await;
    interrupted(&scene, &mut client, "a", "interrupted").await;
    assert_eq!(size(&mut client, "a").await, "4", "what RETR would send");
    // The ways in which curl resumes, and lftp and ncftp.
    let reason = refused(&mut client, 0, "APPE a", 554).await;
    assert!(reason.contains("REST 11"), "{reason}");
    for offset in [1, 4, 10] {
        let reason = refused(&mut client, offset, "STOR a", 554).await;
        assert!(reason.contains("REST 11"), "{reason}");
    }
    refused(&mut client, 12, "STOR a", 554).await;
    assert_eq!(client.retr("a").await, b"old,");
    client.command("REST 11").await.expect(350);
    client.send("STOR a", ", resumed").await.expect(226);
    assert_eq!(client.retr("a").await, b"interrupted, resumed");
    client.send("APPE a", " and appended").await.expect(226);
    assert_eq!(client.retr("a").await, b"interrupted, resumed and appended");
    assert!(scene.pending("alice").is_empty());
}

async fn an_offset_that_fits_both_the_file_and_the_interrupted_upload_is_refused(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "01234").await;
    interrupted(&scene, &mut client, "a", "abcde").await;
    refused(&mut client, 5, "STOR a", 554).await;
    refused(&mut client, 0, "APPE a", 554).await;
    assert_eq!(client.retr("a").await, b"01234");
    client.stor("a", "abcdefgh").await;
    assert_eq!(client.retr("a").await, b"abcdefgh");
    client.send("APPE a", "i").await.expect(226);
    assert!(scene.pending("alice").is_empty());
}

async fn a_file_that_came_after_an_upload_was_interrupted_is_not_mixed_with_it(scene: Scene) {
    let (mut person, mut client) = alice(&scene).await;
    interrupted(&scene, &mut client, "a", "01234").await;
    person.put("/files/a", "abcdef").await;
    assert_eq!(size(&mut client, "a").await, "6");
    for offset in [0, 3, 5, 6] {
        refused(&mut client, offset, if offset == 0 { "APPE a" } else { "STOR a" }, 554).await;
    }
    assert_eq!(client.retr("a").await, b"abcdef");
    client.stor("a", "0123456789").await;
    assert_eq!(client.retr("a").await, b"0123456789");
}

async fn a_download_is_resumed_from_the_file_while_an_upload_of_it_is_interrupted(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    client.stor("a", "0123456789").await;
    for bytes in ["abc", "abcdefghijklmno"] {
        interrupted(&scene, &mut client, "a", bytes).await;
        assert_eq!(size(&mut client, "a").await, "10");
        client.command("REST 4").await.expect(350);
        assert_eq!(client.retr("a").await, b"456789");
    }
}

async fn two_unfinished_uploads_of_a_path_are_not_resumed_as_one(scene: Scene) {
    let (_person, mut first) = alice(&scene).await;
    let mut second = FtpClient::of(&scene, "alice").await;
    let one = started(&scene, &mut first, "a", "the first").await;
    let other = started(&scene, &mut second, "a", "second").await;
    one.abort();
    first.reply().await.expect(426);
    other.abort();
    second.reply().await.expect(426);
    first.command("SIZE a").await.expect(550);
    for offset in [0, 3, 6, 9] {
        refused(&mut first, offset, if offset == 0 { "APPE a" } else { "STOR a" }, 554).await;
    }
    first.command("DELE a").await.expect(250);
    assert!(scene.pending("alice").is_empty());
    first.stor("a", "the first, whole").await;
    assert_eq!(first.retr("a").await, b"the first, whole");
}

async fn an_upload_that_another_client_sends_is_not_taken_over(scene: Scene) {
    let (_person, mut first) = alice(&scene).await;
    let mut second = FtpClient::of(&scene, "alice").await;
    let mut data = started(&scene, &mut first, "a", "the first").await;
    // STAT counts the bytes that a front has passed on; a storage server may receive them later.
    while size(&mut second, "a").await != "9" {
        scene.io.sleep(Duration::from_millis(2)).await;
    }
    refused(&mut second, 0, "APPE a", 450).await;
    refused(&mut second, 9, "STOR a", 450).await;
    refused(&mut second, 3, "STOR a", 450).await;
    data.send(", whole").await.unwrap();
    data.finish().await.unwrap();
    first.reply().await.expect(226);
    assert_eq!(second.retr("a").await, b"the first, whole");
}

async fn a_file_changed_between_size_and_the_transfer_is_not_resumed(scene: Scene) {
    let (mut person, mut client) = alice(&scene).await;
    client.stor("a", "0123").await;
    assert_eq!(size(&mut client, "a").await, "4");
    person.put("/files/a", "another").await;
    let reason = refused(&mut client, 0, "APPE a", 450).await;
    assert!(reason.contains("SIZE"), "{reason}");
    assert_eq!(size(&mut client, "a").await, "7");
    person.put("/files/a", "one more file").await;
    refused(&mut client, 7, "STOR a", 450).await;
    assert_eq!(client.retr("a").await, b"one more file");
    // The offset that SIZE reported is valid for the next transfer alone.
    size(&mut client, "a").await;
    client.send("APPE a", ".").await.expect(226);
    client.send("APPE a", ".").await.expect(226);
    assert_eq!(client.retr("a").await, b"one more file..");
    // The same for an upload that another client resumed meanwhile.
    interrupted(&scene, &mut client, "b", "012").await;
    assert_eq!(size(&mut client, "b").await, "3");
    let mut other = FtpClient::of(&scene, "alice").await;
    other.command("REST 3").await.expect(350);
    interrupted(&scene, &mut other, "b", "abc").await;
    refused(&mut client, 0, "APPE b", 450).await;
    assert_eq!(size(&mut client, "b").await, "6");
}

async fn an_upload_over_http_is_not_resumed_over_ftp(scene: Scene) {
    let (mut person, mut client) = alice(&scene).await;
    let created = "Tus-Resumable: 1.0.0\r\nUpload-Length: 100\r\nUpload-Metadata: path YQ==\r\n";
    let created = person.ask("POST", "/uploads", created, "").await;
    assert_eq!(created.status, 201);
    let url = created.field("location").expect("where it is").to_owned();
    let part =
        "Tus-Resumable: 1.0.0\r\nUpload-Offset: 0\r\nContent-Type: application/offset+octet-stream\r\n";
    assert_eq!(person.ask("PATCH", &url, part, "over HTTP").await.status, 204);
    client.command("SIZE a").await.expect(550);
    refused(&mut client, 9, "STOR a", 554).await;
    client.send("APPE a", "over FTP").await.expect(226);
    assert_eq!(client.retr("a").await, b"over FTP");
    client.stor("a", "over FTP again").await;
    let head = person.ask("HEAD", &url, "Tus-Resumable: 1.0.0\r\n", "").await;
    assert_eq!((head.status, head.field("upload-offset")), (200, Some("9")), "it is still there");
}

async fn a_client_that_appends_without_asking_for_the_size_gets_no_interrupted_upload(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    interrupted(&scene, &mut client, "a", "a li").await;
    let reason = refused(&mut client, 0, "APPE a", 554).await;
    assert!(reason.contains("SIZE"), "{reason}");
    client.command("DELE a").await.expect(250);
    client.send("APPE a", "a line\n").await.expect(226);
    assert_eq!(client.retr("a").await, b"a line\n");
}

async fn a_text_is_not_resumed_by_its_size(scene: Scene) {
    let (_person, mut client) = alice(&scene).await;
    interrupted(&scene, &mut client, "a", "a\nb\n").await;
    client.command("TYPE A").await.expect(200);
    assert_eq!(size(&mut client, "a").await, "4");
    refused(&mut client, 0, "APPE a", 504).await;
    client.command("REST 4").await.expect(504);
    client.command("TYPE I").await.expect(200);
    client.command("REST 4").await.expect(350);
    client.command("TYPE A").await.expect(200);
    refused(&mut client, 0, "STOR a", 504).await;
    client.command("TYPE I").await.expect(200);
    client.send("APPE a", "c\n").await.expect(226);
    assert_eq!(client.retr("a").await, b"a\nb\nc\n");
    // Without SIZE before it, APPE appends.
    client.command("TYPE A").await.expect(200);
    client.send("APPE a", "d\r\n").await.expect(226);
    client.command("TYPE I").await.expect(200);
    assert_eq!(client.retr("a").await, b"a\nb\nc\nd\n");
}

async fn adjacent_slashes_are_one_over_http_and_ftp(scene: Scene) {
    let (mut person, mut client) = alice(&scene).await;
    assert_eq!(person.ask("MKCOL", "/files//folder//", "", "").await.status, 201);
    assert_eq!(person.put("/files///folder//a", "over HTTP").await.status, 201);
    client.stor("//folder///b", "over FTP").await;
    for path in ["folder/a", "/folder//a", "//folder///a"] {
        assert_eq!(client.retr(path).await, b"over HTTP", "{path}");
    }
    for target in ["/files/folder/b", "/files//folder/b", "/files/folder///b", "/shared//bob//x"] {
        let status = if target.contains("bob") { 404 } else { 200 };
        assert_eq!(person.get(target).await.status, status, "{target}");
    }
    let listed = person.get("/files//folder//?format=json").await.json();
    assert_eq!(listed["path"], "/folder/");
    let moved = person.ask("MOVE", "/files//folder/b", "Destination: /files/folder//c\r\n", "").await;
    assert_eq!((moved.status, moved.field("Location")), (201, Some("/files/folder/c")));
    assert_eq!(client.retr("/folder/c").await, b"over FTP");
    assert_eq!(person.ask("DELETE", "/files/folder//c", "", "").await.status, 204);
}

behaviours!(with_accounts and remote and tls;
    adjacent_slashes_are_one_over_http_and_ftp,
    a_client_that_resumes_by_size_does_not_mix_an_old_file_with_an_interrupted_upload,
    an_offset_that_fits_both_the_file_and_the_interrupted_upload_is_refused,
    a_file_that_came_after_an_upload_was_interrupted_is_not_mixed_with_it,
    a_download_is_resumed_from_the_file_while_an_upload_of_it_is_interrupted,
    two_unfinished_uploads_of_a_path_are_not_resumed_as_one,
    an_upload_that_another_client_sends_is_not_taken_over,
    a_file_changed_between_size_and_the_transfer_is_not_resumed,
    an_upload_over_http_is_not_resumed_over_ftp,
    a_client_that_appends_without_asking_for_the_size_gets_no_interrupted_upload,
    a_text_is_not_resumed_by_its_size,
);

/// In the simulator alone, whose clock advances without real waiting.
#[test]
fn an_upload_whose_connection_fell_silent_is_taken_over() {
    under(Engine::Simulator, with_accounts, |scene| async move {
        let (_person, mut first) = alice(&scene).await;
        let _silent = started(&scene, &mut first, "a", "01234").await;
        scene.io.sleep(TAKEN_OVER_TIME).await;
        let mut second = FtpClient::of(&scene, "alice").await;
        assert_eq!(size(&mut second, "a").await, "5");
        second.send("APPE a", "56789").await.expect(226);
        assert_eq!(second.retr("a").await, b"0123456789");
    });
}
