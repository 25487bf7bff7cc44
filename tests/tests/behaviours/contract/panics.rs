//! A panic ends one connection.

use plimsoll_io::{Segment, Want};
use plimsoll_tests::{Scenario, Scene, behaviours};

use super::acts::{self, command};

fn scenario() -> Scenario {
    Scenario { panics: true, ..acts::scenario() }
}

async fn a_panic_ends_the_connection_it_happened_in_and_no_other(scene: Scene) {
    let mut steady = scene.io.connect(&scene.at).await.unwrap();
    steady.tx.push(Segment::Owned(command('e', 0)));
    let mut doomed = scene.connect().await;
    doomed.push(command('!', 0));
    assert!(doomed.expect_abort().await.is_empty());
    steady.tx.push(Segment::Static(b"still here"));
    let mut back = Vec::new();
    while back.len() < 10 {
        back.extend_from_slice(&steady.rx.recv(Want::Body).await.unwrap().expect("not the end"));
    }
    assert_eq!(back, b"still here");
}

behaviours!(scenario; a_panic_ends_the_connection_it_happened_in_and_no_other);
