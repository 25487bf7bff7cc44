//! Discarded bytes: counted, never more than requested, and the bytes behind them untouched.

use plimsoll_io::{Segment, Stream, Want};
use plimsoll_tests::{Scene, behaviours};

use super::acts::{command, scenario, sent, too_much};

/// Returns a stream that receives `len` bytes and then a clean end.
async fn receiving(scene: &Scene, len: usize) -> Stream {
    let mut stream = scene.io.connect(&scene.at).await.unwrap();
    stream.tx.push(Segment::Owned(command('f', len)));
    stream
}

async fn all_of(stream: &mut Stream) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(lease) = stream.rx.recv(Want::Body).await.expect("a clean end") {
        whole.extend_from_slice(&lease);
    }
    whole
}

/// Discards exactly `bytes`, in as many steps as necessary.
async fn discard(stream: &mut Stream, bytes: usize) {
    let mut left = bytes as u64;
    while left > 0 {
        let discarded = stream.rx.discard(left).await.expect("no error");
        assert!((1..=left).contains(&discarded), "{discarded} of {left}");
        left -= discarded;
    }
}

async fn bytes_behind_discarded_ones_are_whole(scene: Scene) {
    for (len, discarded) in [(1, 1), (10, 3), (5_000, 4_999), (200_000, 70_000), (200_000, 199_990)] {
        let mut stream = receiving(&scene, len).await;
        discard(&mut stream, discarded).await;
        assert!(all_of(&mut stream).await == sent(len)[discarded..], "behind {discarded} of {len}");
    }
}

async fn bytes_are_discarded_and_received_by_turns(scene: Scene) {
    let (len, whole) = (100_000, sent(100_000));
    let mut stream = receiving(&scene, len).await;
    let mut at = 0;
    while at < len {
        let lease = stream.rx.recv(Want::Head).await.unwrap().expect("not the end");
        assert!(lease[..] == whole[at..at + lease.len()], "at {at}");
        at += lease.len();
        let step = (len - at).min(777);
        discard(&mut stream, step).await;
        at += step;
    }
    assert!(all_of(&mut stream).await.is_empty());
}

async fn the_end_is_none_and_stays_so(scene: Scene) {
    let len = too_much(&scene) / 4;
    let mut stream = receiving(&scene, len).await;
    let mut all = 0;
    loop {
        match stream.rx.discard(u64::MAX).await.expect("a clean end") {
            0 => break,
            discarded => all += discarded,
        }
    }
    assert_eq!(all, len as u64);
    assert_eq!(stream.rx.discard(1).await.unwrap(), 0);
    assert!(stream.rx.recv(Want::Head).await.unwrap().is_none());
}

async fn a_broken_stream_is_an_error_and_not_an_end(scene: Scene) {
    let mut stream = scene.io.connect(&scene.at).await.unwrap();
    stream.tx.push(Segment::Owned(command('d', too_much(&scene))));
    loop {
        match stream.rx.discard(u64::MAX).await {
            Ok(0) => panic!("a clean end of a stream that was dropped"),
            Ok(_) => {}
            Err(_) => break,
        }
    }
    assert!(stream.rx.discard(1).await.is_err());
}

behaviours!(
    scenario;
    bytes_behind_discarded_ones_are_whole,
    bytes_are_discarded_and_received_by_turns,
    the_end_is_none_and_stays_so,
    a_broken_stream_is_an_error_and_not_an_end,
);
