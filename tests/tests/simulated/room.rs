//! A server whose connections are to make room for others, at any moment of theirs.

use std::time::Duration;

use plimsoll_io::sim::{Faults, Host};
use plimsoll_tests::under::{Simulation, every_seed};
use plimsoll_tests::{Ftp, FtpClient, Scenario, Scene, Tree};

fn scenario() -> Scenario {
    let tree = Tree::new().file("small.txt", "small\n");
    Scenario { tree, ftp: Some(Ftp::default()), ..Scenario::default() }
}

/// Runs `test` with each seed, with the server's machine to tell it that room is wanted.
fn each_seed<F: Future<Output = ()> + 'static>(test: impl Fn(Scene, Host) -> F) {
    for seed in every_seed() {
        let Simulation { sim, server, client, scene } = Simulation::new(seed, Faults::splits(), &scenario());
        sim.run(&client, test(scene, server));
        assert!(sim.panics().is_empty(), "seed {seed}: {:?}", sim.panics());
    }
}

/// Longer than the news of an end travels, and much shorter than any limit.
const AT_ONCE: Duration = Duration::from_millis(100);

#[test]
fn an_idle_connection_ends_at_once_when_room_is_wanted() {
    each_seed(|scene, server| async move {
        let mut client = scene.connect().await;
        assert_eq!(client.get("/small.txt").await.text(), "small\n");
        let wanted = scene.io.now();
        server.want_room(true);
        client.expect_end().await;
        assert!(scene.io.now() - wanted < AT_ONCE);
    });
}

#[test]
fn the_answer_to_what_was_begun_is_whole_and_the_last() {
    each_seed(|scene, server| async move {
        let mut client = scene.connect().await;
        client.push("GET /test/slow HTTP/1.1\r\nHost: test\r\n\r\n");
        scene.until(|| scene.begun() == 1).await;
        server.want_room(true);
        let answer = client.answer().await;
        assert_eq!((answer.text(), answer.field("Connection")), ("late\n".to_owned(), Some("close")));
        client.expect_end().await;
    });
}

#[test]
fn who_has_just_come_has_the_time_of_a_head_and_is_served_in_it() {
    each_seed(|scene, server| async move {
        server.want_room(true);
        let (mut client, mut silent) = (scene.connect().await, scene.connect().await);
        let (came, head_time) = (scene.io.now(), scenario().limits.head_time);
        scene.io.sleep(head_time / 2).await;
        let answer = client.get("/small.txt").await;
        assert_eq!((answer.text(), answer.field("Connection")), ("small\n".to_owned(), Some("close")));
        silent.expect_end().await;
        let held = scene.io.now() - came;
        assert!(head_time - AT_ONCE < held && held < head_time + AT_ONCE, "{held:?}");
    });
}

#[test]
fn connections_are_kept_again_when_there_is_room() {
    each_seed(|scene, server| async move {
        server.want_room(true);
        let mut client = scene.connect().await;
        assert_eq!(client.get("/small.txt").await.field("Connection"), Some("close"));
        server.want_room(false);
        let mut client = scene.connect().await;
        for _ in 0..2 {
            assert_eq!(client.get("/small.txt").await.field("Connection"), None);
        }
    });
}

#[test]
fn a_session_of_ftp_makes_room_for_nobody() {
    each_seed(|scene, server| async move {
        let mut client = FtpClient::connect(&scene).await;
        server.want_room(true);
        client.expect_silence(Duration::from_secs(30)).await;
        client.say("NOOP").await.expect(200);
    });
}
