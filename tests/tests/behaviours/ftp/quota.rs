//! Quotas and the maximal file size: the server answers 552, and nothing is lost.

use plimsoll_auth::{Permissions, Quota};
use plimsoll_proto::ftp::Limits;
use plimsoll_tests::{Ftp, FtpClient, Person, Scenario, Scene, behaviours, together};

use super::with_accounts;

const FILE_BYTES_MAX: u64 = 2_000;

fn scenario() -> Scenario {
    let limits = Limits { file_bytes_max: FILE_BYTES_MAX, ..Limits::default() };
    Scenario { ftp: Some(Ftp { limits, ..Ftp::default() }), ..with_accounts() }
}

async fn bounded(scene: &Scene, bytes: Option<u64>, files: Option<u64>) -> FtpClient {
    Person::with(scene, "alice", Quota { bytes, files }, Permissions::default()).await;
    FtpClient::of(scene, "alice").await
}

async fn more_than_the_quota_is_refused_and_the_old_file_stays(scene: Scene) {
    let mut client = bounded(&scene, Some(1_000), None).await;
    client.stor("a", [b'a'; 900]).await;
    client.send("STOR b", [b'b'; 101]).await.expect(552);
    client.send("STOR a", [b'a'; 1_001]).await.expect(552);
    client.send("APPE a", [b'a'; 101]).await.expect(552);
    assert_eq!(client.retr("a").await, [b'a'; 900]);
    client.stor("a", [b'c'; 1_000]).await;
    client.command("DELE a").await.expect(250);
    client.stor("b", [b'b'; 1_000]).await;
    assert_eq!(scene.home("alice").len(), 1);
    scene.until(|| scene.pending("alice").is_empty()).await;
}

async fn more_files_than_the_quota_are_refused(scene: Scene) {
    let mut client = bounded(&scene, None, Some(2)).await;
    client.stor("a", "x").await;
    client.stor("b", "x").await;
    client.refused("STOR c").await.expect(552);
    client.stor("a", "y").await;
    assert_eq!(scene.home("alice").len(), 2);
}

async fn a_full_home_refuses_an_upload_before_its_data(scene: Scene) {
    let mut client = bounded(&scene, Some(1_000), None).await;
    client.stor("a", [b'a'; 400]).await;
    client.stor("b", [b'b'; 600]).await;
    for line in ["STOR c", "APPE a", "STOU"] {
        client.refused(line).await.expect(552);
    }
    client.command("REST 400").await.expect(350);
    client.refused("STOR a").await.expect(552);
    assert_eq!(client.retr("a").await, [b'a'; 400]);
    client.stor("a", [b'c'; 400]).await;
    client.command("DELE b").await.expect(250);
    client.stor("c", [b'c'; 600]).await;
    scene.until(|| scene.pending("alice").is_empty()).await;
}

async fn of_many_writers_as_many_succeed_as_there_is_room_for(scene: Scene) {
    let first = bounded(&scene, None, Some(5)).await;
    let codes = together((0..16).map(|number| {
        let scene = &scene;
        async move {
            let mut client = FtpClient::of(scene, "alice").await;
            let mut data = client.data().await;
            let answer = client.command(format!("STOR {number}")).await;
            if answer.code != 150 {
                return answer.code;
            }
            if data.send("x").await.is_ok() {
                let _ = data.finish().await;
            }
            client.reply().await.code
        }
    }))
    .await;
    drop(first);
    assert_eq!(codes.iter().filter(|code| **code == 226).count(), 5, "{codes:?}");
    assert!(codes.iter().all(|code| matches!(code, 226 | 450 | 452 | 552)), "{codes:?}");
    assert_eq!(scene.home("alice").len(), 5);
}

async fn a_file_longer_than_may_be_is_refused(scene: Scene) {
    let mut client = bounded(&scene, None, None).await;
    client.stor("a", [b'a'; 2_000]).await;
    client.send("STOR b", [b'b'; 2_001]).await.expect(552);
    client.send("APPE a", "x").await.expect(552);
    assert_eq!(client.retr("a").await, [b'a'; 2_000]);
    assert_eq!(scene.home("alice").len(), 1);
}

behaviours!(scenario and remote and tls;
    more_than_the_quota_is_refused_and_the_old_file_stays,
    more_files_than_the_quota_are_refused,
    a_full_home_refuses_an_upload_before_its_data,
    of_many_writers_as_many_succeed_as_there_is_room_for,
    a_file_longer_than_may_be_is_refused,
);
