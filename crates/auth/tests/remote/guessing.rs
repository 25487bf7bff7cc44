//! Guesses at passwords through fronts, and the clients that they delay or refuse.

use std::net::Ipv4Addr;

use plimsoll_auth::{Attempts, Auth, Error, MemoryDirectory, Secret, Settings};
use plimsoll_io::Peer;
use plimsoll_io::sim::{Faults, Sim, seeds};

use super::{Front, PASSWORD, SECOND, SECRET, here, serve, settings};

fn network(number: u32) -> Peer {
    Peer::Ip(Ipv4Addr::from_bits(0x0a00_0000 + number).into(), 40_000)
}

/// Runs `test` with two fronts of a server that limits guesses.
fn run_guarded(test: impl AsyncFn([Front; 2]) + Copy + 'static) {
    for seed in seeds(5) {
        let sim = Sim::new(seed, Faults::splits());
        let guarded = Settings { attempts: Some(Attempts::default()), ..settings() };
        let at = serve(&sim, &sim.host("auth"), Auth::local(Box::new(MemoryDirectory::new()), guarded));
        let fronts = ["left", "right"].map(|name| Front::new(&sim, name, &at, SECRET));
        sim.run(&sim.host("people"), async move { test(fronts).await });
        assert_eq!(sim.panics(), Vec::<String>::new());
    }
}

#[test]
fn a_network_of_an_earlier_log_in_is_let_in_at_every_front_whatever_others_guess() {
    run_guarded(async |[left, right]| {
        let (password, guess) = (Secret::from(PASSWORD), Secret::from("a guess"));
        left.auth.sign_up(&left.io, "alice", &password, &here()).await.unwrap();
        let mut guesses = 0;
        while let Err(Error::WrongCredentials) =
            left.auth.by_password(&left.io, b"alice", &guess, &network(guesses)).await
        {
            guesses += 1;
            assert!(guesses < 1_000, "there is a limit");
        }
        let stranger = right.auth.by_password(&right.io, b"alice", &password, &network(5_000)).await;
        assert!(matches!(stranger, Err(Error::TooManyAttempts { .. })), "{stranger:?}");
        assert!(right.auth.by_password(&right.io, b"alice", &password, &here()).await.is_ok());
    });
}

#[test]
fn a_wrong_password_that_waits_for_its_answer_occupies_no_connection_of_the_front() {
    run_guarded(async |[left, _]| {
        let (password, guess) = (Secret::from(PASSWORD), Secret::from("a guess"));
        left.auth.sign_up(&left.io, "bob", &password, &here()).await.unwrap();
        let mut waiting: Vec<_> = Vec::new();
        for number in 0..60 {
            let (left, guess) = (&left, &guess);
            waiting.push(Box::pin(async move {
                left.auth.by_password(&left.io, b"alice", guess, &network(number)).await.map(drop)
            }));
        }
        let bob = async {
            // By then, some forty guesses have been checked, and their responses are delayed by up to
            // three seconds.
            left.io.sleep(SECOND).await;
            let asked = left.io.now();
            left.auth.log_in(&left.io, "bob", &password, &network(100)).await.map(|_| left.io.now() - asked)
        };
        let mut bob = std::pin::pin!(bob);
        let took = std::future::poll_fn(|cx| {
            waiting.retain_mut(|guess| guess.as_mut().poll(cx).is_pending());
            bob.as_mut().poll(cx)
        });
        let took = took.await.unwrap();
        assert!(took < SECOND, "{took:?}");
        assert!(waiting.len() > 24, "{} guesses wait for their answers", waiting.len());
    });
}
