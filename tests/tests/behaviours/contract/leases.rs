//! Leases: exclusive, mutable, and independent of what is received later.

use plimsoll_io::{Segment, Want};
use plimsoll_tests::{Scene, behaviours};

use super::acts::{command, scenario};

async fn a_lease_keeps_its_bytes_while_others_are_received_and_changed(scene: Scene) {
    let mut stream = scene.io.connect(&scene.at).await.unwrap();
    stream.tx.push(Segment::Owned(command('l', 0)));
    let mut whole = Vec::new();
    for (index, part) in ["first ", "second ", "third "].into_iter().enumerate() {
        // The server has a lease for all bytes before, and requests more.
        while whole.iter().filter(|byte| **byte == b'+').count() <= index {
            whole.extend_from_slice(&stream.rx.recv(Want::Body).await.unwrap().expect("a request"));
        }
        stream.tx.push(Segment::Static(part.as_bytes()));
    }
    while let Some(lease) = stream.rx.recv(Want::Body).await.expect("a clean end") {
        whole.extend_from_slice(&lease);
    }
    stream.tx.finish();
    let received = String::from_utf8(whole).unwrap().replace('+', "");
    // The server has changed the first lease in place, while it kept the others. A simulated network may
    // split the bytes further, so that a lease has only the beginning of its part.
    let sent = "first second third ";
    assert!(received.starts_with('F') && sent.starts_with(&received.to_ascii_lowercase()), "{received:?}");
    let rest = received.trim_start_matches(|each: char| !each.is_ascii_lowercase());
    assert!(!rest.is_empty() && !rest.contains(|each: char| each.is_ascii_uppercase()), "{received:?}");
}

async fn a_received_lease_can_go_out_again_as_it_is(scene: Scene) {
    let mut stream = scene.io.connect(&scene.at).await.unwrap();
    stream.tx.push(Segment::Owned(command('e', 0)));
    stream.tx.push(Segment::Static(b"there and back"));
    let mut back = Vec::new();
    while back.len() < 14 {
        back.extend_from_slice(&stream.rx.recv(Want::Body).await.unwrap().expect("not the end"));
    }
    assert_eq!(back, b"there and back");
}

behaviours!(
    scenario;
    a_lease_keeps_its_bytes_while_others_are_received_and_changed,
    a_received_lease_can_go_out_again_as_it_is,
);
