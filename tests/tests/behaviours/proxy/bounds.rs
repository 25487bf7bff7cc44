//! The bounds of the proxy on buffers, discarded bodies, idle connections and attempts.
//!
//! The origin counts for each test, by the number at the end of a target.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use plimsoll_io::{Address, Handler, Io, Segment, Stream, Want};
use plimsoll_proxy::limits::{ATTEMPTS_MAX, DISCARD_BYTES_MAX, IDLE_CONNECTIONS_MAX};
use plimsoll_proxy::{Balance, Settings, SpoolSpace};
use plimsoll_tests::proxy::plain;
use plimsoll_tests::service::Each;
use plimsoll_tests::{Engine, Protocol, Scenario, Scene, behaviours, together, under};

/// A body that is much longer than all buffers between the origin and a client.
const ENDLESS_BYTES: u64 = 96 << 20;
/// The part of it that the buffers may take: the kernel's are up to 10 MiB on each of two connections.
const BUFFERED_BYTES_MAX: u64 = 48 << 20;
/// The bytes of all spools, much fewer than such a body has.
const SPOOL_BYTES: u64 = 8 << 20;
/// Bytes that the origin pushes at a time.
const PUSHED_BYTES: usize = 64 * 1024;
/// Clients at the same time: their connections to the origin are too many to be kept.
const CROWD: usize = IDLE_CONNECTIONS_MAX + 16;

/// The longest body that is discarded.
const DISCARDED_BYTES: usize = 64 * 1024;
const _: () = assert!(DISCARDED_BYTES as u64 == DISCARD_BYTES_MAX, "the same");

/// The counts of the origin, by the number of a test.
static COUNTS: Mutex<BTreeMap<u64, u64>> = Mutex::new(BTreeMap::new());

/// Returns a number that no other test has.
fn number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Changes the count of a test, and returns it.
fn count(number: u64, change: impl FnOnce(&mut u64)) -> u64 {
    let mut counts = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    let count = counts.entry(number).or_default();
    change(count);
    *count
}

fn counted(number: u64) -> u64 {
    count(number, |_| {})
}

fn scenario() -> Scenario {
    Scenario { protocol: Protocol::Of(origin), proxy: Some(of_plain), ..Scenario::default() }
}

fn of_plain(origin: &Address) -> Settings {
    let spool = SpoolSpace::new(&std::env::temp_dir(), SPOOL_BYTES);
    // The clients of a crowd have one address, which may use half of the connections.
    Settings { spool, origin_connections: 2 * CROWD, ..plain(origin) }
}

/// The same origin several times, more often than a request is tried.
fn of_several(origin: &Address) -> Settings {
    let settings = plain(origin);
    let urls = vec![settings.origins.origins()[0].url().clone(); ATTEMPTS_MAX + 2];
    Settings { origins: Balance::new(urls, None).unwrap(), ..settings }
}

fn several() -> Scenario {
    Scenario { proxy: Some(of_several), ..scenario() }
}

fn origin(io: Io) -> Rc<dyn Handler> {
    Rc::new(Each(io, serve))
}

/// An open connection that has carried a request of a crowd.
struct OpenConnection(u64);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        count(self.0, |open| *open -= 1);
    }
}

async fn serve(io: Io, mut stream: Stream) {
    let (mut received, mut open) = (Vec::new(), None);
    while let Ok(Some(lease)) = stream.rx.recv(Want::Head).await {
        received.extend_from_slice(&lease);
        if !received.ends_with(b"\r\n\r\n") {
            continue;
        }
        let head = String::from_utf8(std::mem::take(&mut received)).expect("ASCII");
        let target = head.split(' ').nth(1).expect("a target");
        let (kind, number) = target.rsplit_once('/').expect("a path");
        let number = number.parse().expect("a number");
        match kind {
            "/endless" => return send_endlessly(stream, number).await,
            "/dropped" => {
                count(number, |requests| *requests += 1);
                return;
            }
            "/crowd" => {
                open.get_or_insert_with(|| {
                    count(number, |open| *open += 1);
                    OpenConnection(number)
                });
                // All are open at the same time. The count of the requests never falls.
                count(!number, |requests| *requests += 1);
                while counted(!number) < CROWD as u64 {
                    io.sleep(Duration::from_millis(10)).await;
                }
            }
            _ => {}
        }
        stream.tx.push(Segment::Owned(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine".to_vec()));
    }
}

async fn send_endlessly(mut stream: Stream, number: u64) {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {ENDLESS_BYTES}\r\n\r\n");
    stream.tx.push(Segment::Owned(head.into_bytes()));
    for _ in 0..ENDLESS_BYTES / PUSHED_BYTES as u64 {
        stream.tx.push(Segment::Owned(vec![b'x'; PUSHED_BYTES]));
        if stream.tx.drain(0).await.is_err() {
            return;
        }
        count(number, |sent| *sent += PUSHED_BYTES as u64);
    }
}

/// Waits until a number stays the same: nothing announces that.
async fn settled(scene: &Scene, number: impl Fn() -> u64) -> u64 {
    loop {
        let before = number();
        scene.io.sleep(Duration::from_secs(1)).await;
        if before > 0 && number() == before {
            return before;
        }
    }
}

async fn a_client_that_reads_nothing_holds_an_origin_up_whose_body_fits_no_spool(scene: Scene) {
    let (number, mut client) = (number(), scene.connect().await);
    client.send(format!("GET /endless/{number} HTTP/1.1\r\nHost: test\r\n\r\n")).await;
    let sent = settled(&scene, || counted(number)).await;
    assert!(sent < BUFFERED_BYTES_MAX, "{sent}");
}

async fn a_short_refused_body_is_discarded_and_the_connection_continues(scene: Scene) {
    let mut client = scene.connect().await;
    for bytes in [1, DISCARDED_BYTES] {
        let refused = client.ask("PUT", "http://away.test/1", "", vec![b'x'; bytes]).await;
        assert!(!refused.problem(421).is_empty());
        assert_eq!(refused.field("Connection"), None);
        assert_eq!(client.get("/next/0").await.text(), "fine");
    }
}

async fn a_long_refused_body_ends_the_connection(scene: Scene) {
    const PUT: &str = "PUT http://away.test/1 HTTP/1.1\r\nHost: away.test\r\n";
    const NEXT: &str = "GET /next/0 HTTP/1.1\r\nHost: test\r\n\r\n";
    let body = "x".repeat(DISCARDED_BYTES + 1);
    let announced = format!("Content-Length: {}\r\n\r\n{body}", body.len());
    let chunked = format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    for (request, connection) in [(announced, Some("close")), (chunked, None)] {
        let mut client = scene.connect().await;
        client.push(format!("{PUT}{request}{NEXT}"));
        let refused = client.answer().await;
        assert!(!refused.problem(421).is_empty());
        assert_eq!(refused.field("Connection"), connection);
        client.expect_end().await;
    }
}

behaviours!(scenario and tls;
    a_client_that_reads_nothing_holds_an_origin_up_whose_body_fits_no_spool,
    a_short_refused_body_is_discarded_and_the_connection_continues,
    a_long_refused_body_ends_the_connection,
);

mod of_attempts {
    use super::{ATTEMPTS_MAX, Scene, behaviours, counted, number, several};

    async fn a_request_without_a_response_is_tried_a_few_times_only(scene: Scene) {
        let number = number();
        assert!(!scene.get(&format!("/dropped/{number}")).await.problem(502).is_empty());
        assert_eq!(counted(number), ATTEMPTS_MAX as u64);
    }

    behaviours!(several and tls; a_request_without_a_response_is_tried_a_few_times_only);
}

/// In the simulator alone: the bound is for each thread, and there it has one.
#[test]
fn a_thread_keeps_so_many_idle_connections_only() {
    under(Engine::Simulator, scenario, |scene| async move {
        let (number, mut clients) = (number(), Vec::new());
        for _ in 0..CROWD {
            clients.push(scene.connect().await);
        }
        let target = format!("/crowd/{number}");
        for answer in together(clients.iter_mut().map(|client| client.get(&target))).await {
            assert_eq!(answer.text(), "fine");
        }
        // Long enough for the origin to see the ends, and too short for a connection to be too old.
        scene.io.sleep(Duration::from_secs(5)).await;
        assert_eq!(counted(number), IDLE_CONNECTIONS_MAX as u64);
    });
}
