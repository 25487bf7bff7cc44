//! Users in the simulator, against a server of bytes written by hand. A failing seed is printed; run it
//! again with `PLIMSOLL_SEED=<seed>`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod bodies;
mod ending;
mod ftp;
mod machine;
mod open_loop;
mod start;

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use plimsoll_io::sim::{Faults, Sim};
use plimsoll_io::{Address, Handler, Io, LocalFuture, Segment, Setup, Stream, Want};
use plimsoll_load::{
    Checked, Connections, Crowd, End, Files, Login, Outcome, Pace, Pick, Requests, Scheme, Target, Workload,
};

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

/// Number of seeds for tests with random faults.
const SEEDS: u64 = 20;

/// The server's reaction to a request.
struct Act {
    wait: Duration,
    answer: Vec<u8>,
    then: Then,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Then {
    Goes,
    /// Closes the connection cleanly.
    Ends,
    /// Aborts the connection.
    Breaks,
}

/// Returns a whole response.
fn ok(body: &[u8]) -> Act {
    let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    answer.extend_from_slice(body);
    Act { wait: Duration::ZERO, answer, then: Then::Goes }
}

impl Act {
    fn after(self, wait: Duration) -> Act {
        Act { wait, ..self }
    }

    fn then(self, then: Then) -> Act {
        Act { then, ..self }
    }

    fn bytes(answer: &[u8]) -> Act {
        Act { wait: Duration::ZERO, answer: answer.to_vec(), then: Then::Goes }
    }
}

/// A request received by the server: its first line, its time, and the time of its response.
#[derive(Clone, Debug)]
struct ReceivedRequest {
    line: String,
    came: Duration,
    answered: Duration,
}

type Log = Arc<Mutex<Vec<ReceivedRequest>>>;

/// Maps a request to the server's reaction: its first line, and the number of requests before it.
type Script = Arc<dyn Fn(&str, usize) -> Act + Send + Sync>;

struct Scripted {
    io: Io,
    script: Script,
    log: Log,
}

impl Handler for Scripted {
    fn serve(&self, stream: Stream) -> LocalFuture {
        Box::pin(converse(self.io.clone(), stream, Arc::clone(&self.script), Arc::clone(&self.log)))
    }
}

async fn converse(io: Io, mut stream: Stream, script: Script, log: Log) {
    let mut held = Vec::new();
    while let Some(line) = request(&mut stream, &mut held).await {
        let at = {
            let mut log = log.lock().unwrap();
            let came = io.now().since_start();
            log.push(ReceivedRequest { line: line.clone(), came, answered: Duration::MAX });
            log.len() - 1
        };
        let act = script(&line, at);
        io.sleep(act.wait).await;
        log.lock().unwrap()[at].answered = io.now().since_start();
        stream.tx.push(Segment::Owned(act.answer));
        if stream.tx.drain(0).await.is_err() || act.then == Then::Breaks {
            return;
        }
        if act.then == Then::Ends {
            break;
        }
    }
    // The client may have gone.
    let _ = stream.finish().await;
}

/// Reads the next request with its body, and returns its first line.
async fn request(stream: &mut Stream, held: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(end) = held.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(held[..end].to_vec()).unwrap();
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            let whole = end + 4 + length.map_or(0, |length| length.parse::<usize>().unwrap());
            if held.len() >= whole {
                held.drain(..whole);
                return head.lines().next().map(str::to_owned);
            }
        }
        match stream.rx.recv(Want::Head).await {
            Ok(Some(lease)) => held.extend_from_slice(&lease),
            _ => return None,
        }
    }
}

/// Returns a workload of one user that requests one file a thousand times.
fn workload() -> Workload {
    Workload {
        place: Target {
            scheme: Scheme::Http,
            addresses: Vec::new(),
            authority: "server".to_owned(),
            server: "server".to_owned(),
            pattern: "/{}".to_owned(),
        },
        tls: None,
        login: Login::Nobody,
        ask: Requests::Download(Files::Numbered { first: 0, count: 1 }),
        pick: Pick::Same,
        users: 1,
        pace: Pace::Closed { think: Duration::ZERO },
        end: End::Requests(1000),
        warm_up: Duration::ZERO,
        connections: Connections::Kept,
        checked: Checked::None,
        against: None,
        keep: None,
        timeout: 30 * SECOND,
        threads: 1,
        cpus: Vec::new(),
        seed: 1,
    }
}

/// Runs a workload against a scripted server. Returns the outcome, and the requests that the server
/// received.
fn run(
    (seed, faults): (u64, Faults),
    mut workload: Workload,
    script: impl Fn(&str, usize) -> Act + Send + Sync + 'static,
) -> (Result<Outcome, String>, Vec<ReceivedRequest>) {
    let sim = Sim::new(seed, faults);
    let (near, far) = (sim.host("users"), sim.host("server"));
    let (log, script): (Log, Script) = (Log::default(), Arc::new(script));
    let of_server = Arc::clone(&log);
    let setup: Setup = Arc::new(move |io| {
        Rc::new(Scripted { io, script: Arc::clone(&script), log: Arc::clone(&of_server) })
    });
    let at = sim.serve(&far, &Address::Ip((far.ip(), 80).into()), &setup).unwrap();
    workload.place.addresses = vec![at];
    let (crowd, tasks) = Crowd::gather(&workload, &near.io(), near.stop()).unwrap();
    sim.run(&near, all(tasks));
    assert!(sim.panics().is_empty(), "{:?}", sim.panics());
    let seen = log.lock().unwrap().clone();
    (crowd.outcome(), seen)
}

/// Waits until all tasks have ended.
async fn all(tasks: Vec<LocalFuture>) {
    let mut tasks = tasks;
    poll_fn(move |cx| {
        tasks.retain_mut(|task| task.as_mut().poll(cx).is_pending());
        if tasks.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// A seed and no faults.
fn calm() -> (u64, Faults) {
    (0, Faults::none())
}
