//! A simulated listener and its backlog.
//!
//! It is not the dispatcher ([`super::serve`] is). Invariants: the backlog is bounded; connections that
//! wait in it when the listener is dropped are reset, as by a kernel.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use super::connection::{Connection, Side};
use super::host::Machine;
use super::limits::BACKLOG_MAX;
use super::socket::Socket;
use super::trace::Happened;
use crate::address::Address;
use crate::listener::Accept;
use crate::stream::Stream;
use crate::transport::Peer;

/// The backlog of one listening address.
pub(super) struct Listening {
    pub(super) host: Rc<Machine>,
    pub(super) address: Address,
    backlog: RefCell<VecDeque<(Rc<Connection>, Peer)>>,
    waiter: RefCell<Option<Waker>>,
}

impl Listening {
    pub(super) fn new(host: &Rc<Machine>, address: Address) -> Rc<Listening> {
        Rc::new(Listening {
            host: Rc::clone(host),
            address,
            backlog: RefCell::default(),
            waiter: RefCell::default(),
        })
    }

    pub(super) fn has_room(&self) -> bool {
        self.backlog.borrow().len() < BACKLOG_MAX
    }

    /// Puts a connection into the backlog.
    pub(super) fn offer(&self, connection: Rc<Connection>, seen_as: Peer) {
        self.backlog.borrow_mut().push_back((connection, seen_as));
        if let Some(waker) = self.waiter.take() {
            waker.wake();
        }
    }
}

/// The listener that protocols hold.
pub(super) struct SimListener(Rc<Listening>);

impl SimListener {
    pub(super) fn new(listening: Rc<Listening>) -> SimListener {
        SimListener(listening)
    }
}

impl Accept for SimListener {
    fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<Stream>> {
        let Some((connection, peer)) = self.0.backlog.borrow_mut().pop_front() else {
            self.0.waiter.replace(Some(cx.waker().clone()));
            return Poll::Pending;
        };
        connection.log(Side::Far, Happened::Accepted, 0);
        Poll::Ready(Ok(Socket::stream(connection, Side::Far, peer, self.0.address.clone())))
    }

    fn address(&self) -> &Address {
        &self.0.address
    }
}

impl Drop for SimListener {
    fn drop(&mut self) {
        self.0.host.world.network.forget(&self.0);
        for (connection, _) in self.0.backlog.take() {
            connection.close(Side::Far);
        }
    }
}
