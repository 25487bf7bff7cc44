//! The order to stop: idle control connections end with 421, and transfers in progress are finished.

use plimsoll_tests::tree::noise;
use plimsoll_tests::{FtpClient, Scene, behaviours};

use super::{alice, large_bytes, until_moved, with_accounts};

async fn an_idle_session_ends_with_the_reason(scene: Scene) {
    let (person, mut client) = alice(&scene).await;
    let mut stranger = FtpClient::connect(&scene).await;
    scene.stop.order();
    client.reply().await.expect(421);
    client.expect_end().await;
    stranger.reply().await.expect(421);
    stranger.expect_end().await;
    drop((person, client, stranger));
    scene.until(|| scene.open() == 0).await;
}

async fn an_upload_that_was_begun_is_finished(scene: Scene) {
    let (person, mut client) = alice(&scene).await;
    let mut data = client.begin("STOR a").await;
    data.send("hel").await.unwrap();
    until_moved(&scene, &mut client, 3).await;
    scene.stop.order();
    scene.io.sleep(std::time::Duration::from_millis(30)).await;
    data.send("lo").await.unwrap();
    data.finish().await.unwrap();
    client.reply().await.expect(226);
    client.reply().await.expect(421);
    client.expect_end().await;
    assert_eq!(scene.home("alice")["a"].as_deref(), Some(&b"hello"[..]));
    drop((person, client));
    scene.until(|| scene.open() == 0).await;
}

async fn a_download_that_was_begun_is_finished(scene: Scene) {
    let (mut person, mut client) = alice(&scene).await;
    let bytes = noise(8, large_bytes(scene.engine));
    person.put("/files/a", &bytes).await;
    let mut data = client.begin("RETR a").await;
    let first = data.receive().await.unwrap().expect("its beginning").to_vec();
    scene.stop.order();
    scene.io.sleep(std::time::Duration::from_millis(30)).await;
    assert!([first, data.all().await.unwrap()].concat() == bytes);
    client.reply().await.expect(226);
    client.reply().await.expect(421);
    client.expect_end().await;
}

behaviours!(with_accounts and remote and tls;
    an_idle_session_ends_with_the_reason,
    an_upload_that_was_begun_is_finished,
    a_download_that_was_begun_is_finished,
);

mod after_the_grace {
    use super::*;
    use plimsoll_tests::Scenario;

    fn scenario() -> Scenario {
        Scenario { grace: std::time::Duration::from_millis(300), ..with_accounts() }
    }

    async fn an_unfinished_upload_is_kept(scene: Scene) {
        let (person, mut client) = alice(&scene).await;
        let mut data = client.begin("STOR a").await;
        data.send("hello").await.unwrap();
        until_moved(&scene, &mut client, 5).await;
        if scene.engine == plimsoll_tests::Engine::Simulator {
            // The simulator has no grace period: transfers in progress may end.
            return;
        }
        scene.stop.order();
        assert!(client.try_reply().await.is_err(), "the connection is dropped");
        drop((person, client, data));
        scene.until(|| scene.pending("alice").len() == 2).await;
        let kept = scene.pending("alice");
        assert!(kept.values().any(|bytes| bytes.as_deref() == Some(b"hello")), "{kept:?}");
        assert!(scene.home("alice").is_empty());
    }

    behaviours!(scenario and remote; an_unfinished_upload_is_kept);
}
