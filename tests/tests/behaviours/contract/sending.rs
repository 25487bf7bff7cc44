//! Sending and receiving: pushed bytes are sent without a further call, and dropping a future loses
//! nothing.

use plimsoll_io::{Either, Segment, Want, join, select};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Scene, behaviours};

use super::acts::{HELD_BACK, command, scenario, sent, too_much};

/// Receives all bytes up to the clean end.
async fn rest_of(rx: &mut plimsoll_io::Rx) -> Vec<u8> {
    let mut whole = Vec::new();
    while let Some(lease) = rx.recv(Want::Body).await.expect("a clean end") {
        whole.extend_from_slice(&lease);
    }
    whole
}

async fn sent_bytes_arrive_whole_and_in_order(scene: Scene) {
    let body = noise(3, 50_000);
    let mut stream = scene.io.connect(&scene.at).await.unwrap();
    stream.tx.push(Segment::Owned(command('e', 0)));
    stream.tx.push(Segment::Owned(body.clone()));
    stream.tx.finish();
    assert!(rest_of(&mut stream.rx).await == body);
}

async fn dropping_a_future_loses_no_byte_on_either_side(scene: Scene) {
    let body = noise(4, 20_000);
    let mut stream = scene.io.connect(&scene.at).await.unwrap();
    stream.tx.push(Segment::Owned(command('E', 0)));
    let mut echoed = Vec::new();
    for part in body.chunks(1000) {
        stream.tx.push(Segment::Owned(part.to_vec()));
        let _dropped = select(stream.tx.drain(0), scene.io.yield_now()).await;
        if let Either::Left(received) = select(stream.rx.recv(Want::Body), scene.io.yield_now()).await {
            echoed.extend_from_slice(&received.unwrap().expect("not the end"));
        }
    }
    stream.tx.finish();
    echoed.extend_from_slice(&rest_of(&mut stream.rx).await);
    assert!(echoed == body);
}

async fn pushed_bytes_are_sent_without_a_poll_of_the_task(scene: Scene) {
    let len = too_much(&scene);
    let mut stream = scene.io.connect(&scene.at).await.unwrap();
    stream.tx.push(Segment::Owned(command('p', len)));
    let mut received = Vec::new();
    while received.len() < len {
        received.extend_from_slice(&stream.rx.recv(Want::Body).await.unwrap().expect("not the end"));
    }
    assert!(received == sent(len));
    scene.stop.order();
}

async fn a_server_that_does_not_receive_blocks_the_sender(scene: Scene) {
    let len = too_much(&scene);
    let mut stream = scene.io.connect(&scene.at).await.unwrap();
    stream.tx.push(Segment::Owned(command('h', 0)));
    stream.tx.push(Segment::Owned(noise(5, len)));
    stream.tx.finish();
    scene.io.sleep(HELD_BACK / 2).await;
    assert!(stream.tx.unsent() > 0, "everything was taken by a server that does not receive");
    assert_eq!(rest_of(&mut stream.rx).await, len.to_string().into_bytes());
}

async fn the_side_that_has_ended_can_still_receive(scene: Scene) {
    let mut stream = scene.io.connect(&scene.at).await.unwrap();
    stream.tx.push(Segment::Owned(command('r', 0)));
    stream.tx.push(Segment::Owned(noise(6, 5_000)));
    stream.tx.finish();
    assert_eq!(rest_of(&mut stream.rx).await, b"5000");
}

async fn both_directions_go_on_at_once(scene: Scene) {
    let len = too_much(&scene) / 4;
    let mut stream = scene.io.connect(&scene.at).await.unwrap();
    stream.tx.push(Segment::Owned(command('e', 0)));
    let (mut rx, mut tx) = stream.split();
    let sending = async {
        for part in noise(7, len).chunks(50_000) {
            tx.push(Segment::Owned(part.to_vec()));
            tx.drain(0).await.unwrap();
        }
        tx.finish();
    };
    let ((), echoed) = join(sending, rest_of(&mut rx)).await;
    assert!(echoed == noise(7, len));
}

async fn connecting_without_a_listener_fails_at_once(scene: Scene) {
    let address = {
        let listener = scene.io.listen(&":0".parse().unwrap()).unwrap();
        listener.address().clone()
    };
    let refused = scene.io.connect(&address).await.err().expect("an error");
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}

async fn both_ends_know_their_addresses(scene: Scene) {
    let mut listener = scene.io.listen(&":0".parse().unwrap()).unwrap();
    let address = listener.address().clone();
    let (near, far) = join(scene.io.connect(&address), listener.accept()).await;
    let (near, far) = (near.unwrap(), far.unwrap());
    assert_eq!(far.local().unwrap(), address);
    let plimsoll_io::Peer::Ip(ip, port) = far.peer() else { panic!("a TCP peer") };
    assert_eq!(near.local().unwrap(), plimsoll_io::Address::Ip((*ip, *port).into()));
}

behaviours!(
    scenario;
    sent_bytes_arrive_whole_and_in_order,
    dropping_a_future_loses_no_byte_on_either_side,
    pushed_bytes_are_sent_without_a_poll_of_the_task,
    a_server_that_does_not_receive_blocks_the_sender,
    the_side_that_has_ended_can_still_receive,
    both_directions_go_on_at_once,
    connecting_without_a_listener_fails_at_once,
    both_ends_know_their_addresses,
);
