//! A TCP relay between a client and a server, for tests of faults of the network and of downgraded TLS.
//!
//! It runs in threads, which end when it is dropped. It records the bytes of the clients.

#![allow(
    unreachable_pub,
    dead_code,
    clippy::expect_used,
    clippy::unwrap_used,
    missing_docs,
    reason = "more than one crate's tests have this file"
)]

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// The interval between two bytes of [`Fault::Trickle`].
pub const TRICKLE: Duration = Duration::from_millis(200);

/// The request that a client of PostgreSQL begins TLS with.
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

/// The address of a server.
#[derive(Clone, Debug)]
pub enum Target {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// The fault that the relay applies to the bytes of its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Delays them until another fault is set.
    Hold,
    /// Closes a connection once it has passed this many bytes, of both directions together.
    CutAfter(usize),
    /// Passes one byte of the server every [`TRICKLE`].
    Trickle,
    /// Answers a client of PostgreSQL that the server has no TLS.
    PostgresWithoutTls,
    /// Removes the offer of TLS from the greeting of MySQL.
    MysqlWithoutTls,
}

/// A relay that runs until it is dropped.
pub struct Relay {
    address: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    target: Target,
    fault: Fault,
    has_ended: bool,
    connections: usize,
    open: Vec<[Socket; 2]>,
    sent: Vec<u8>,
}

enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Relay {
    /// Starts a relay to `target` at a port of its own.
    pub fn start(target: Target) -> Relay {
        Relay::start_at(SocketAddr::from(([127, 0, 0, 1], 0)), target)
    }

    /// Starts a relay to `target` at an address that nothing has.
    pub fn start_at(address: SocketAddr, target: Target) -> Relay {
        let listener = TcpListener::bind(address).expect("a free address");
        let address = listener.local_addr().expect("an address");
        let state = State {
            target,
            fault: Fault::None,
            has_ended: false,
            connections: 0,
            open: Vec::new(),
            sent: Vec::new(),
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let of_thread = Arc::clone(&shared);
        let listener = thread::spawn(move || accept(&listener, &of_thread));
        Relay { address, shared, listener: Some(listener) }
    }

    /// Returns the address for clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the fault of all connections, open ones included.
    pub fn set(&self, fault: Fault) {
        self.shared.state().fault = fault;
        self.shared.changed.notify_all();
    }

    /// Connects later clients to another server.
    pub fn move_to(&self, target: Target) {
        self.shared.state().target = target;
    }

    /// Closes all connections.
    pub fn cut(&self) {
        self.shared.state().cut();
    }

    /// Returns the number of clients that connected.
    pub fn connections(&self) -> usize {
        self.shared.state().connections
    }

    /// Returns the bytes that clients sent, also those that did not reach the server.
    pub fn sent(&self) -> Vec<u8> {
        self.shared.state().sent.clone()
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.has_ended = true;
            state.cut();
        }
        self.shared.changed.notify_all();
        // Its own connection wakes the listener.
        drop(TcpStream::connect(self.address));
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while bytes are held. Returns the fault for the next ones, or an error if the relay has
    /// ended.
    fn fault(&self) -> io::Result<Fault> {
        let mut state = self.state();
        while state.fault == Fault::Hold && !state.has_ended {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.has_ended { Err(ended()) } else { Ok(state.fault) }
    }

    /// Waits for the next byte of [`Fault::Trickle`], unless the relay ends.
    fn trickle(&self) -> io::Result<()> {
        let state = self.state();
        let waited = self.changed.wait_timeout_while(state, TRICKLE, |state| !state.has_ended);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        if state.has_ended { Err(ended()) } else { Ok(()) }
    }
}

impl State {
    fn cut(&mut self) {
        for sockets in self.open.drain(..) {
            sockets.iter().for_each(Socket::close);
        }
    }
}

fn ended() -> io::Error {
    io::Error::other("the relay has ended")
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let mut threads = Vec::new();
    for client in listener.incoming() {
        let target = {
            let mut state = shared.state();
            if state.has_ended {
                break;
            }
            state.connections += 1;
            state.target.clone()
        };
        // A server that cannot be reached closes the client's connection.
        if let Ok(pumps) = client.and_then(|client| connect(client, &target, shared)) {
            threads.extend(pumps);
        }
    }
    for thread in threads {
        let _ = thread.join();
    }
}

/// Connects a client, and starts a thread for each direction.
fn connect(client: TcpStream, target: &Target, shared: &Arc<Shared>) -> io::Result<[JoinHandle<()>; 2]> {
    client.set_nodelay(true)?;
    let client = Socket::Tcp(client);
    let server = Socket::connect(target)?;
    let passed = Arc::new(AtomicUsize::new(0));
    let pump = |from: &Socket, to: &Socket, is_client: bool| {
        io::Result::Ok(Pump {
            from: from.again()?,
            to: to.again()?,
            is_client,
            is_first: true,
            passed: Arc::clone(&passed),
            shared: Arc::clone(shared),
        })
    };
    let pumps = [pump(&client, &server, true)?, pump(&server, &client, false)?];
    let mut state = shared.state();
    state.open.push([client, server]);
    if state.has_ended {
        state.cut();
    }
    drop(state);
    Ok(pumps.map(|mut pump| {
        thread::spawn(move || {
            // An error ends the connection, as the end of the stream does.
            let _ = pump.run();
            [&pump.from, &pump.to].into_iter().for_each(Socket::close);
        })
    }))
}

/// One direction of a connection.
struct Pump {
    from: Socket,
    to: Socket,
    is_client: bool,
    is_first: bool,
    /// The bytes that this connection has passed, of both directions.
    passed: Arc<AtomicUsize>,
    shared: Arc<Shared>,
}

impl Pump {
    fn run(&mut self) -> io::Result<()> {
        let mut block = [0; 16 * 1024];
        loop {
            let received = self.from.read(&mut block)?;
            if received == 0 {
                return Ok(());
            }
            if self.is_client {
                self.shared.state().sent.extend_from_slice(&block[..received]);
            }
            self.pass(&mut block[..received])?;
            self.is_first = false;
        }
    }

    fn pass(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        match self.shared.fault()? {
            Fault::CutAfter(max) => return self.pass_up_to(max, bytes),
            Fault::Trickle if !self.is_client => return self.trickle(bytes),
            Fault::PostgresWithoutTls if self.is_client && bytes == SSL_REQUEST => {
                return self.from.write_all(b"N");
            }
            Fault::MysqlWithoutTls if !self.is_client && self.is_first => hide_tls(bytes),
            _ => {}
        }
        self.pass_up_to(usize::MAX, bytes)
    }

    fn pass_up_to(&mut self, max: usize, bytes: &[u8]) -> io::Result<()> {
        let before = self.passed.fetch_add(bytes.len(), Ordering::SeqCst);
        let passed = max.saturating_sub(before).min(bytes.len());
        self.to.write_all(&bytes[..passed])?;
        if before + bytes.len() >= max { Err(ended()) } else { Ok(()) }
    }

    fn trickle(&mut self, bytes: &[u8]) -> io::Result<()> {
        for byte in bytes {
            self.shared.trickle()?;
            self.to.write_all(&[*byte])?;
        }
        Ok(())
    }
}

/// Clears the capability `CLIENT_SSL` in a greeting: after the version, 4 bytes of a number, 8 of a
/// challenge and a zero.
fn hide_tls(greeting: &mut [u8]) {
    let version_end = greeting.iter().skip(5).position(|byte| *byte == 0).map(|at| at + 5);
    if let Some(high) = version_end.and_then(|end| greeting.get_mut(end + 1 + 4 + 8 + 1 + 1)) {
        *high &= !0x08;
    }
}

impl Socket {
    fn connect(target: &Target) -> io::Result<Socket> {
        match target {
            Target::Tcp(address) => {
                let stream = TcpStream::connect(address)?;
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
            Target::Unix(path) => UnixStream::connect(path).map(Socket::Unix),
        }
    }

    fn again(&self) -> io::Result<Socket> {
        match self {
            Socket::Tcp(stream) => stream.try_clone().map(Socket::Tcp),
            Socket::Unix(stream) => stream.try_clone().map(Socket::Unix),
        }
    }

    /// Closes both directions, which ends the reads of other threads. The peer may have done so already.
    fn close(&self) {
        let _ = match self {
            Socket::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Socket::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }

    fn read(&mut self, block: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(block),
            Socket::Unix(stream) => stream.read(block),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.write_all(bytes),
            Socket::Unix(stream) => stream.write_all(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// Longer than a byte takes through the relay, even on a slow machine.
    const PATIENCE: Duration = Duration::from_secs(60);

    fn listener() -> (TcpListener, Target) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Target::Tcp(listener.local_addr().unwrap());
        (listener, target)
    }

    fn patient(stream: TcpStream) -> TcpStream {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Returns both ends of a connection through the relay.
    fn ends(relay: &Relay, server: &TcpListener) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(relay.address()).unwrap();
        (patient(client), patient(server.accept().unwrap().0))
    }

    fn read(stream: &mut TcpStream, count: usize) -> Vec<u8> {
        let mut bytes = vec![0; count];
        stream.read_exact(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_relay_passes_both_directions_and_records_the_client() {
        let (server, target) = listener();
        let relay = Relay::start(target);
        let (mut client, mut served) = ends(&relay, &server);
        client.write_all(b"question").unwrap();
        assert_eq!(read(&mut served, 8), b"question");
        served.write_all(b"answer").unwrap();
        assert_eq!(read(&mut client, 6), b"answer");
        assert_eq!((relay.sent(), relay.connections()), (b"question".to_vec(), 1));
        drop(served);
        assert_eq!(client.read(&mut [0]).unwrap(), 0, "the end is passed, too");
    }

    #[test]
    fn a_relay_holds_bytes_until_it_may_pass_them() {
        let (server, target) = listener();
        let relay = Relay::start(target);
        let (mut client, mut served) = ends(&relay, &server);
        relay.set(Fault::Hold);
        client.write_all(b"late").unwrap();
        served.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        served.read(&mut [0]).unwrap_err();
        relay.set(Fault::None);
        let mut served = patient(served);
        assert_eq!(read(&mut served, 4), b"late");
    }

    #[test]
    fn a_relay_cuts_a_connection_after_a_number_of_bytes() {
        let (server, target) = listener();
        let relay = Relay::start(target);
        relay.set(Fault::CutAfter(5));
        let (mut client, mut served) = ends(&relay, &server);
        client.write_all(b"abc").unwrap();
        assert_eq!(read(&mut served, 3), b"abc");
        served.write_all(b"defg").unwrap();
        assert_eq!(read(&mut client, 2), b"de");
        assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
        assert_eq!(served.read(&mut [0]).unwrap_or(0), 0);
    }

    #[test]
    fn a_relay_cuts_all_connections_and_accepts_new_ones() {
        let (server, target) = listener();
        let relay = Relay::start(target);
        let (mut client, mut served) = ends(&relay, &server);
        client.write_all(b"x").unwrap();
        read(&mut served, 1);
        relay.cut();
        assert_eq!(client.read(&mut [0]).unwrap_or(0), 0);
        let (mut client, mut served) = ends(&relay, &server);
        client.write_all(b"again").unwrap();
        assert_eq!(read(&mut served, 5), b"again");
    }

    #[test]
    fn a_relay_refuses_the_tls_of_postgresql_and_the_server_does_not_see_the_request() {
        let (server, target) = listener();
        let relay = Relay::start(target);
        relay.set(Fault::PostgresWithoutTls);
        let (mut client, mut served) = ends(&relay, &server);
        client.write_all(&SSL_REQUEST).unwrap();
        assert_eq!(read(&mut client, 1), b"N");
        client.write_all(b"plain").unwrap();
        assert_eq!(read(&mut served, 5), b"plain");
    }

    #[test]
    fn a_relay_removes_the_tls_of_mysql_from_its_greeting_only() {
        let (server, target) = listener();
        let relay = Relay::start(target);
        relay.set(Fault::MysqlWithoutTls);
        let (mut client, mut served) = ends(&relay, &server);
        let greeting = |capabilities: u8| {
            [b"\x30\0\0\0\x0a10.11\0\x01\x02\x03\x04scramble\0\xff".as_slice(), &[capabilities], b"\x2d"]
                .concat()
        };
        served.write_all(&greeting(0xff)).unwrap();
        assert_eq!(read(&mut client, greeting(0).len()), greeting(0xf7));
        client.write_all(b"x").unwrap();
        read(&mut served, 1);
        served.write_all(&greeting(0xff)).unwrap();
        assert_eq!(read(&mut client, greeting(0).len()), greeting(0xff));
    }

    #[test]
    fn a_relay_moves_to_another_server() {
        let (first, target) = listener();
        let relay = Relay::start(target);
        let (mut old, _served) = ends(&relay, &first);
        let (second, target) = listener();
        relay.move_to(target);
        let (mut new, mut served) = ends(&relay, &second);
        new.write_all(b"new").unwrap();
        assert_eq!(read(&mut served, 3), b"new");
        old.write_all(b"the old connection stays").unwrap();
    }

    #[test]
    fn a_relay_trickles_the_bytes_of_the_server_and_ends_while_it_does() {
        let (server, target) = listener();
        let relay = Relay::start(target);
        relay.set(Fault::Trickle);
        let (mut client, mut served) = ends(&relay, &server);
        let start = Instant::now();
        served.write_all(&[b'x'; 1000]).unwrap();
        assert_eq!(read(&mut client, 2), b"xx");
        assert!(start.elapsed() >= TRICKLE * 2);
        client.write_all(b"quick").unwrap();
        assert_eq!(read(&mut served, 5), b"quick");
        drop(relay);
    }

    #[test]
    fn a_relay_reaches_a_server_at_a_unix_socket() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let server = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let relay = Relay::start(Target::Unix(path));
        let mut client = TcpStream::connect(relay.address()).unwrap();
        let (mut served, _) = server.accept().unwrap();
        client.write_all(b"x").unwrap();
        let mut byte = [0];
        served.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");
    }
}
