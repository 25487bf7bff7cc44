//! Calls in the simulator, to a server whose responses are written by hand.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use plimsoll_io::sim::{Faults, Sim, seeds};
use plimsoll_io::{Address, Either, Io, LocalFuture, Segment, Stream, Want, select};
use plimsoll_rpc::limits::{IDLE_CONNECTION_TIME, PARSED_INLINE_BYTES_MAX};
use plimsoll_rpc::{
    CallError, ClientLimits, ConnectionClass, Method, Request, RpcClient, Secret, ServerAddress, encode,
};
use serde::Serialize;

const SECOND: Duration = Duration::from_secs(1);

/// A request for a text of this many bytes. Its JSON is `[NUMBER]`.
struct Text(usize);

const METHOD: Method =
    Method { path: "/text", deadline: SECOND, is_idempotent: true, class: ConnectionClass::Unbounded };

impl Serialize for Text {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        [self.0].serialize(serializer)
    }
}

impl Request for Text {
    fn method(&self) -> Method {
        METHOD
    }
}

/// Serves one connection until the client ends it.
async fn serve(mut stream: Stream) {
    let mut received = Vec::new();
    while let Ok(Some(lease)) = stream.rx.recv(Want::Head).await {
        received.extend_from_slice(&lease);
        let text = String::from_utf8_lossy(&received).into_owned();
        let Some((_, body)) = text.split_once("\r\n\r\n") else { continue };
        let Some(bytes) = body.strip_prefix('[').and_then(|body| body.strip_suffix(']')) else { continue };
        let json = encode(Ok::<_, String>("x".repeat(bytes.parse().unwrap())));
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", json.len());
        stream.tx.push(Segment::Owned([head.into_bytes(), json].concat()));
        received.clear();
        if stream.tx.drain(0).await.is_err() {
            return;
        }
    }
}

/// Starts the server. Returns its client with `idle_max`, and the number of connections accepted so far.
fn start(sim: &Sim, idle_max: usize) -> (Arc<RpcClient>, Rc<Cell<u32>>) {
    let host = sim.host("server");
    let at: Address = Address::Ip((host.ip(), 7000).into());
    let mut listener = host.io().listen(&at).unwrap();
    let accepted = Rc::new(Cell::new(0));
    let counted = Rc::clone(&accepted);
    let serving: LocalFuture = Box::pin(async move {
        let mut connections: Vec<LocalFuture> = Vec::new();
        loop {
            let all = poll_fn(|cx| {
                connections.retain_mut(|serving| serving.as_mut().poll(cx).is_pending());
                Poll::<()>::Pending
            });
            if let Either::Left(Ok(stream)) = select(listener.accept(), all).await {
                counted.set(counted.get() + 1);
                connections.push(Box::pin(serve(stream)));
            }
        }
    });
    sim.spawn(&host, serving);
    let address = ServerAddress {
        url: format!("http://{at}").parse().unwrap(),
        secret: Secret::from("the tiers' secret"),
        resolve: None,
        tls: None,
    };
    let limits = ClientLimits {
        quick_max: 8,
        slow_max: 8,
        slow_share_max: 8,
        waiting_max: 8,
        idle_max,
        connect_time: SECOND,
        silence_time: SECOND,
        response_bytes_max: 1024 * 1024,
    };
    (Arc::new(RpcClient::new(address, limits)), accepted)
}

async fn call(client: &RpcClient, io: &Io, bytes: usize) -> Result<Result<String, String>, CallError> {
    client.call(io, &Text(bytes)).await
}

#[test]
fn an_expired_idle_connection_of_one_thread_leaves_its_slot_to_another_thread() {
    let sim = Sim::new(1, Faults::none());
    let (client, accepted) = start(&sim, 1);
    let threads = ["one", "two"].map(|name| sim.host(name));
    let [one, two] = [threads[0].io(), threads[1].io()];
    sim.run(&threads[0], async move {
        let connections_of_two_calls = async |io: &Io| {
            let before = accepted.get();
            for _ in 0..2 {
                assert_eq!(call(&client, io, 1).await.unwrap().unwrap(), "x");
            }
            accepted.get() - before
        };
        assert_eq!(connections_of_two_calls(&one).await, 1);
        assert_eq!(connections_of_two_calls(&two).await, 2, "the only slot is the other thread's");
        one.sleep(IDLE_CONNECTION_TIME).await;
        assert_eq!(connections_of_two_calls(&two).await, 1);
        assert_eq!(connections_of_two_calls(&one).await, 2, "there is still one slot only");
    });
}

#[test]
fn the_deadline_of_a_call_covers_the_parsing_of_a_large_response() {
    for seed in seeds(20) {
        let faults = Faults { offload_delay_max: 1000 * SECOND, ..Faults::none() };
        let sim = Sim::new(seed, faults);
        let (client, _) = start(&sim, 1);
        let caller = sim.host("caller");
        let io = caller.io();
        sim.run(&caller, async move {
            assert_eq!(call(&client, &io, 1).await.unwrap().unwrap(), "x");
            let started = io.now();
            match call(&client, &io, PARSED_INLINE_BYTES_MAX).await {
                Ok(response) => assert_eq!(response.unwrap().len(), PARSED_INLINE_BYTES_MAX),
                Err(error) => assert!(matches!(error, CallError::Deadline), "{error:?}"),
            }
            assert!(io.now() - started <= METHOD.deadline, "{:?}", io.now() - started);
        });
    }
}
