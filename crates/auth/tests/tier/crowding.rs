//! Many passwords at once: no account and no address takes all of the hashing.

use std::time::Duration;

use plimsoll_auth::limits::{HASHES_WAITING_MAX, HASHES_WAITING_PER_NAME_MAX, NETWORK_FAILED_TIME};
use plimsoll_auth::{Attempts, Auth, Budget, Error, MemoryDirectory, Settings};
use plimsoll_io::sim::{Faults, Sim};
use plimsoll_io::{Io, Peer};

use crate::{PASSWORD, SECOND, all, begin, guarded, here, join_as, peer, run, secret};

/// One attempt, forgiven after a second.
const BUDGET: Budget = Budget { count: 1, forgiven_after: SECOND };

/// The number of requests that arrive at once, and the time to the next ones. The simulator's directory
/// answers fewer than 64 at a time, each within 20 ms.
const ARRIVALS: usize = 50;
const ARRIVAL_TIME: Duration = Duration::from_millis(20);

/// Like [`log_in`], for the request at this position among many.
async fn log_in_at(at: usize, io: &Io, auth: &Auth, name: &str, from: &Peer) -> Result<(), Error> {
    io.sleep(ARRIVAL_TIME * u32::try_from(at / ARRIVALS).unwrap()).await;
    log_in(io, auth, name, from).await
}

async fn log_in(io: &Io, auth: &Auth, name: &str, from: &Peer) -> Result<(), Error> {
    auth.log_in(io, name, &secret(PASSWORD), from).await.map(drop)
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
        let hers = all((0..300).map(|at| log_in_at(at, &io, &auth, "alice", &peers[at % 100])));
        let from = here();
        let his = log_in_at(299, &io, &auth, "bob", &from);
        let (hers, his) = plimsoll_io::join(hers, his).await;
        assert_eq!(his, Ok(()));
        // While they arrive, some are hashed, two at a time, and others wait in the queue.
        let refused = busy(&hers);
        assert!((100..300 - HASHES_WAITING_PER_NAME_MAX).contains(&refused), "{refused}");
        assert_eq!(auth.hashes() - before, 300 - refused as u64 + 1);
        assert_eq!(log_in(&io, &auth, "alice", &here()).await, Ok(()));
    });
}

#[test]
fn one_network_that_fills_the_queue_delays_others_by_one_hash() {
    run(&guarded(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let names: Vec<String> = (0..HASHES_WAITING_MAX + 90).map(|number| format!("name{number}")).collect();
        let (net, owner) = ([peer("2001:db8::1"), peer("2001:db8::2:1")], peer("203.0.113.9"));
        let attempts = Attempts { per_address: Budget { count: 9999, ..BUDGET }, ..Attempts::default() };
        auth.set(Settings { attempts: Some(attempts), ..guarded() });
        let theirs = names.iter().enumerate();
        let theirs = all(theirs.map(|(at, name)| log_in_at(at, &io, &auth, name, &net[at % 2])));
        let hers = async {
            // When all have arrived.
            io.sleep(ARRIVAL_TIME * 14).await;
            let before = auth.hashes();
            let answer = log_in(&io, &auth, "alice", &owner).await;
            (answer, auth.hashes() - before)
        };
        let (theirs, (hers, hashed)) = plimsoll_io::join(theirs, hers).await;
        assert_eq!(hers, Ok(()));
        assert!(hashed < 50, "{hashed} passwords were hashed meanwhile");
        assert!((1..=91).contains(&busy(&theirs)), "{}", busy(&theirs));
    });
}

/// Sends one wrong password from each of 300 networks, at names of their own.
async fn guess_everywhere(io: &Io, auth: &Auth, round: usize) {
    let networks: Vec<Peer> = (0..300).map(|at| peer(&format!("198.51.{}.{}", at / 250, at % 250))).collect();
    let names: Vec<String> = (0..300).map(|at| format!("name{round}.{at}")).collect();
    let wrong = secret("a guess");
    all((0..300).map(async |at| {
        io.sleep(ARRIVAL_TIME * u32::try_from(at / ARRIVALS).unwrap()).await;
        auth.log_in(io, &names[at], &wrong, &networks[at]).await.unwrap_err();
    }))
    .await;
}

/// Returns how many passwords were hashed while a client logged in, beside 300 networks that guess at once.
async fn hashes_beside_guesses(io: &Io, auth: &Auth, round: usize, from: &str) -> u64 {
    let hers = async {
        // When all guesses have arrived.
        io.sleep(ARRIVAL_TIME * 7).await;
        let before = auth.hashes();
        assert_eq!(log_in(io, auth, "alice", &peer(from)).await, Ok(()));
        auth.hashes() - before
    };
    plimsoll_io::join(guess_everywhere(io, auth, round), hers).await.1
}

#[test]
fn three_hundred_guessing_networks_delay_a_log_in_from_a_new_network_by_a_few_hashes() {
    run(&guarded(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        guess_everywhere(&io, &auth, 0).await;
        let hashed = hashes_beside_guesses(&io, &auth, 1, "203.0.113.9").await;
        assert!(hashed <= 30, "{hashed} passwords were hashed meanwhile");
        // Later they count as new, too, until each has failed once. Then a round of them is the bound.
        io.sleep(NETWORK_FAILED_TIME).await;
        let hashed = hashes_beside_guesses(&io, &auth, 2, "203.0.113.10").await;
        assert!(hashed <= 300, "{hashed} passwords were hashed meanwhile");
    });
}

#[test]
fn sign_ups_from_many_networks_delay_a_log_in_from_a_new_network_by_a_few_hashes() {
    run(&guarded(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let networks: Vec<Peer> = (0..200).map(|host| peer(&format!("198.51.100.{host}"))).collect();
        let names: Vec<String> = (0..200).map(|number| format!("name{number}")).collect();
        let password = secret(PASSWORD);
        let joined = all((0..200).map(async |at| {
            io.sleep(ARRIVAL_TIME * u32::try_from(at / ARRIVALS).unwrap()).await;
            auth.sign_up(&io, &names[at], &password, &networks[at]).await.unwrap();
        }));
        let hers = async {
            io.sleep(ARRIVAL_TIME * 5).await;
            let before = auth.hashes();
            assert_eq!(log_in(&io, &auth, "alice", &peer("203.0.113.9")).await, Ok(()));
            auth.hashes() - before
        };
        let (_, hashed) = plimsoll_io::join(joined, hers).await;
        assert!(hashed <= 30, "{hashed} passwords were hashed meanwhile");
    });
}

#[test]
fn a_class_that_signs_up_at_once_waits_and_gets_in() {
    let sim = Sim::new(1, Faults::none());
    let auth = Auth::local(Box::new(MemoryDirectory::new()), guarded());
    let host = sim.host("one");
    let io = host.io();
    sim.run(&host, async move {
        let (password, class) = (secret(PASSWORD), peer("203.0.113.1"));
        let names: Vec<String> = (0..100).map(|number| format!("name{number}")).collect();
        let answers = all(names.iter().map(|name| auth.sign_up(&io, name, &password, &class))).await;
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        assert!(auth.log_in(&io, "name99", &password, &class).await.is_ok());
    });
}

#[test]
fn a_burst_of_log_ins_from_one_network_waits_and_is_refused_by_nothing() {
    run(&guarded(), async |io, auth| {
        let names: Vec<String> = (0..60).map(|number| format!("name{number}")).collect();
        for name in &names {
            join_as(&io, &auth, name).await;
        }
        let from = peer("203.0.113.1");
        let answers = all(names.iter().map(|name| log_in(&io, &auth, name, &from))).await;
        assert_eq!(busy(&answers), 0, "{answers:?}");
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
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
fn a_connection_that_breaks_keeps_its_permit_until_the_hash_is_computed() {
    let sim = Sim::new(1, Faults::none());
    let auth = Auth::local(Box::new(MemoryDirectory::new()), guarded());
    let host = sim.host("one");
    let io = host.io();
    sim.run(&host, async move {
        join_as(&io, &auth, "alice").await;
        let (before, from) = (auth.hashes(), here());
        let mut asks: Vec<_> = (0..9).map(|_| Box::pin(log_in(&io, &auth, "alice", &from))).collect();
        while auth.hashes() == before {
            asks.iter_mut().for_each(|ask| begin(ask.as_mut()));
            io.yield_now().await;
        }
        drop(asks);
        // Hashes in progress are computed; requests that only waited are dropped.
        assert_eq!(log_in(&io, &auth, "alice", &from).await, Ok(()));
        io.sleep(SECOND).await;
        assert!((2..=4).contains(&(auth.hashes() - before)), "{}", auth.hashes() - before);
    });
}
