//! The ends of streams: dropping aborts, finishing delivers, in every engine alike.

use std::time::Duration;

use plimsoll_io::Want;
use plimsoll_tests::{Client, Engine, Scene, behaviours};

use super::acts::{command, scenario, sent, too_much};

async fn ask(scene: &Scene, name: char, len: usize) -> Client {
    let mut client = scene.connect().await;
    client.push(command(name, len));
    client
}

async fn all_of(client: &mut Client) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(lease) = client.receive().await.expect("a clean end") {
        whole.extend_from_slice(&lease);
    }
    whole
}

async fn a_dropped_stream_ends_in_an_error_and_never_cleanly(scene: Scene) {
    let len = too_much(&scene);
    let received = ask(&scene, 'd', len).await.expect_abort().await;
    assert!(received.len() < len, "a dropped stream delivered everything");
    assert!(sent(len).starts_with(&received));
}

async fn a_dropped_stream_ends_in_an_error_also_if_all_was_sent(scene: Scene) {
    let received = ask(&scene, 'D', 3).await.expect_abort().await;
    assert!(sent(3).starts_with(&received));
}

async fn a_finished_stream_is_delivered_to_a_slow_reader(scene: Scene) {
    let len = too_much(&scene) / 2;
    let mut client = ask(&scene, 'f', len).await;
    scene.io.sleep(Duration::from_millis(100)).await;
    assert!(all_of(&mut client).await == sent(len));
    assert_eq!((scene.connections)().min(1), 1, "the server waits for the peer's end");
    client.stream.tx.finish();
    drop(client);
    scene.until(|| (scene.connections)() == 0).await;
}

async fn bytes_taken_by_the_kernel_are_delivered_after_finish_and_drop(scene: Scene) {
    let mut client = ask(&scene, 'c', 2_000).await;
    scene.io.sleep(Duration::from_millis(50)).await;
    assert!(all_of(&mut client).await == sent(2_000));
}

/// The kernel reports an error once. A receive after it must not return an end of file to a caller that has
/// read the bytes before the error.
async fn a_broken_stream_is_an_error_at_every_later_receive(scene: Scene) {
    for _ in 0..10 {
        let mut client = ask(&scene, 'D', 3).await;
        scene.io.sleep(Duration::from_millis(20)).await;
        let rx = &mut client.stream.rx;
        while let Ok(received) = rx.recv_available(Want::Body, 1 << 20).await {
            assert!(!received.is_empty(), "a clean end of a stream that was dropped");
        }
        for _ in 0..3 {
            assert!(rx.recv(Want::Body).await.is_err());
            assert!(rx.recv_available(Want::Body, 1).await.is_err());
        }
    }
}

async fn an_aborted_client_leaves_nothing_behind(scene: Scene) {
    for name in ['e', 'E', 'p', 'f', 'r'] {
        let mut client = ask(&scene, name, 100_000).await;
        client.push("some more");
        scene.io.sleep(Duration::from_millis(20)).await;
        drop(client);
    }
    scene.stop.order();
    scene.until(|| (scene.connections)() == 0).await;
}

/// The probe is for work on another thread, which must see an end before the stream's own task receives it.
async fn a_probe_sees_the_peers_end_also_behind_unread_bytes(scene: Scene) {
    for name in ['f', 'd'] {
        let mut client = scene.connect().await;
        let Some(probe) = client.stream.end_probe() else {
            assert_eq!(scene.engine, Engine::Simulator);
            return;
        };
        assert!(!probe.has_ended());
        client.push(command(name, 2_000));
        scene.until(|| probe.has_ended()).await;
        assert!(client.stream.round_trip().is_some_and(|time| time > Duration::ZERO));
        drop(client);
        assert!(probe.has_ended(), "a probe may outlive its stream");
    }
}

behaviours!(
    scenario;
    a_dropped_stream_ends_in_an_error_and_never_cleanly,
    a_dropped_stream_ends_in_an_error_also_if_all_was_sent,
    a_finished_stream_is_delivered_to_a_slow_reader,
    bytes_taken_by_the_kernel_are_delivered_after_finish_and_drop,
    a_broken_stream_is_an_error_at_every_later_receive,
    an_aborted_client_leaves_nothing_behind,
    a_probe_sees_the_peers_end_also_behind_unread_bytes,
);
