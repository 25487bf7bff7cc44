//! The auth tier from outside, over the simulator: its clock, randomness and queues come from a seed.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod crowding;
mod holding_back;
mod known_networks;
mod linking;
mod locking;
mod logging_in;
mod operating;
mod processes;
mod remembering;
mod renewing;
mod sharing;
mod signing_up;
mod waiting;

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use plimsoll_auth::{
    Argon2Settings, Attempts, Auth, Directory, Identity, MemoryDirectory, Secret, Settings, SignUp,
};
use plimsoll_io::sim::{Faults, Sim, seeds};
use plimsoll_io::{Io, Peer};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const PASSWORD: &str = "correct horse";

/// Open sign-up, very cheap hashes, and no limits on attempts.
fn settings() -> Settings {
    Settings {
        argon2: Argon2Settings { memory_kib: 8, passes: 1, lanes: 1 },
        sign_up: SignUp::Open,
        session_time: 10 * MINUTE,
        attempts: None,
        ..Settings::default()
    }
}

/// Like [`settings`], with the usual limits on guessing.
fn guarded() -> Settings {
    Settings { attempts: Some(Attempts::default()), ..settings() }
}

/// Runs `test` with a tier over an empty directory in memory, with a few seeds.
fn run(settings: &Settings, test: impl AsyncFn(Io, Auth) + Copy + 'static) {
    for seed in seeds(10) {
        let sim = Sim::new(seed, Faults::splits());
        let auth = Auth::local(Box::new(MemoryDirectory::new()), settings.clone());
        let host = sim.host("one");
        let io = host.io();
        sim.run(&host, async move { test(io, auth).await });
        assert_eq!(sim.panics(), Vec::<String>::new());
    }
}

/// Runs `test` once, for directories that bring their own.
fn run_over<D: Directory + 'static>(directory: D, test: impl AsyncFnOnce(Io, Auth) + 'static) {
    let sim = Sim::new(1, Faults::splits());
    let auth = Auth::local(Box::new(directory), settings());
    let host = sim.host("one");
    let io = host.io();
    sim.run(&host, async move { test(io, auth).await });
}

fn secret(password: &str) -> Secret {
    Secret::from(password)
}

/// The default peer of the tests.
fn here() -> Peer {
    peer("192.0.2.1")
}

fn peer(ip: &str) -> Peer {
    Peer::Ip(ip.parse().unwrap(), 40_000)
}

/// Signs up with [`PASSWORD`], and verifies it.
async fn join_as(io: &Io, auth: &Auth, name: &str) -> Identity {
    auth.sign_up(io, name, &secret(PASSWORD), &here()).await.unwrap();
    auth.by_password(io, name.as_bytes(), &secret(PASSWORD), &here()).await.unwrap()
}

/// Opens a session, and returns its token.
async fn token(io: &Io, auth: &Auth, name: &str) -> String {
    auth.log_in(io, name, &secret(PASSWORD), &here()).await.unwrap().token
}

/// Polls `future` once. Asserts that it is pending.
fn begin(future: Pin<&mut impl Future>) {
    assert!(future.poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

/// Polls `future` once and drops it, as a disconnect does.
fn begin_and_drop(future: impl Future) {
    let polled = pin!(future).poll(&mut Context::from_waker(Waker::noop()));
    assert!(polled.is_pending(), "it was to be dropped half way");
}

/// Waits for all futures concurrently. Returns their results in order.
async fn all<T>(futures: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut waiting: Vec<Pin<Box<_>>> = futures.into_iter().map(Box::pin).collect();
    let mut answers: Vec<Option<T>> = waiting.iter().map(|_| None).collect();
    std::future::poll_fn(|cx| {
        for (future, answer) in waiting.iter_mut().zip(&mut answers) {
            if answer.is_none()
                && let Poll::Ready(ready) = future.as_mut().poll(cx)
            {
                *answer = Some(ready);
            }
        }
        if answers.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    answers.into_iter().flatten().collect()
}
