//! The dispatcher of a simulated server: a task for each connection.
//!
//! A protocol cannot distinguish it from an engine's dispatcher. Invariants: after the order to stop
//! nothing more is accepted, connections end by themselves, and the background task ends last. A parked
//! connection is resumed by the same task.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Poll, Waker};

use super::host::{Host, Machine};
use crate::address::Address;
use crate::combine::{Either, select};
use crate::engine::{Handler, Setup};
use crate::io::Io;
use crate::listener::Listener;
use crate::parking::{ParkingSpot, Resume};
use crate::stream::Stream;

/// The number of a server's connections, and whether it has ended.
#[derive(Default)]
struct Server {
    connections: Cell<usize>,
    over: Cell<bool>,
    waiters: RefCell<Vec<Waker>>,
}

impl Server {
    async fn until(&self, reached: impl Fn(&Server) -> bool) {
        poll_fn(|cx| {
            if reached(self) {
                return Poll::Ready(());
            }
            let mut waiters = self.waiters.borrow_mut();
            if !waiters.iter().any(|known| known.will_wake(cx.waker())) {
                waiters.push(cx.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }

    fn changed(&self) {
        for waker in self.waiters.take() {
            waker.wake();
        }
    }
}

/// Counts one connection while it exists, also if it panics.
struct Counted(Rc<Server>);

impl Counted {
    fn new(server: &Rc<Server>) -> Counted {
        server.connections.set(server.connections.get() + 1);
        Counted(Rc::clone(server))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.set(self.0.connections.get() - 1);
        self.0.changed();
    }
}

/// Serves at `at` on `host`; returns the address with the chosen port.
pub(super) fn serve(host: &Host, at: &Address, setup: &Setup) -> io::Result<Address> {
    let (io, machine, server) = (host.io(), Rc::clone(&host.machine), Rc::<Server>::default());
    let listener = io.listen(at)?;
    let address = listener.address().clone();
    let handler = setup(io.clone());
    let world = Rc::clone(&machine.world);
    world.spawn(machine.number, Box::pin(beside(Rc::clone(&handler), Rc::clone(&server))));
    world.spawn(machine.number, Box::pin(dispatch(io, machine, listener, handler, server)));
    Ok(address)
}

/// Runs the handler's background task until the last connection has ended.
async fn beside(handler: Rc<dyn Handler>, server: Rc<Server>) {
    select(handler.background(), server.until(|server| server.over.get())).await;
}

async fn dispatch(
    io: Io,
    machine: Rc<Machine>,
    mut listener: Listener,
    handler: Rc<dyn Handler>,
    server: Rc<Server>,
) {
    while let Either::Right(accepted) = select(io.stopping(), listener.accept()).await {
        // An error concerns that connection only; the listener stays usable.
        let Ok(stream) = accepted else { continue };
        let (counted, handler, io) = (Counted::new(&server), Rc::clone(&handler), io.clone());
        let connection = async move {
            let _counted = counted;
            serve_and_resume(&io, &*handler, stream).await;
        };
        machine.world.spawn(machine.number, Box::pin(connection));
    }
    drop(listener);
    server.until(|server| server.connections.get() == 0).await;
    server.over.set(true);
    server.changed();
}

/// Serves a connection from its first byte to its last, also after its conversation has parked it.
async fn serve_and_resume(io: &Io, handler: &dyn Handler, stream: Stream) {
    let (parking, deadline) = (Rc::<ParkingSpot>::default(), io.deadline());
    handler.serve(stream.parking_at(&parking)).await;
    while let Some((parked, mut stream)) = parking.take() {
        deadline.set(parked.until);
        let action = match deadline.within(select(stream.readable(), io.stopping())).await {
            Ok(Either::Left(())) => Resume::Serve,
            Ok(Either::Right(())) | Err(_) => Resume::End,
        };
        handler.resume(stream.parking_at(&parking), parked, action).await;
    }
}
