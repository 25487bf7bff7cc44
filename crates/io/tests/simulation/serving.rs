//! The simulated dispatcher.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::sim::{BACKLOG_MAX, Faults, Sim, seeds};
use plimsoll_io::{Handler, Io, LocalFuture, Stream, Want, join};

use crate::{SECOND, at, collect, echo_setup, owned, receive_all, setup, two_hosts};

async fn exchange(io: &Io, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = io.connect(&at()).await?;
    stream.tx.push(owned(bytes));
    stream.tx.finish();
    receive_all(&mut stream.rx).await.map(|(received, _)| received)
}

#[test]
fn every_connection_has_a_task_of_its_own() {
    for seed in seeds(20) {
        let (sim, client, server) = two_hosts(seed, Faults::splits());
        sim.serve(&server, &at(), &echo_setup()).unwrap();
        let io = client.io();
        sim.run(&client, async move {
            let stuck = io.connect(&at()).await.unwrap();
            assert_eq!(exchange(&io, b"one").await.unwrap(), b"one");
            let (two, three) = join(exchange(&io, b"two"), exchange(&io, b"three")).await;
            assert_eq!((&two.unwrap()[..], &three.unwrap()[..]), (&b"two"[..], &b"three"[..]));
            drop(stuck);
            io.sleep(SECOND).await;
        });
        assert_eq!((sim.connections_open(), sim.live_tasks()), (0, 2));
    }
}

#[test]
fn the_chosen_port_is_returned() {
    let (sim, client, server) = two_hosts(0, Faults::none());
    let address = sim.serve(&server, &":0".parse().unwrap(), &echo_setup()).unwrap();
    let io = client.io();
    sim.run(&client, async move { io.connect(&address).await.map(drop).unwrap() });
    assert!(sim.serve(&client, &":49152".parse().unwrap(), &echo_setup()).is_err());
}

/// Answers a second after it is ordered to stop, and records when the background task was dropped.
struct Lasting {
    io: Io,
    beside: Rc<Cell<bool>>,
}

impl Handler for Lasting {
    fn serve(&self, mut stream: Stream) -> LocalFuture {
        let io = self.io.clone();
        Box::pin(async move {
            io.stopping().await;
            io.sleep(SECOND).await;
            stream.tx.push(owned(b"bye"));
            stream.finish().await.unwrap();
        })
    }

    fn background(&self) -> LocalFuture {
        struct Gone(Rc<Cell<bool>>);
        impl Drop for Gone {
            fn drop(&mut self) {
                self.0.set(false);
            }
        }
        let gone = Gone(Rc::clone(&self.beside));
        let io = self.io.clone();
        Box::pin(async move {
            gone.0.set(true);
            loop {
                io.sleep(SECOND).await;
            }
        })
    }
}

thread_local! {
    static BESIDE: Rc<Cell<bool>> = Rc::default();
}

#[test]
fn a_stopped_server_accepts_no_more_ends_its_connections_and_then_itself() {
    for seed in seeds(20) {
        let (sim, client, server) = two_hosts(seed, Faults::splits());
        let lasting = |io| -> Rc<dyn Handler> { Rc::new(Lasting { io, beside: BESIDE.with(Rc::clone) }) };
        sim.serve(&server, &at(), &(Arc::new(lasting) as plimsoll_io::Setup)).unwrap();
        let (io, order) = (client.io(), server.clone());
        sim.run(&client, async move {
            let stream = io.connect(&at()).await.unwrap();
            io.sleep(SECOND).await;
            order.order_stop();
            io.sleep(SECOND / 10).await;
            assert!(io.connect(&at()).await.is_err());
            assert!(BESIDE.with(|beside| beside.get()));
            assert_eq!(collect(stream).await.unwrap().0, b"bye");
            io.sleep(SECOND / 10).await;
        });
        assert_eq!((sim.live_tasks(), sim.panics()), (0, Vec::new()));
        assert!(!BESIDE.with(|beside| beside.get()));
    }
}

#[test]
fn a_panic_ends_its_connection_and_no_other() {
    for seed in seeds(20) {
        let (sim, client, server) = two_hosts(seed, Faults::splits());
        let fragile = setup(|_| {
            async |mut stream: Stream| {
                let lease = stream.rx.recv(Want::Head).await.unwrap().unwrap();
                assert_ne!(lease[0], b'!', "asked for it");
                stream.tx.push(plimsoll_io::Segment::Lease(lease));
                stream.finish().await.unwrap();
            }
        });
        sim.serve(&server, &at(), &fragile).unwrap();
        let io = client.io();
        sim.run(&client, async move {
            let (bad, good) = join(exchange(&io, b"!"), exchange(&io, b".")).await;
            assert!(bad.is_err());
            assert_eq!(good.unwrap(), b".");
            io.sleep(SECOND).await;
        });
        let panics = sim.panics();
        assert!(panics.len() == 1 && panics[0].starts_with("far: ") && panics[0].contains("asked for it"));
        assert_eq!((sim.connections_open(), sim.live_tasks()), (0, 2));
    }
}

#[test]
fn a_full_backlog_keeps_callers_waiting_until_there_is_room() {
    let sim = Sim::new(0, Faults::none());
    let (client, server) = (sim.host("client"), sim.host("server"));
    let mut listener = server.io().listen(&at()).unwrap();
    let io = client.io();
    sim.run(&client, async move {
        let mut waiting = Vec::new();
        for _ in 0..BACKLOG_MAX {
            waiting.push(io.connect(&at()).await.unwrap());
        }
        let before = io.now();
        let accept = async {
            io.sleep(SECOND / 2).await;
            listener.accept().await.unwrap()
        };
        join(io.connect(&at()), accept).await.0.unwrap();
        assert!(io.now() - before > SECOND / 2);
    });
}
