//! The client against the real server: two independent implementations of the RFCs.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_client::http::{Body, Client, Request};
use plimsoll_content::HotCache;
use plimsoll_io::sim::{Faults, Sim, seeds};
use plimsoll_io::{Networks, Setup};
use plimsoll_proto::Current;
use plimsoll_proto::http::{self as server, AccessLog, Answer, Http, Limits, Snapshot};
use plimsoll_wire::http::status::Status;

use crate::{Endless, Pieces, get, status_and_body};

/// Answers a request with its own body.
struct Echo;

impl server::Service for Echo {
    async fn answer(&self, request: &mut server::Request<'_>) -> Answer {
        let mut whole = Vec::new();
        loop {
            match request.body.recv().await {
                Ok(Some(lease)) => whole.extend_from_slice(&lease),
                Ok(None) => return Answer::new(Status::OK).body(server::Body::Bytes(whole)),
                Err(_) => return Answer::new(Status::CONTENT_TOO_LARGE),
            }
        }
    }
}

const BODY_BYTES_MAX: u64 = 2 << 20;

/// Runs requests against an echo.
fn against_echo(seed: u64, faults: Faults, client: impl AsyncFnOnce(Client) + 'static) {
    let sim = Sim::new(seed, faults);
    let (near, far) = (sim.host("client"), sim.host("server"));
    let setup: Setup = Arc::new(|io| {
        let limits = Limits { body_bytes_max: BODY_BYTES_MAX, ..Limits::default() };
        Rc::new(Http::new(
            io,
            Current::new(Snapshot { limits, proxies: Networks::default(), service: Echo }),
            AccessLog::new(None),
            Arc::default(),
            HotCache::off(),
        ))
    });
    sim.serve(&far, &":80".parse().unwrap(), &setup).unwrap();
    let io = near.io();
    sim.run(&near, async move { client(Client::new(&io, "http://localhost".parse().unwrap())).await });
    assert!(sim.panics().is_empty(), "{:?}", sim.panics());
}

/// Sends three requests, on one connection if it stays open.
async fn three(mut client: Client) {
    assert_eq!(status_and_body(client.send(get("/")).await).await.unwrap(), (200, String::new()));
    let request = Request::new("PUT", "/").body(Body::Bytes(b"hello".to_vec()));
    assert_eq!(status_and_body(client.send(request).await).await.unwrap(), (200, "hello".to_owned()));
    let (first, second) = (vec![b'a'; 70_000], vec![b'b'; 3]);
    let mut source = Pieces::of(&[&first, &second]);
    let request = Request::new("PUT", "/").body(Body::Stream { length: None, source: &mut source });
    let (status, text) = status_and_body(client.send(request).await).await.unwrap();
    assert_eq!((status, text.len(), text.ends_with("abbb")), (200, 70_003, true));
}

#[test]
fn client_and_server_understand_each_other() {
    for seed in seeds(100) {
        against_echo(seed, Faults::splits(), three);
    }
}

#[test]
fn client_and_server_understand_each_other_wherever_bytes_are_split() {
    for bytes in 0..600 {
        against_echo(0, Faults::split_at(bytes), three);
    }
}

/// Sends more than the server takes, and then another request.
async fn too_much(mut client: Client, length: Option<u64>) {
    let body = Body::Stream { length, source: &mut Endless };
    assert_eq!(status_and_body(client.send(Request::new("PUT", "/").body(body)).await).await.unwrap().0, 413);
    assert_eq!(status_and_body(client.send(get("/")).await).await.unwrap().0, 200);
}

#[test]
fn a_body_with_an_excessive_length_is_refused_before_it_is_sent() {
    for seed in seeds(50) {
        let one = async |client| too_much(client, Some(BODY_BYTES_MAX + 1)).await;
        against_echo(seed, Faults::splits(), one);
    }
}

#[test]
fn a_chunked_body_above_the_limit_is_refused_while_it_is_sent() {
    against_echo(0, Faults::none(), async |client| too_much(client, None).await);
}
