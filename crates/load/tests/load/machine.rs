//! The measured window on the machine's clock. It needs the real engine, because the simulator has no such
//! clock. Invariant: no bound here depends on the speed of the machine.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use plimsoll_engine::EngineKind;
use plimsoll_io::Stop;
use plimsoll_load::{ProgressReporter, Trial};
use rustix::time::{ClockId, clock_gettime};

use super::*;

/// Answers each request with one byte, until the client ends the connection.
fn serve(mut stream: TcpStream) {
    let mut head = [0; 4096];
    while stream.read(&mut head).is_ok_and(|bytes| bytes > 0) {
        if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx").is_err() {
            return;
        }
    }
}

fn monotonic() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

#[test]
fn the_measured_window_is_given_on_the_clock_of_the_machine() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    let time = 200 * MS;
    let mut workload = Workload { users: 4, threads: 2, end: End::After(time), ..workload() };
    workload.place.addresses = vec![Address::Ip(at)];
    let before = monotonic();
    let trial = Trial { engine: EngineKind::Epoll, stop: Stop::new(), progress: ProgressReporter::default() };
    let outcome = plimsoll_load::run(&workload, trial).unwrap();
    let (window, after) = (outcome.window.unwrap(), monotonic());
    assert!(before < window.from && window.to < after, "{before:?} {window:?} {after:?}");
    assert!(window.to - window.from >= time && outcome.start_spread < window.to - window.from);
    let json = outcome.json();
    assert_eq!(json["window"]["from"].as_f64(), Some(window.from.as_secs_f64()));
    assert_eq!(json["starts"]["spread_seconds"].as_f64(), Some(outcome.start_spread.as_secs_f64()));
}
