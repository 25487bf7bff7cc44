//! Clients that send requests without waiting for answers: endless, unread, or in a crowd.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plimsoll_tests::binary::figures::Figures;
use plimsoll_tests::binary::{EngineKind, PATIENCE, Server, process, until};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Tree, on_each_engine};

/// The total bytes of one endless pipeline.
const PIPELINE_BYTES: usize = 48 << 20;
/// The bytes of a write: never a whole number of requests.
const WRITE_BYTES: usize = 7_919;
/// The bound of the server's memory growth meanwhile; it would be the whole pipeline if anything were kept.
const GROWTH_KIB_MAX: u64 = 8 * 1024;

/// Clients that request parts of a file repeatedly and never read.
const UNREAD: usize = 8;
/// Rounds of some longer parts, which soon fill the kernel's buffers, and many of one byte. Hundreds of
/// these stay below the limit of unsent bytes.
const UNREAD_ROUNDS: usize = 600;

/// Clients that pipeline as fast as they are answered.
const CROWD: usize = 64;
/// The duration of a healthy client's measurement among them.
const MEASURE_TIME: Duration = Duration::from_millis(2_000);
/// The bound of its median. Without turns for each connection it was 700 ms, with them it is 10 to 20 ms.
const MEDIAN_MAX: Duration = Duration::from_millis(250);

fn site() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let tree = Tree::new().file("small.bin", noise(1, 100)).file("larger.bin", noise(2, 10_000));
    tree.plant(folder.path());
    folder
}

fn connect(server: &Server) -> TcpStream {
    let stream = TcpStream::connect(server.at()).expect("the server accepts connections");
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Reads to the end, and returns the number of bytes.
fn drain(mut stream: TcpStream) -> usize {
    let (mut buffer, mut total) = (vec![0; 1 << 16], 0);
    loop {
        match stream.read(&mut buffer).expect("an end") {
            0 => return total,
            bytes => total += bytes,
        }
    }
}

fn an_endless_pipeline_is_answered_and_leaves_nothing_behind(kind: EngineKind) {
    let folder = site();
    let server = Server::start(kind, folder.path(), &[]);
    let request = format!("HEAD /small.bin HTTP/1.1\r\nHost: a\r\nX-Pad: {}\r\n\r\n", "x".repeat(4_000));
    let count = PIPELINE_BYTES / request.len();
    let mut sending = connect(&server);
    let receiving = sending.try_clone().unwrap();
    let reader = std::thread::spawn(move || drain(receiving));
    let before = process::resident_kib(server.pid());
    let bytes = request.as_bytes().iter().copied().cycle().take(count * request.len());
    for part in bytes.collect::<Vec<u8>>().chunks(WRITE_BYTES) {
        sending.write_all(part).expect("the server reads");
    }
    sending.shutdown(Shutdown::Write).unwrap();
    let answered = reader.join().expect("the answers");
    assert!(answered > count * 200, "{answered} bytes for {count} requests");
    let grown = process::peak_kib(server.pid()).saturating_sub(before);
    assert!(grown <= GROWTH_KIB_MAX, "{grown} KiB for a pipeline of {} KiB", PIPELINE_BYTES >> 10);
}

fn pipelines_that_are_never_read_hold_one_file_each(kind: EngineKind) {
    let folder = site();
    let server = Server::start(kind, folder.path(), &[]);
    server.visit().get("/small.bin").unwrap();
    let before = process::descriptors(server.pid());
    let part = |range: &str| format!("GET /larger.bin HTTP/1.1\r\nHost: a\r\nRange: bytes={range}\r\n\r\n");
    let requests = (part("0-8191") + &part("0-0").repeat(20)).repeat(UNREAD_ROUNDS);
    let clients: Vec<TcpStream> = (0..UNREAD).map(|_| server.visit_narrowly().stream).collect();
    std::thread::scope(|scope| {
        for mut client in &clients {
            let requests = &requests;
            scope.spawn(move || {
                client.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
                // As much as fits: the server stops reading at its limit of unsent bytes.
                let _ = client.write_all(requests.as_bytes());
            });
        }
    });
    let mut seen = 0;
    until("nothing more is opened", || {
        std::thread::sleep(Duration::from_millis(200));
        let now = process::descriptors(server.pid());
        std::mem::replace(&mut seen, now) == now
    });
    println!("{kind}: {seen} descriptors, {before} before");
    // For each client a socket, a file, and with a thread per connection a wakeup descriptor. A few more
    // serve this test's own requests.
    assert!(seen <= before + UNREAD * 3 + 6, "{seen} descriptors, {before} before");
    assert_eq!(server.visit().get("/small.bin").unwrap().status, 200);
    drop(clients);
}

fn pipeline_until(stream: &TcpStream, over: &AtomicBool) {
    let (mut reading, mut stream) = (stream.try_clone().unwrap(), stream);
    let requests = "GET /small.bin HTTP/1.1\r\nHost: a\r\n\r\n".repeat(200);
    let reader = std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while reading.read(&mut buffer).is_ok_and(|bytes| bytes > 0) {}
    });
    while !over.load(Ordering::Relaxed) && stream.write_all(requests.as_bytes()).is_ok() {}
    stream.shutdown(Shutdown::Both).ok();
    reader.join().expect("a reader");
}

fn a_crowd_that_pipelines_delays_no_other_client(kind: EngineKind) {
    process::raise_open_files();
    let folder = site();
    let server = Server::start(kind, folder.path(), &["--threads", "1", "--access-log", "off"]);
    let over = Arc::new(AtomicBool::new(false));
    let crowd: Vec<_> = (0..CROWD)
        .map(|_| {
            let (stream, over) = (connect(&server), Arc::clone(&over));
            std::thread::spawn(move || pipeline_until(&stream, &over))
        })
        .collect();
    until("the crowd is busy", || server.status()["answers"]["2xx"].as_u64() >= Some(CROWD as u64 * 100));
    let (mut visitor, start, mut times) = (server.visit(), Instant::now(), Vec::new());
    while start.elapsed() < MEASURE_TIME {
        let begun = Instant::now();
        assert_eq!(visitor.get("/small.bin").expect("an answer").body, noise(1, 100));
        times.push(begun.elapsed());
    }
    over.store(true, Ordering::Relaxed);
    for client in crowd {
        client.join().expect("a client");
    }
    let figures = Figures::of(times);
    println!("{kind}, among {CROWD} that pipeline: {figures}");
    assert!(figures.within(500) <= MEDIAN_MAX, "{figures}: more than {MEDIAN_MAX:?}");
}

on_each_engine!(
    alone:
    an_endless_pipeline_is_answered_and_leaves_nothing_behind,
    pipelines_that_are_never_read_hold_one_file_each,
    a_crowd_that_pipelines_delays_no_other_client,
);
