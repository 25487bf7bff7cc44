//! Several clients at once, each with a list of exchanges whose correct answers are known.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use plimsoll_io::sim::Faults;
use plimsoll_tests::tree::noise;
use plimsoll_tests::under::Simulation;
use plimsoll_tests::{Answer, Scenario, Scene, Tree};

const LARGE_BYTES: usize = 20_000;
const CLIENTS: usize = 4;
const ROUNDS: usize = 2;

pub(crate) fn scenario() -> Scenario {
    let tree = Tree::new().file("small.txt", "small\n").file("large.bin", noise(1, LARGE_BYTES));
    Scenario { tree, ..Scenario::default() }
}

/// A request, and its expected answer.
struct Exchange {
    request: Vec<u8>,
    status: u16,
    /// The body, or `None` for an answer without one.
    body: Option<Vec<u8>>,
}

fn exchange(request: impl AsRef<[u8]>, status: u16, body: Option<&[u8]>) -> Exchange {
    Exchange { request: request.as_ref().to_vec(), status, body: body.map(<[u8]>::to_vec) }
}

fn exchanges(client: usize) -> Vec<Exchange> {
    let large = noise(1, LARGE_BYTES);
    let sent = noise(client as u64 + 2, 3000);
    let get = |target: &str, fields: &str| format!("GET {target} HTTP/1.1\r\nHost: test\r\n{fields}\r\n");
    let put = |fields: &str, body: &[u8]| {
        [format!("PUT /test/echo HTTP/1.1\r\nHost: test\r\n{fields}\r\n").as_bytes(), body].concat()
    };
    let (first, last) = sent.split_at(1000);
    let chunked = [b"3e8\r\n", first, b"\r\n7d0;x\r\n", last, b"\r\n0\r\n\r\n"].concat();
    vec![
        exchange(get("/small.txt", ""), 200, Some(b"small\n")),
        exchange(get("/large.bin", ""), 200, Some(&large)),
        exchange(put("Content-Length: 3000\r\n", &sent), 200, Some(&sent)),
        exchange("HEAD /large.bin HTTP/1.1\r\nHost: test\r\n\r\n", 200, None),
        exchange(put("Transfer-Encoding: chunked\r\n", &chunked), 200, Some(&sent)),
        exchange(get("/large.bin", "Range: bytes=100-5099\r\n"), 206, Some(&large[100..5100])),
        exchange(get("/test/slow", ""), 200, Some(b"late\n")),
        exchange(get("/small.txt", "Content-Length: 5\r\n") + "dross", 200, Some(b"small\n")),
    ]
}

/// Runs a client's exchanges. A complete but wrong answer fails the test.
async fn converse(scene: &Scene, number: usize) -> io::Result<()> {
    let mut client = scene.try_connect().await?;
    let mut exchanges = exchanges(number);
    let turn = number % exchanges.len();
    exchanges.rotate_left(turn);
    for pair in exchanges.chunks(2) {
        client.push(pair.iter().flat_map(|exchange| exchange.request.clone()).collect::<Vec<u8>>());
        for exchange in pair {
            check(&client.try_answer(exchange.body.is_some()).await?, exchange);
        }
    }
    Ok(())
}

fn check(answer: &Answer, wanted: &Exchange) {
    let request = String::from_utf8_lossy(&wanted.request[..20]);
    assert_eq!(answer.status, wanted.status, "{request}");
    assert!(answer.body == wanted.body.as_deref().unwrap_or_default(), "{request}: another body");
}

/// Counts a client that has ended, also if it panicked.
struct Ended(Rc<Cell<usize>>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

/// The result of a crowd's run.
pub(crate) struct Outcome {
    pub(crate) digest: u64,
    /// Conversations that ended normally.
    pub(crate) whole: usize,
    /// Conversations that broke.
    pub(crate) broken: usize,
}

/// Runs a crowd of clients against the server, stops it, and checks that nothing is left.
pub(crate) fn run(seed: u64, faults: Faults) -> Outcome {
    run_against(seed, faults, &scenario())
}

/// As [`run`], against the server of a scenario that serves the same files.
pub(crate) fn run_against(seed: u64, faults: Faults, scenario: &Scenario) -> Outcome {
    let Simulation { sim, server, client, scene } = Simulation::new(seed, faults, scenario);
    let (ended, whole) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    for number in 0..CLIENTS {
        let (scene, ended, whole) = (scene.clone(), Ended(Rc::clone(&ended)), Rc::clone(&whole));
        let conversations = async move {
            let _ended = ended;
            for _ in 0..ROUNDS {
                match converse(&scene, number).await {
                    Ok(()) => whole.set(whole.get() + 1),
                    // A failing connection is aborted: an end in the middle never looks like a clean one.
                    Err(error) => assert_ne!(error.kind(), io::ErrorKind::UnexpectedEof),
                }
            }
        };
        sim.spawn(&client, Box::pin(conversations));
    }
    sim.run(&client, async move {
        scene.until(|| ended.get() == CLIENTS).await;
        scene.stop.order();
        scene.until(|| scene.open() == 0).await;
        scene.io.sleep(std::time::Duration::from_secs(1)).await;
    });
    assert!(sim.panics().is_empty(), "seed {seed}: {:?}", sim.panics());
    assert_eq!(sim.live_tasks(), 0, "seed {seed}: tasks are left");
    assert_eq!(sim.connections_open(), 0, "seed {seed}: connections are left");
    assert_eq!(server.leased_bytes(), 0, "seed {seed}: leases are left");
    Outcome { digest: sim.trace_digest(), whole: whole.get(), broken: CLIENTS * ROUNDS - whole.get() }
}
