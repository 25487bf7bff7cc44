//! The order to stop: level-triggered, and it reaches every wait.

use std::future::pending;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_io::{Either, Handler, Io, Stream, Want, join, select};
use plimsoll_tests::service::Each;
use plimsoll_tests::{Protocol, Scenario, Scene, behaviours};

fn scenario() -> Scenario {
    Scenario { protocol: Protocol::Of(handler), ..Scenario::default() }
}

fn handler(io: Io) -> Rc<dyn Handler> {
    Rc::new(Each(io, wait))
}

/// Waits for the event that the first byte names, until the order to stop.
async fn wait(io: Io, mut stream: Stream) {
    let Ok(Some(first)) = stream.rx.recv(Want::Head).await else { return };
    let stopped = match first[0] {
        b'r' => select(io.stopping(), async { stream.rx.recv(Want::Body).await.is_ok() }).await,
        b's' => {
            select(io.stopping(), async {
                io.sleep(Duration::from_secs(3000)).await;
                true
            })
            .await
        }
        b'a' => {
            let mut listener = io.listen(&":0".parse().unwrap()).unwrap();
            select(io.stopping(), async { listener.accept().await.is_ok() }).await
        }
        b'n' => {
            let nested = join(io.stopping(), select(io.stopping(), pending::<()>()));
            select(
                async {
                    nested.await;
                },
                pending(),
            )
            .await
        }
        _ => select(io.stopping(), pending()).await,
    };
    assert_eq!(stopped, Either::Left(()));
    // Level-triggered: a second wait returns at once.
    io.stopping().await;
    assert!(io.is_stopping());
    let _ = stream.finish().await;
}

async fn the_order_reaches_every_wait(scene: Scene) {
    let mut clients = Vec::new();
    for command in ["r", "s", "a", "n", "p"] {
        let mut client = scene.connect().await;
        client.send(command).await;
        clients.push(client);
    }
    scene.io.sleep(Duration::from_millis(50)).await;
    scene.stop.order();
    for client in &mut clients {
        client.expect_end().await;
        client.stream.tx.finish();
    }
    drop(clients);
    scene.until(|| (scene.connections)() == 0).await;
}

async fn a_server_that_was_ordered_to_stop_refuses_new_connections(scene: Scene) {
    let mut client = scene.connect().await;
    client.send("r").await;
    scene.stop.order();
    client.expect_end().await;
    client.stream.tx.finish();
    drop(client);
    scene.until(|| (scene.connections)() == 0).await;
    // The listener is closed with the last connection, or just before.
    loop {
        match scene.io.connect(&scene.at).await {
            Err(_) => return,
            Ok(_) => scene.io.sleep(Duration::from_millis(5)).await,
        }
    }
}

behaviours!(
    scenario;
    the_order_reaches_every_wait,
    a_server_that_was_ordered_to_stop_refuses_new_connections,
);
