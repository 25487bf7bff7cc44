//! Bytes that are forwarded from one stream to another unread: unchanged, and to no other stream.

use plimsoll_io::{Segment, Stream, Want, join};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Engine, Scene, behaviours};

use super::acts::{command, scenario, too_much};

/// How many bytes are forwarded at a time: one, fewer than are worth a pipe, more, and more than a pipe
/// holds.
const AT_A_TIME: [usize; 4] = [1, 3_000, 20_000, 10_000_000];

/// Returns a stream whose bytes are echoed, at most `at_a_time` at a time.
async fn passed_on(scene: &Scene, at_a_time: usize) -> Stream {
    let mut stream = scene.io.connect(&scene.at).await.unwrap();
    stream.tx.push(Segment::Owned(command('o', at_a_time)));
    stream
}

/// Sends `body`, and returns the echoed bytes up to a clean end.
async fn returned(stream: Stream, body: &[u8]) -> Vec<u8> {
    let (mut rx, mut tx) = stream.split();
    let sending = async {
        for part in body.chunks(50_000) {
            tx.push(Segment::Owned(part.to_vec()));
            tx.drain(0).await.unwrap();
        }
        tx.finish();
    };
    let receiving = async {
        let mut whole = Vec::new();
        while let Some(lease) = rx.recv(Want::Body).await.expect("a clean end") {
            whole.extend_from_slice(&lease);
        }
        whole
    };
    join(sending, receiving).await.1
}

async fn relayed_bytes_arrive_whole_and_in_order(scene: Scene) {
    for at_a_time in AT_A_TIME {
        let most = if at_a_time == 1 { 500 } else { too_much(&scene) / 4 };
        for len in [0, 1, most] {
            let body = noise(11, len);
            let stream = passed_on(&scene, at_a_time).await;
            assert!(returned(stream, &body).await == body, "{len} bytes, {at_a_time} at a time");
        }
    }
}

/// More rounds than there are pipes. The simulator has none and is slow: there, a few rounds suffice.
async fn bytes_in_transit_on_a_broken_stream_are_never_sent_on_another(scene: Scene) {
    let rounds = if scene.engine == Engine::Simulator { 5 } else { 100 };
    for round in 0..rounds {
        let mut broken = passed_on(&scene, 10_000_000).await;
        broken.tx.push(Segment::Owned(noise(12, 400_000)));
        broken.rx.recv(Want::Body).await.unwrap().expect("some of it comes back");
        drop(broken);
        let body = noise(13 + round, 40_000);
        let stream = passed_on(&scene, 10_000_000).await;
        assert!(returned(stream, &body).await == body, "round {round}");
    }
    scene.until(|| (scene.connections)() == 0).await;
}

async fn a_client_that_receives_no_relayed_bytes_blocks_their_sender(scene: Scene) {
    let mut stream = passed_on(&scene, 10_000_000).await;
    stream.tx.push(Segment::Owned(noise(14, 2 * too_much(&scene))));
    stream.rx.recv(Want::Body).await.unwrap().expect("some of it comes back");
    scene.io.sleep(std::time::Duration::from_millis(200)).await;
    assert!(stream.tx.unsent() > 0, "all of it was taken, and nobody receives");
}

behaviours!(
    scenario;
    relayed_bytes_arrive_whole_and_in_order,
    bytes_in_transit_on_a_broken_stream_are_never_sent_on_another,
    a_client_that_receives_no_relayed_bytes_blocks_their_sender,
);
