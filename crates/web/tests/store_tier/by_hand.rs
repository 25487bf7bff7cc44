//! A store that the test scripts by hand, so that it can violate the protocol.

use std::time::{Duration, SystemTime};

use plimsoll_io::sim::{Faults, Sim};
use plimsoll_io::{Io, Listener, Segment, Stream, Want, Work, join};
use plimsoll_rpc::{Secret, ServerAddress};
use plimsoll_store::limits::{STORE_LONG_ANSWER_TIME, STORE_SILENT_TIME, STORE_TELLS_EVERY};
use plimsoll_store::remote::check_server;
use plimsoll_store::{Error, Expected, Quota, ResumableUpload, Terms, UploadId};

use crate::{Front, SECRET, path, url};

/// A scripted store: its listener and its clock.
struct ByHand(Listener, Io);

/// One connection of a front.
struct Peer {
    stream: Stream,
    come: String,
}

impl ByHand {
    async fn accept(&mut self) -> Peer {
        Peer { stream: self.0.accept().await.unwrap(), come: String::new() }
    }
}

impl Peer {
    /// Receives up to the end of `end`.
    async fn read_to(&mut self, end: &str) -> String {
        loop {
            if let Some(at) = self.come.find(end) {
                let rest = self.come.split_off(at + end.len());
                return std::mem::replace(&mut self.come, rest);
            }
            let lease = self.stream.rx.recv(Want::Head).await.unwrap().expect("more from the front");
            self.come.push_str(&String::from_utf8_lossy(&lease));
        }
    }

    /// Receives a request. Returns its body.
    async fn question(&mut self) -> String {
        let head = self.read_to("\r\n\r\n").await;
        let (_, length) = head.split_once("Content-Length: ").expect("a question has a body");
        let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
        while self.come.len() < length {
            let lease = self.stream.rx.recv(Want::Head).await.unwrap().expect("more from the front");
            self.come.push_str(&String::from_utf8_lossy(&lease));
        }
        let rest = self.come.split_off(length);
        std::mem::replace(&mut self.come, rest)
    }

    fn send(&mut self, text: &str) {
        self.stream.tx.push(Segment::Owned(text.as_bytes().to_vec()));
    }

    /// Asserts that the front closes the connection without sending more.
    async fn ended(mut self) {
        assert!(self.stream.rx.recv(Want::Head).await.unwrap().is_none(), "an end, and no reset");
    }

    fn answer(&mut self, json: &str) {
        self.send(&format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{json}", json.len()));
    }
}

/// Runs a front against a scripted store, until both are done.
fn run(store: impl AsyncFnOnce(ByHand) + 'static, front: impl AsyncFnOnce(Front) + 'static) {
    run_with(Faults::none(), store, front);
}

fn run_with(
    faults: Faults,
    store: impl AsyncFnOnce(ByHand) + 'static,
    front: impl AsyncFnOnce(Front) + 'static,
) {
    let sim = Sim::new(0, faults);
    let (near, far) = (sim.host("front"), sim.host("store"));
    let listener = far.io().listen(&":7071".parse().unwrap()).unwrap();
    let at = listener.address().clone();
    sim.run(&near.clone(), async move {
        let client = Front::new(&near, &at, SECRET).await;
        join(front(client), store(ByHand(listener, far.io()))).await;
    });
    assert_eq!(sim.panics(), Vec::<String>::new());
}

const USAGE: &str = r#"{"answer":{"usage":{"bytes":1,"files":2,"folders":3}}}"#;

/// Answers one request and closes the connection on the next. Expects a retry of that one if
/// `is_repeated`.
async fn close_on_the_second(mut store: ByHand, is_repeated: bool) {
    let mut peer = store.accept().await;
    peer.question().await;
    peer.answer(USAGE);
    let question = peer.question().await;
    drop(peer);
    if is_repeated {
        let mut peer = store.accept().await;
        assert_eq!(peer.question().await, question);
        peer.answer(USAGE);
        peer.ended().await;
    }
}

#[test]
fn a_read_is_retried_when_its_pooled_connection_is_closed() {
    run(
        async |store| close_on_the_second(store, true).await,
        async |Front { io, home }| {
            for _ in 0..2 {
                assert_eq!(home.usage(&io).await.unwrap().files, 2);
            }
        },
    );
}

#[test]
fn a_change_with_an_unknown_result_is_not_retried() {
    run(
        async |store| close_on_the_second(store, false).await,
        async |Front { io, home }| {
            home.usage(&io).await.unwrap();
            let made = home.make_folder(&io, path("a"), Quota::default(), false).await;
            assert!(matches!(made, Err(Error::Away)), "{made:?}");
        },
    );
}

/// Queues jobs on a host until it refuses more.
async fn fill(io: &Io) {
    for _ in 0..20 {
        while io.hand_off(Work::Listings, |_| ()).is_ok() {}
        // Jobs that start at once make room again.
        io.sleep(Duration::from_millis(1)).await;
    }
    while io.hand_off(Work::Listings, |_| ()).is_ok() {}
}

#[test]
fn a_long_response_is_parsed_on_a_worker_and_a_short_one_at_once() {
    let jobs_take_long = Faults { offload_delay_max: Duration::from_secs(1_000_000), ..Faults::none() };
    run_with(
        jobs_take_long,
        async |mut store| {
            let mut peer = store.accept().await;
            for entries in [10, 1_000] {
                let upload = |number| ResumableUpload {
                    id: UploadId::parse(b"0123456789abcdef0123456789abcdef").unwrap(),
                    to: path(&format!("a {number}")),
                    bytes: None,
                    offset: number,
                    created: SystemTime::UNIX_EPOCH,
                    expires: SystemTime::UNIX_EPOCH,
                    metadata: String::new(),
                };
                let uploads: Vec<ResumableUpload> = (0..entries).map(upload).collect();
                peer.question().await;
                let uploads = serde_json::to_string(&uploads).unwrap();
                peer.answer(&format!(r#"{{"answer":{{"uploads":{uploads}}}}}"#));
            }
            peer.ended().await;
        },
        async |Front { io, home }| {
            fill(&io).await;
            let short = home.resumable_uploads(&io).await.unwrap();
            assert_eq!((short.len(), &short[3].to), (10, &path("a 3")));
            let long = home.resumable_uploads(&io).await;
            assert!(
                matches!(long, Err(Error::Busy)),
                "it waits for no turn: {:?}",
                long.map(|long| long.len())
            );
        },
    );
}

/// Receives an upload up to the frame that commits it.
async fn take_upload(store: &mut ByHand) -> Peer {
    let mut peer = store.accept().await;
    peer.read_to("\r\n\r\n").await;
    peer.send("HTTP/1.1 100 Continue\r\n\r\n");
    peer.read_to(r#"{"commit":{"digests":[],"modified":null,"spare_name":null}}"#).await;
    peer
}

async fn put(Front { io, home }: &Front) -> Result<(), Error> {
    let upload = home.upload(io, Terms::any(path("a"), Quota::default()), Expected::default()).await?;
    upload.commit().await.map(drop)
}

/// Sends an interim response `times` times.
async fn send_interims(peer: &mut Peer, io: &Io, times: u32) {
    for _ in 0..times {
        io.sleep(STORE_TELLS_EVERY).await;
        peer.send("HTTP/1.1 102 Processing\r\n\r\n");
    }
}

#[test]
fn a_store_that_falls_silent_in_a_commit_is_given_up_and_one_that_is_at_it_is_not() {
    run(
        async |mut store| {
            let silent = take_upload(&mut store).await;
            let (mut slow, io) = (take_upload(&mut store).await, store.1);
            drop(silent);
            send_interims(&mut slow, &io, 30).await;
            slow.answer(r#"{"error":"quota"}"#);
            slow.ended().await;
        },
        async |front| {
            let begun = front.io.now();
            assert!(matches!(put(&front).await, Err(Error::Away)));
            assert!(front.io.now() < begun + 2 * STORE_SILENT_TIME);
            assert!(matches!(put(&front).await, Err(Error::Quota)), "it is the answer that counts");
            assert!(front.io.now() > begun + 5 * STORE_SILENT_TIME);
        },
    );
}

#[test]
fn a_store_that_is_at_it_without_end_is_given_up_too() {
    run(
        async |mut store| {
            let mut peer = store.accept().await;
            peer.question().await;
            // For longer than the front may wait.
            send_interims(&mut peer, &store.1, 300).await;
        },
        async |Front { io, home }| {
            let begun = io.now();
            assert!(matches!(home.usage(&io).await, Err(Error::Away)));
            assert!(io.now() < begun + 2 * STORE_LONG_ANSWER_TIME);
        },
    );
}

#[test]
fn a_store_of_another_version_is_refused_with_a_sentence() {
    let sim = Sim::new(0, Faults::none());
    let (near, far) = (sim.host("front"), sim.host("store"));
    let listener = far.io().listen(&":7071".parse().unwrap()).unwrap();
    let (url, secret) = (url(listener.address()), Secret::from(SECRET));
    let (server, io) = (ServerAddress { url, secret, resolve: None, tls: None }, near.io());
    sim.run(&near, async move {
        let store = async {
            let mut peer = ByHand(listener, far.io()).accept().await;
            peer.read_to("\r\n\r\n").await;
            peer.send("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
            let _ = peer.stream.rx.recv(Want::Head).await;
        };
        let (checked, ()) = join(check_server(server, &io), store).await;
        let sentence = checked.unwrap_err();
        assert!(sentence.contains("different versions"), "{sentence}");
    });
}
