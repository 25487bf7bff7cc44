//! A link between a front and its server that a test may cut: while it is cut, no byte passes.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use plimsoll_io::sim::Sim;
use plimsoll_io::{Address, Io, Listener, LocalFuture, Rx, Segment, Stream, Tx, Want, join, select};

/// Interval at which a link checks whether it is cut.
const TICK: Duration = Duration::from_millis(20);
/// Bytes that a link buffers in each direction.
const UNSENT_BYTES_MAX: u64 = 64 * 1024;

/// Connects `name` to the server at `to`. Returns the address of the link, and the switch that cuts it.
pub(crate) fn connect(sim: &Sim, name: &str, to: &Address) -> (Address, Rc<Cell<bool>>) {
    let (host, is_cut) = (sim.host(&format!("link of {name}")), Rc::new(Cell::new(false)));
    // The simulator's hosts share their ports.
    let listening = (7100..7200).find_map(|port| host.io().listen(&format!(":{port}").parse().unwrap()).ok());
    let listener = listening.unwrap();
    let (at, io, cut) = (listener.address().clone(), host.io(), Rc::clone(&is_cut));
    let mut relaying: LocalFuture = Box::pin(relay_all(host.io(), listener, to.clone()));
    let switched = async move {
        loop {
            let tick = io.sleep(TICK);
            if cut.get() {
                tick.await;
            } else {
                select(relaying.as_mut(), tick).await;
            }
        }
    };
    sim.spawn(&host, Box::pin(switched));
    (at, is_cut)
}

/// Relays each connection that is accepted. Never ends.
async fn relay_all(io: Io, mut listener: Listener, to: Address) {
    let relayed: Rc<RefCell<Vec<LocalFuture>>> = Rc::default();
    let new = Rc::clone(&relayed);
    let accepting = async move {
        loop {
            let stream = listener.accept().await.unwrap();
            new.borrow_mut().push(Box::pin(relay(io.clone(), stream, to.clone())));
            io.yield_now().await;
        }
    };
    let relaying = poll_fn(|cx| {
        relayed.borrow_mut().retain_mut(|relay| relay.as_mut().poll(cx).is_pending());
        Poll::<()>::Pending
    });
    join(accepting, relaying).await;
}

async fn relay(io: Io, from: Stream, to: Address) {
    let Ok(to) = io.connect(&to).await else { return };
    let ((from_rx, from_tx), (to_rx, to_tx)) = (from.split(), to.split());
    select(copy(from_rx, to_tx), copy(to_rx, from_tx)).await;
}

/// Copies until the end or a failure, which ends the connection in both directions.
async fn copy(mut from: Rx, mut to: Tx) {
    while let Ok(Some(lease)) = from.recv(Want::Body).await {
        to.push(Segment::Owned(lease.to_vec()));
        if to.drain(UNSENT_BYTES_MAX).await.is_err() {
            return;
        }
    }
    to.finish();
}
