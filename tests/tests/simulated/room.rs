//! A server whose idle connections give up their workers, at any moment.

use std::time::Duration;

use plimsoll_io::sim::{Faults, Host};
use plimsoll_proto::http::Limits;
use plimsoll_tests::under::{Simulation, every_seed};
use plimsoll_tests::{Client, Ftp, FtpClient, Scenario, Scene, Tree};

fn scenario() -> Scenario {
    let tree = Tree::new().file("small.txt", "small\n");
    let limits = Limits { idle_time: IDLE_TIME, ..Limits::default() };
    Scenario { tree, limits, ftp: Some(Ftp::default()), ..Scenario::default() }
}

/// Runs `test` with each seed. The test gets the server's host, to signal that workers are needed.
fn each_seed<F: Future<Output = ()> + 'static>(test: impl Fn(Scene, Host) -> F) {
    for seed in every_seed() {
        let Simulation { sim, server, client, scene } = Simulation::new(seed, Faults::splits(), &scenario());
        sim.run(&client, test(scene, server));
        assert!(sim.panics().is_empty(), "seed {seed}: {:?}", sim.panics());
    }
}

const IDLE_TIME: Duration = Duration::from_secs(10);
/// Longer than the notification of an end takes, and much shorter than any limit.
const AT_ONCE: Duration = Duration::from_millis(100);

async fn ask(client: &mut Client) {
    let answer = client.get("/small.txt").await;
    assert_eq!((answer.text(), answer.field("Connection")), ("small\n".to_owned(), None));
}

#[test]
fn a_connection_that_gave_up_its_worker_is_served_again() {
    each_seed(|scene, server| async move {
        let mut client = scene.connect().await;
        ask(&mut client).await;
        server.want_room(true);
        for _ in 0..3 {
            ask(&mut client).await;
        }
        server.want_room(false);
        ask(&mut client).await;
    });
}

#[test]
fn a_request_in_progress_is_answered_before_its_connection_gives_up_the_worker() {
    each_seed(|scene, server| async move {
        let mut client = scene.connect().await;
        client.push("GET /test/slow HTTP/1.1\r\nHost: test\r\n\r\n");
        scene.until(|| scene.begun() == 1).await;
        server.want_room(true);
        let answer = client.answer().await;
        assert_eq!((answer.text(), answer.field("Connection")), ("late\n".to_owned(), None));
        ask(&mut client).await;
    });
}

#[test]
fn pipelined_requests_are_answered_in_order_where_workers_are_needed() {
    each_seed(|scene, server| async move {
        server.want_room(true);
        let mut client = scene.connect().await;
        client.push("GET /small.txt HTTP/1.1\r\nHost: test\r\n\r\nGET /none HTTP/1.1\r\nHost: test\r\n\r\n");
        assert_eq!(client.answer().await.text(), "small\n");
        assert_eq!(client.answer().await.status, 404);
    });
}

#[test]
fn a_connection_without_a_worker_ends_after_the_idle_time() {
    each_seed(|scene, server| async move {
        server.want_room(true);
        let mut silent = scene.connect().await;
        let came = scene.io.now();
        silent.expect_end().await;
        let held = scene.io.now() - came;
        assert!(IDLE_TIME - AT_ONCE < held && held < IDLE_TIME + AT_ONCE, "{held:?}");
    });
}

#[test]
fn a_connection_without_a_worker_ends_at_once_at_the_order_to_stop() {
    each_seed(|scene, server| async move {
        server.want_room(true);
        let mut client = scene.connect().await;
        ask(&mut client).await;
        let ordered = scene.io.now();
        server.order_stop();
        client.expect_end().await;
        assert!(scene.io.now() - ordered < AT_ONCE);
    });
}

#[test]
fn a_session_of_ftp_keeps_its_worker() {
    each_seed(|scene, server| async move {
        let mut client = FtpClient::connect(&scene).await;
        server.want_room(true);
        client.expect_silence(Duration::from_secs(30)).await;
        client.command("NOOP").await.expect(200);
    });
}
