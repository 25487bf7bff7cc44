//! Many passwords at once: no account and no address takes all of the hashing.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};

use plimsoll_auth::limits::{HASHES_PER_ADDRESS_MAX, HASHES_PER_NAME_MAX};
use plimsoll_auth::{Attempts, Auth, Error, MemoryDirectory, Settings};
use plimsoll_io::sim::{Faults, Sim};
use plimsoll_io::{Io, Peer};

use crate::{PASSWORD, SECOND, all, guarded, here, join_as, peer, run, secret};

async fn log_in(io: &Io, auth: &Auth, name: &str, from: &Peer) -> Result<(), Error> {
    auth.log_in(io, name, &secret(PASSWORD), from).await.map(drop)
}

fn begin(ask: Pin<&mut impl Future>) {
    assert!(ask.poll(&mut Context::from_waker(Waker::noop())).is_pending());
}

fn busy(answers: &[Result<(), Error>]) -> usize {
    answers.iter().filter(|answer| matches!(answer, Err(Error::Busy { .. }))).count()
}

#[test]
fn one_account_that_logs_in_without_end_leaves_room_for_others() {
    run(&guarded(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        join_as(&io, &auth, "bob").await;
        let peers: Vec<Peer> = (0..100).map(|host| peer(&format!("198.51.100.{host}"))).collect();
        let before = auth.hashes();
        let hers = all((0..300).map(|at| log_in(&io, &auth, "alice", &peers[at % 100])));
        let (hers, his) = plimsoll_io::join(hers, log_in(&io, &auth, "bob", &here())).await;
        assert_eq!(his, Ok(()));
        assert_eq!(busy(&hers), 300 - HASHES_PER_NAME_MAX);
        assert_eq!(auth.hashes() - before, HASHES_PER_NAME_MAX as u64 + 1);
        assert_eq!(log_in(&io, &auth, "alice", &here()).await, Ok(()));
    });
}

#[test]
fn one_address_with_many_names_leaves_room_for_others_unless_it_is_exempt() {
    run(&guarded(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let names: Vec<String> = (0..90).map(|number| format!("name{number}")).collect();
        let net = [peer("2001:db8::1"), peer("2001:db8::2:1")];
        let asks = names.iter().enumerate();
        let theirs = all(asks.map(|(at, name)| log_in(&io, &auth, name, &net[at % 2])));
        let (theirs, hers) = plimsoll_io::join(theirs, log_in(&io, &auth, "alice", &here())).await;
        assert_eq!((busy(&theirs), hers), (90 - HASHES_PER_ADDRESS_MAX, Ok(())));
    });
    let attempts = Attempts { exempt_local: true, ..Attempts::default() };
    run(&Settings { attempts: Some(attempts), ..guarded() }, async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let names: Vec<String> = (0..50).map(|number| format!("name{number}")).collect();
        let local = peer("127.0.0.1");
        assert_eq!(busy(&all(names.iter().map(|name| log_in(&io, &auth, name, &local))).await), 0);
    });
}

#[test]
fn a_class_that_signs_up_at_once_leaves_room_for_others_and_gets_in_when_it_comes_back() {
    let sim = Sim::new(1, Faults::none());
    let auth = Auth::here(Box::new(MemoryDirectory::new()), guarded());
    let host = sim.host("one");
    let io = host.io();
    sim.run(&host, async move {
        let (password, class) = (secret(PASSWORD), peer("203.0.113.1"));
        let names: Vec<String> = (0..100).map(|number| format!("name{number}")).collect();
        let sign_up = async |name: &str| auth.sign_up(&io, name, &password, &class).await.map(drop);
        for room in names.chunks(HASHES_PER_ADDRESS_MAX) {
            let waiting = names.iter().skip_while(|name| **name != room[0]);
            let answers = all(waiting.map(|name| sign_up(name))).await;
            let (first, others) = answers.split_at(room.len());
            assert!(first.iter().all(Result::is_ok), "{first:?}");
            assert_eq!(busy(others), others.len());
        }
    });
}

#[test]
fn many_requests_that_show_one_password_at_once_wait_until_it_is_remembered() {
    run(&guarded(), async |io, auth| {
        auth.sign_up(&io, "alice", &secret(PASSWORD), &here()).await.unwrap();
        let (password, from, before) = (secret(PASSWORD), here(), auth.hashes());
        let answers = all((0..40).map(|_| auth.by_password(&io, b"alice", &password, &from))).await;
        assert!(answers.iter().all(Result::is_ok));
        let hashed = auth.hashes() - before;
        assert!(hashed < 40 / 2, "{hashed}");
    });
}

#[test]
fn a_connection_that_breaks_keeps_its_seat_until_the_hash_is_made() {
    let sim = Sim::new(1, Faults::none());
    let auth = Auth::here(Box::new(MemoryDirectory::new()), guarded());
    let host = sim.host("one");
    let io = host.io();
    sim.run(&host, async move {
        join_as(&io, &auth, "alice").await;
        let from = here();
        let mut asks: Vec<_> =
            (0..HASHES_PER_NAME_MAX).map(|_| Box::pin(log_in(&io, &auth, "alice", &from))).collect();
        // The first turn asks the directory, the second hands over what is to be hashed.
        asks.iter_mut().for_each(|ask| begin(ask.as_mut()));
        io.sleep(SECOND / 1000).await;
        asks.iter_mut().for_each(|ask| begin(ask.as_mut()));
        drop(asks);
        assert_eq!(busy(&[log_in(&io, &auth, "alice", &from).await]), 1);
        io.sleep(SECOND).await;
        assert_eq!(log_in(&io, &auth, "alice", &from).await, Ok(()));
    });
}
