//! A proxy or its origin is killed under load, over each channel; the other process continues.
//!
//! Clients send requests all the time. Invariants: no client gets a wrong byte or waits for ever. The
//! surviving process has no more descriptors, mappings and memory than before. A long run kills each side a
//! hundred times.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_tests::binary::{
    Broken, EngineKind, Server, Visitor, command, free_port, is_long, process, until,
};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;
use rustix::process::Signal;

use super::channel::{mapped, shared_memory_names};

/// How often each side is killed.
const KILLS: usize = 2;
const LONG_KILLS: usize = 100;
/// Clients that send requests at the same time.
const CLIENTS: usize = 4;
/// Lengths of the files: below and above the size of a passed file, and above all buffers.
const LENGTHS: [usize; 4] = [100, 10_000, 300_000, 3_000_000];
/// Memory that the surviving process may take in addition, because its allocator does not return all. Each
/// leaked channel has two rings of 256 KiB.
const GROWTH_KIB_MAX: u64 = 16 * 1024;

/// Descriptors of the pipes of threads that have not spliced before.
const PIPES_MAX: usize = 16;

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Origin,
    Proxy,
}

/// An origin and a proxy, with addresses that stay the same after a restart.
struct Pair {
    kind: EngineKind,
    channel: &'static str,
    site: tempfile::TempDir,
    bodies: Vec<Vec<u8>>,
    sockets: tempfile::TempDir,
    ports: [u16; 2],
}

impl Pair {
    fn new(kind: EngineKind, channel: &'static str) -> Pair {
        let (site, sockets) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let bodies: Vec<Vec<u8>> = (0..).zip(LENGTHS).map(|(seed, length)| noise(seed, length)).collect();
        for (number, body) in bodies.iter().enumerate() {
            std::fs::write(site.path().join(number.to_string()), body).unwrap();
        }
        Pair { kind, channel, site, bodies, sockets, ports: [free_port(), free_port()] }
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.sockets.path().join(name)
    }

    fn start(&self, side: Side) -> Server {
        let tcp = self.ports.map(|port| format!("127.0.0.1:{port}"));
        let unix = |path: &Path| format!("unix:{}", path.display());
        let (http, channel) = (unix(&self.socket("http")), self.socket("channel"));
        if side == Side::Origin {
            let args = ["--http", &tcp[0], "--http", &http, "--channel", channel.to_str().unwrap()];
            return Server::start(self.kind, self.site.path(), &args);
        }
        let origin = match self.channel {
            "tcp" => format!("http://{}", tcp[0]),
            "unix" => http,
            _ => unix(&channel),
        };
        let mut proxy = command();
        proxy.args(["proxy", "--listen", &tcp[1], "--access-log", "off", "--origin", &origin]);
        proxy.args(["--channel", self.channel, "--engine", &self.kind.to_string()]).stdin(Stdio::null());
        Server::spawn(proxy)
    }

    /// Requests the files in turn until `stop`. Counts the whole responses.
    fn load(&self, first: usize, whole: &AtomicUsize, stop: &AtomicBool) {
        let mut visitor = None;
        for number in (0..LENGTHS.len()).cycle().skip(first) {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let at = ([127, 0, 0, 1], self.ports[1]).into();
            let Some(connected) = visitor.take().or_else(|| Visitor::connect(at).ok()) else {
                std::thread::yield_now();
                continue;
            };
            let mut connected: Visitor = connected;
            match connected.get(&format!("/{number}")) {
                Ok(reply) if reply.status == 200 => {
                    assert!(reply.body == self.bodies[number], "{}: {number}", self.channel);
                    whole.fetch_add(1, Ordering::Relaxed);
                    visitor = Some(connected);
                }
                Ok(reply) => {
                    assert!(matches!(reply.status, 502 | 504), "{}: {}", self.channel, reply.head);
                    visitor = Some(connected);
                }
                Err(broken) => assert!(!is_stuck(&broken), "{}: {broken:?}", self.channel),
            }
        }
    }

    /// Kills `victim` under load, `count` times; starts it again unless it was the last time. Returns it.
    fn kill(&self, side: Side, mut victim: Server, count: usize) -> Server {
        let (whole, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for client in 0..CLIENTS {
                let (whole, stop) = (&whole, &stop);
                scope.spawn(move || self.load(client, whole, stop));
            }
            // Ends the clients if the test fails.
            let _stop = StopAtEnd(&stop);
            for round in 0..count {
                let before = whole.load(Ordering::Relaxed);
                until("the clients are served", || {
                    whole.load(Ordering::Relaxed) >= before + 2 * CLIENTS * LENGTHS.len()
                });
                std::thread::sleep(Duration::from_micros(round as u64 * 777 % 20_000));
                victim.signal(Signal::KILL);
                victim.ends_within(Duration::from_secs(30));
                victim = self.start(side);
            }
        });
        victim
    }
}

struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Whether a client has waited for as long as it can.
fn is_stuck(broken: &Broken) -> bool {
    match broken {
        Broken::Ended => false,
        Broken::Refused(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut),
        Broken::Within(text) => text.contains("os error 11") || text.contains("timed out"),
    }
}

fn survives(kind: EngineKind, side: Side) {
    // At the same time, because each waits until the survivor has checked its idle connections.
    std::thread::scope(|scope| {
        for channel in ["tcp", "unix", "shm", "shm-copy"] {
            scope.spawn(move || survives_over(&Pair::new(kind, channel), side));
        }
    });
    assert_eq!(shared_memory_names(), [""; 0]);
}

fn survives_over(pair: &Pair, side: Side) {
    let (channel, other) = (pair.channel, if side == Side::Origin { Side::Proxy } else { Side::Origin });
    let (victim, survivor) = (pair.start(side), pair.start(other));
    let (pid, victim) = (survivor.pid(), pair.kill(side, victim, 1));
    let (descriptors, memory) = (process::descriptors(pid), process::resident_kib(pid));
    let victim = pair.kill(side, victim, if is_long() { LONG_KILLS } else { KILLS });
    victim.signal(Signal::KILL);
    until("nothing is mapped any more", || mapped(pid) == 0);
    until("the descriptors are as many as before", || process::descriptors(pid) <= descriptors + PIPES_MAX);
    let grown = process::resident_kib(pid).saturating_sub(memory);
    assert!(grown < GROWTH_KIB_MAX, "{channel}: {grown} KiB");
    if side == Side::Proxy {
        let status = survivor.status();
        assert_eq!(status["load"]["connections_panicked"], 0, "{channel}: {status}");
        assert_eq!(status["channel"]["corrupt"], 0, "{channel}: {status}");
    }
}

fn a_proxy_survives_its_killed_origin(kind: EngineKind) {
    survives(kind, Side::Origin);
}

fn an_origin_survives_its_killed_proxy(kind: EngineKind) {
    survives(kind, Side::Proxy);
}

on_each_engine!(alone: a_proxy_survives_its_killed_origin, an_origin_survives_its_killed_proxy);
