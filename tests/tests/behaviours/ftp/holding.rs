//! The laboratory's start barrier: transfers wait until there are enough of them, and start together.

use std::time::Duration;

use plimsoll_tests::{Ftp, FtpClient, Person, Scenario, Scene, behaviours};

use super::with_accounts;

const COUNT: usize = 3;

fn scenario() -> Scenario {
    Scenario { ftp: Some(Ftp { hold: Some(COUNT), ..Ftp::default() }), ..with_accounts() }
}

async fn transfers_begin_together(scene: Scene) {
    let mut person = Person::new(&scene, "alice").await;
    person.put("/files/a", "x").await;
    for _ in 0..2 {
        let mut held = Vec::new();
        for _ in 1..COUNT {
            let mut client = FtpClient::of(&scene, "alice").await;
            let data = client.begin("RETR a").await;
            held.push((client, data));
        }
        for (client, _) in &mut held {
            client.expect_silence(Duration::from_millis(30)).await;
        }
        let mut last = FtpClient::of(&scene, "alice").await;
        assert_eq!(last.retr("a").await, b"x");
        for (client, data) in &mut held {
            assert_eq!(data.all().await.unwrap(), b"x");
            client.reply().await.expect(226);
        }
    }
}

async fn a_client_that_disconnects_is_not_counted_in_the_barrier(scene: Scene) {
    let mut person = Person::new(&scene, "alice").await;
    person.put("/files/a", "x").await;
    let mut held = Vec::new();
    for _ in 1..COUNT {
        let mut client = FtpClient::of(&scene, "alice").await;
        let data = client.begin("RETR a").await;
        held.push((client, data));
    }
    let (mut gone, data) = held.pop().unwrap();
    gone.push("ABOR\r\n");
    gone.reply().await.expect(426);
    gone.reply().await.expect(226);
    drop(data);
    let mut second = FtpClient::of(&scene, "alice").await;
    let mut waiting = second.begin("RETR a").await;
    second.expect_silence(Duration::from_millis(30)).await;
    let mut third = FtpClient::of(&scene, "alice").await;
    assert_eq!(third.retr("a").await, b"x");
    assert_eq!(waiting.all().await.unwrap(), b"x");
}

async fn a_stop_releases_the_start_barrier(scene: Scene) {
    let mut person = Person::new(&scene, "alice").await;
    person.put("/files/a", "x").await;
    let mut client = FtpClient::of(&scene, "alice").await;
    let mut data = client.begin("RETR a").await;
    scene.io.sleep(Duration::from_millis(30)).await;
    scene.stop.order();
    assert_eq!(data.all().await.unwrap(), b"x");
    client.reply().await.expect(226);
    client.reply().await.expect(421);
}

behaviours!(scenario and remote;
    transfers_begin_together,
    a_client_that_disconnects_is_not_counted_in_the_barrier,
    a_stop_releases_the_start_barrier,
);
