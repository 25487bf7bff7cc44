//! The order that a connection give up its worker: it never arrives while each connection has one.

use std::rc::Rc;

use plimsoll_io::{Either, Handler, Io, Segment, Stream, Want, select};
use plimsoll_tests::service::Each;
use plimsoll_tests::{Protocol, Scenario, Scene, behaviours};

fn scenario() -> Scenario {
    Scenario { protocol: Protocol::Of(handler), ..Scenario::default() }
}

fn handler(io: Io) -> Rc<dyn Handler> {
    Rc::new(Each(io, echo_until_room_is_wanted))
}

/// Echoes received bytes until `room_wanted` asks for the worker.
async fn echo_until_room_is_wanted(io: Io, mut stream: Stream) {
    while let Either::Left(Ok(Some(lease))) = select(stream.rx.recv(Want::Head), io.room_wanted()).await {
        stream.tx.push(Segment::Lease(lease));
    }
    // A connection that gives up its worker still ends as any other.
    io.leave();
    let _ = stream.finish().await;
}

async fn no_connection_gives_up_its_worker_while_there_is_one_for_each(scene: Scene) {
    let mut clients = Vec::new();
    for _ in 0..10 {
        clients.push(scene.connect().await);
    }
    for round in ["once", "twice"] {
        for client in &mut clients {
            client.send(round).await;
            assert_eq!(client.body(round.len()).await.unwrap(), round.as_bytes());
        }
    }
    for client in &mut clients {
        client.stream.tx.finish();
        client.expect_end().await;
    }
    drop(clients);
    scene.until(|| scene.open() == 0).await;
}

behaviours!(scenario; no_connection_gives_up_its_worker_while_there_is_one_for_each);
