//! The one network of a simulation: the listeners, and how connections to them are established.
//!
//! There is no routing: every address, loopback too, is reachable from every host. Invariants: listening
//! takes effect at once; connecting is complete when the listener's backlog has the connection, accepted
//! or not.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use super::connection::{Connection, Side};
use super::host::Machine;
use super::listening::{Listening, SimListener};
use super::socket::Socket;
use super::trace::Happened;
use super::world::LINK_DELAY;
use crate::address::Address;
use crate::listener::Listener;
use crate::stream::Stream;
use crate::transport::Peer;

/// The first of the ports that are assigned to callers that choose none.
const PORT_FREE_MIN: u16 = 49152;
/// Delay after which a connection that found the backlog full is tried again, as TCP does.
const CONNECT_AGAIN: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Network {
    listening: RefCell<Vec<Rc<Listening>>>,
    ports_given: Cell<u16>,
    connections: Cell<u32>,
    open: Cell<usize>,
}

impl Network {
    /// Returns the number of streams that protocols hold.
    pub(super) fn open(&self) -> usize {
        self.open.get()
    }

    pub(super) fn opened(&self) {
        self.open.set(self.open.get() + 1);
    }

    pub(super) fn closed(&self) {
        self.open.set(self.open.get() - 1);
    }

    pub(super) fn clear(&self) {
        let listening = self.listening.take();
        drop(listening);
    }

    /// Removes a listener from the network.
    pub(super) fn forget(&self, one: &Rc<Listening>) {
        self.listening.borrow_mut().retain(|known| !Rc::ptr_eq(known, one));
    }

    /// # Errors
    /// [`io::ErrorKind::AddrInUse`]; [`io::ErrorKind::AddrNotAvailable`] for another host's address.
    pub(super) fn listen(&self, host: &Rc<Machine>, at: &Address) -> io::Result<Listener> {
        let address = match at {
            Address::Ip(at) => Address::Ip(self.free_address(host, *at)?),
            Address::Unix(_) => at.clone(),
        };
        if self.listening.borrow().iter().any(|known| overlap(&known.address, &address)) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        host.world.log(host.number, 0, Happened::Listening, 0);
        let listening = Listening::new(host, address);
        self.listening.borrow_mut().push(Rc::clone(&listening));
        Ok(Listener::new(Box::new(SimListener::new(listening))))
    }

    fn free_address(&self, host: &Machine, at: SocketAddr) -> io::Result<SocketAddr> {
        let ip = at.ip();
        if !(ip.is_loopback() || ip.is_unspecified() || ip == host.ip) {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        Ok(if at.port() == 0 { SocketAddr::new(ip, self.free_port()?) } else { at })
    }

    fn free_port(&self) -> io::Result<u16> {
        let taken = |port| self.listening.borrow().iter().any(|known| port_of(&known.address) == Some(port));
        let ports = PORT_FREE_MIN..=u16::MAX;
        let port = ports.map(|_| self.next_port()).find(|port| !taken(*port));
        port.ok_or_else(|| io::ErrorKind::AddrInUse.into())
    }

    fn next_port(&self) -> u16 {
        let given = self.ports_given.get();
        self.ports_given.set((given + 1) % (u16::MAX - PORT_FREE_MIN));
        PORT_FREE_MIN + given
    }

    /// Starts to connect; the result follows after a delay.
    pub(super) fn connect(&self, near: &Rc<Machine>, to: &Address) -> Stream {
        let number = self.connections.get() + 1;
        self.connections.set(number);
        let connection = Connection::new(near, number);
        connection.log(Side::Near, Happened::Connecting, 0);
        let (peer, seen_as) = self.peers(near, to);
        let local = match &seen_as {
            Peer::Ip(ip, port) => Address::Ip((*ip, *port).into()),
            Peer::Unix => to.clone(),
        };
        let delay = near.world.link_delay() + LINK_DELAY;
        self.ask(Call { connection: Rc::clone(&connection), to: to.clone(), seen_as }, delay);
        Socket::stream(connection, Side::Near, peer, local)
    }

    fn peers(&self, near: &Machine, to: &Address) -> (Peer, Peer) {
        match to {
            Address::Unix(_) => (Peer::Unix, Peer::Unix),
            Address::Ip(to) => {
                let ip = if to.ip().is_loopback() { to.ip() } else { near.ip };
                (Peer::Ip(to.ip(), to.port()), Peer::Ip(ip, self.next_port()))
            }
        }
    }

    fn ask(&self, call: Call, delay: Duration) {
        let world = Rc::clone(&call.connection.world);
        world.after(delay, move |world| world.network.answer(call));
    }

    fn answer(&self, call: Call) {
        let found = self.listening.borrow().iter().find(|known| overlap(&known.address, &call.to)).cloned();
        let listening = found.filter(|listening| !listening.host.is_cut());
        let Some(listening) = listening else { return call.connection.refuse() };
        if listening.has_room() {
            call.connection.connect(&listening.host);
            listening.offer(call.connection, call.seen_as);
        } else {
            call.connection.log(Side::Near, Happened::BacklogFull, 0);
            self.ask(call, CONNECT_AGAIN);
        }
    }
}

/// A connection attempt on its way to a listener.
struct Call {
    connection: Rc<Connection>,
    to: Address,
    seen_as: Peer,
}

/// Returns the address of host `number`.
pub(super) fn ip_of(number: u32) -> IpAddr {
    IpAddr::V4(Ipv4Addr::from_bits(Ipv4Addr::new(10, 0, 0, 1).to_bits() + number))
}

fn port_of(address: &Address) -> Option<u16> {
    match address {
        Address::Ip(at) => Some(at.port()),
        Address::Unix(_) => None,
    }
}

/// Whether a connection to one address would also reach the other.
fn overlap(one: &Address, other: &Address) -> bool {
    match (one, other) {
        (Address::Ip(one), Address::Ip(other)) => {
            let any = one.ip().is_unspecified() || other.ip().is_unspecified();
            one.port() == other.port() && (any || one.ip() == other.ip())
        }
        _ => one == other,
    }
}
