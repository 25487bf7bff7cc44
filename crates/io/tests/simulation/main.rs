//! The contract's own parts and the simulator, each topic a file. A failing seed is printed; run it
//! again with `PLIMSOLL_SEED=<seed>`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod clock;
mod connections;
mod deadlines;
mod determinism;
mod disk;
mod endings;
mod executor;
mod failures;
mod faults;
mod files_sent;
mod offloading;
mod power;
mod report;
mod serving;
mod waiting;

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_io::sim::{Faults, Host, Sim};
use plimsoll_io::{Address, Io, Rx, Segment, Stream, Want};

/// The address that the tests' servers listen on.
fn at() -> Address {
    ":8080".parse().unwrap()
}

/// Creates two hosts of one simulation.
fn two_hosts(seed: u64, faults: Faults) -> (Sim, Host, Host) {
    let sim = Sim::new(seed, faults);
    let (near, far) = (sim.host("near"), sim.host("far"));
    (sim, near, far)
}

/// Connects `near` to `far`, gives each its end, and runs until both are done. Returns their results.
fn converse<A: 'static, B: 'static>(
    sim: &Sim,
    (near, far): (&Host, &Host),
    call: impl AsyncFnOnce(Stream) -> A + 'static,
    answer: impl AsyncFnOnce(Stream) -> B + 'static,
) -> (A, B) {
    let (near_io, far_io) = (near.io(), far.io());
    let mut listener = far_io.listen(&at()).unwrap();
    sim.run(near, async move {
        let near = async move { call(near_io.connect(&at()).await.unwrap()).await };
        let far = async move {
            let stream = listener.accept().await.unwrap();
            answer(stream).await
        };
        plimsoll_io::join(near, far).await
    })
}

/// Receives everything until the peer's end. Returns it with the number of leases it came in.
async fn receive_all(rx: &mut Rx) -> io::Result<(Vec<u8>, usize)> {
    let (mut bytes, mut leases) = (Vec::new(), 0);
    while let Some(lease) = rx.recv(Want::Body).await? {
        assert!(!lease.is_empty(), "a receive of nothing");
        bytes.extend_from_slice(&lease);
        leases += 1;
    }
    Ok((bytes, leases))
}

/// Receives everything until the peer's end, and then ends its own side, for a peer that lingers.
async fn collect(mut stream: Stream) -> io::Result<(Vec<u8>, usize)> {
    let received = receive_all(&mut stream.rx).await?;
    stream.tx.finish();
    Ok(received)
}

/// Returns `len` bytes with no two neighbouring parts alike.
fn bytes(len: usize) -> Vec<u8> {
    (0..len).map(|at| u8::try_from((at * 31 + at / 251) % 256).unwrap()).collect()
}

fn owned(bytes: &[u8]) -> Segment {
    Segment::Owned(bytes.to_vec())
}

/// A handler that consists of one async function.
struct Serve<F>(F);

impl<F: Fn(Stream) -> Fut, Fut: Future<Output = ()> + 'static> plimsoll_io::Handler for Serve<F> {
    fn serve(&self, stream: Stream) -> Pin<Box<dyn Future<Output = ()>>> {
        Box::pin(self.0(stream))
    }
}

fn setup<F, Fut>(serve: impl Fn(Io) -> F + Send + Sync + 'static) -> plimsoll_io::Setup
where
    F: Fn(Stream) -> Fut + 'static,
    Fut: Future<Output = ()> + 'static,
{
    std::sync::Arc::new(move |io| Rc::new(Serve(serve(io))))
}

/// Sends each received lease back until the peer ends.
async fn echo(mut stream: Stream) {
    while let Ok(Some(lease)) = stream.rx.recv(Want::Body).await {
        stream.tx.push(Segment::Lease(lease));
        if stream.tx.drain(0).await.is_err() {
            return;
        }
    }
    // The peer may have closed; then the error has no receiver.
    let _ = stream.finish().await;
}

fn echo_setup() -> plimsoll_io::Setup {
    setup(|_| echo)
}

const SECOND: Duration = Duration::from_secs(1);
