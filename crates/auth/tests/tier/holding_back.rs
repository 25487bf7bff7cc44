//! Password guessing: slowed, then refused for a while, without locking the owner out.

use std::time::Duration;

use plimsoll_auth::{Attempts, Auth, Budget, Error, Settings};
use plimsoll_io::{Io, Peer};

use crate::{MINUTE, PASSWORD, SECOND, all, begin, guarded, here, join_as, peer, run, secret, token};

/// Sends a wrong password. Returns the error and the response time.
async fn guess(io: &Io, auth: &Auth, name: &str, from: &Peer) -> (Error, Duration) {
    let before = io.now();
    let refused = auth.log_in(io, name, &secret("wrong horse"), from).await.unwrap_err();
    (refused, io.now() - before)
}

fn is_refused(error: &Error) -> bool {
    matches!(error, Error::TooManyAttempts { .. })
}

#[test]
fn answers_to_wrong_passwords_wait_twice_as_long_each_time_and_then_there_are_none() {
    run(&guarded(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        for failure in 0..10 {
            let (error, took) = guess(&io, &auth, "alice", &here()).await;
            let expected = (SECOND / 10 * (1 << failure)).min(3 * SECOND);
            assert_eq!(error, Error::WrongCredentials);
            // The excess is the time that offloaded work takes.
            assert!(took >= expected && took < expected + SECOND / 2, "{failure}: {took:?}");
        }
        let (error, took) = guess(&io, &auth, "alice", &here()).await;
        assert!(is_refused(&error), "{error}");
        assert!(took < SECOND / 10, "{took:?}");
    });
}

#[test]
fn an_unknown_name_is_limited_like_a_known_one() {
    run(&guarded(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        for _ in 0..12 {
            known.push(is_refused(&guess(&io, &auth, "alice", &here()).await.0));
            unknown.push(is_refused(&guess(&io, &auth, "nobody", &here()).await.0));
        }
        assert_eq!(known, unknown);
        assert!(known[11]);
    });
}

#[test]
fn a_client_that_retries_at_the_stated_time_has_one_attempt() {
    run(&guarded(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let wait = loop {
            if let (Error::TooManyAttempts { retry_after }, _) = guess(&io, &auth, "alice", &here()).await {
                break retry_after;
            }
        };
        assert!(wait <= MINUTE, "{wait:?}");
        io.sleep(wait - SECOND / 10).await;
        assert!(is_refused(&guess(&io, &auth, "alice", &here()).await.0));
        io.sleep(SECOND / 5).await;
        assert_eq!(guess(&io, &auth, "alice", &here()).await.0, Error::WrongCredentials);
        assert!(is_refused(&guess(&io, &auth, "alice", &here()).await.0));
    });
}

#[test]
fn a_right_password_is_never_slowed_and_forgives_no_guesses() {
    run(&guarded(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        for _ in 0..9 {
            guess(&io, &auth, "alice", &here()).await;
        }
        let before = io.now();
        token(&io, &auth, "alice").await;
        assert!(io.now() - before < SECOND / 2);
        for _ in 0..2 {
            guess(&io, &auth, "alice", &here()).await;
        }
        assert!(is_refused(&guess(&io, &auth, "alice", &here()).await.0));
    });
}

#[test]
fn guesses_from_elsewhere_lock_out_neither_session_nor_known_password() {
    run(&guarded(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let session = token(&io, &auth, "alice").await;
        for host in 1..=255 {
            let far = peer(&format!("198.51.100.{host}"));
            if is_refused(&guess(&io, &auth, "alice", &far).await.0) {
                break;
            }
        }
        // From other networks not even the right password is checked: a guesser learns nothing from the
        // cache.
        for from in ["203.0.113.1", "192.0.2.2"] {
            let stranger = auth.log_in(&io, "alice", &secret(PASSWORD), &peer(from)).await;
            assert!(is_refused(&stranger.unwrap_err()));
        }
        let caller = auth.by_token(&io, session.as_bytes()).await.unwrap();
        assert!(auth.by_password(&io, b"alice", &secret(PASSWORD), &here()).await.is_ok());
        assert!(auth.log_in(&io, "alice", &secret(PASSWORD), &here()).await.is_ok());
        // From a network that has not used the password: the session identifies the owner.
        let (old, new, cafe) = (secret(PASSWORD), secret("battery staple"), peer("203.0.113.7"));
        auth.change_password(&io, &caller, &old, &new, &cafe).await.unwrap();
    });
}

#[test]
fn a_client_with_a_session_has_few_attempts_at_the_password() {
    run(&guarded(), async |io, auth| {
        let caller = join_as(&io, &auth, "alice").await;
        let (wrong, new) = (secret("wrong horse"), secret("battery staple"));
        let mut refused = Error::WrongCredentials;
        for _ in 0..11 {
            refused = auth.change_password(&io, &caller, &wrong, &new, &here()).await.unwrap_err();
        }
        assert!(is_refused(&refused));
    });
}

#[test]
fn a_known_password_gets_through_also_when_it_has_to_be_hashed_again() {
    run(&guarded(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        auth.set(Settings { remembered_time: SECOND, ..guarded() });
        for _ in 0..11 {
            guess(&io, &auth, "alice", &here()).await;
        }
        let before = auth.hashes();
        assert!(auth.by_password(&io, b"alice", &secret(PASSWORD), &here()).await.is_ok());
        assert_eq!(auth.hashes(), before + 1);
    });
}

#[test]
fn guesses_at_a_cached_password_are_limited_also_while_its_owner_uses_it() {
    run(&guarded(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        for _ in 0..110 {
            auth.by_password(&io, b"alice", &secret("wrong horse"), &here()).await.unwrap_err();
        }
        let shown = auth.by_password(&io, b"alice", &secret(PASSWORD), &here()).await;
        assert!(is_refused(&shown.unwrap_err()));
    });
}

#[test]
fn one_guesser_locks_a_name_for_himself_and_not_for_its_owner_elsewhere() {
    run(&guarded(), async |io, auth| {
        auth.sign_up(&io, "alice", &secret(PASSWORD), &here()).await.unwrap();
        for _ in 0..11 {
            guess(&io, &auth, "alice", &peer("203.0.113.1")).await;
        }
        assert!(is_refused(&guess(&io, &auth, "alice", &peer("203.0.113.1")).await.0));
        assert!(auth.log_in(&io, "alice", &secret(PASSWORD), &here()).await.is_ok());
    });
}

#[test]
fn one_address_that_tries_many_names_is_refused_and_its_whole_net_with_it() {
    run(&guarded(), async |io, auth| {
        let (one, beside, other) = (peer("2001:db8::1"), peer("2001:db8::2:1"), peer("2001:db8:0:1::1"));
        for batch in 0..4 {
            let names: Vec<String> = (0..50).map(|name| format!("name{batch}.{name}")).collect();
            all(names.iter().map(|name| guess(&io, &auth, name, &one))).await;
        }
        assert!(is_refused(&guess(&io, &auth, "fresh", &one).await.0));
        assert!(is_refused(&guess(&io, &auth, "fresh", &beside).await.0));
        assert_eq!(guess(&io, &auth, "fresh", &other).await.0, Error::WrongCredentials);
    });
}

#[test]
fn guesses_side_by_side_are_no_more_than_guesses_in_a_row() {
    run(&guarded(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        guess(&io, &auth, "alice", &here()).await;
        let peer = here();
        let mut weighed = 0;
        for _ in 0..4 {
            let answers = all((0..40).map(|_| guess(&io, &auth, "alice", &peer))).await;
            weighed += answers.iter().filter(|(error, _)| *error == Error::WrongCredentials).count();
        }
        assert_eq!(weighed, 9);
    });
}

#[test]
fn an_attempt_whose_connection_breaks_has_failed() {
    run(&guarded(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        for _ in 0..10 {
            let (before, from) = (auth.hashes(), here());
            let mut guess = Box::pin(guess(&io, &auth, "alice", &from));
            while auth.hashes() == before {
                begin(guess.as_mut());
                io.sleep(SECOND / 1000).await;
            }
        }
        assert!(is_refused(&guess(&io, &auth, "alice", &here()).await.0));
    });
}

#[test]
fn an_address_may_sign_up_a_class_and_is_limited_beyond_that() {
    run(&guarded(), async |io, auth| {
        let sign_up = async |number: u32, from: &str| {
            auth.sign_up(&io, &format!("name{number}"), &secret(PASSWORD), &peer(from)).await
        };
        let mut number = 0;
        let refused = loop {
            if let Err(refused) = sign_up(number, "203.0.113.1").await {
                break refused;
            }
            number += 1;
        };
        // One more is admitted each second, and they take a few seconds.
        assert!((100..110).contains(&number), "{number}");
        assert!(is_refused(&refused) && refused.retry_after().unwrap() <= SECOND, "{refused}");
        assert!(is_refused(&sign_up(0, "203.0.113.1").await.unwrap_err()));
        assert!(sign_up(number, "203.0.113.2").await.is_ok());
        io.sleep(SECOND).await;
        assert!(sign_up(number + 1, "203.0.113.1").await.is_ok());
    });
}

#[test]
fn the_machine_itself_counts_as_others_unless_it_is_exempt() {
    let tight = Budget { count: 2, forgiven_after: MINUTE };
    let attempts = Attempts { per_address: tight, sign_ups: tight, ..Attempts::default() };
    run(&Settings { attempts: Some(attempts), ..guarded() }, async |io, auth| {
        for local in [peer("127.0.0.1"), peer("::1"), Peer::Unix] {
            let mut refused = false;
            for name in ["a", "b", "c"] {
                refused = is_refused(&guess(&io, &auth, name, &local).await.0);
            }
            assert!(refused, "{local}");
        }
    });
    let exempt = Attempts { exempt_local: true, ..attempts };
    run(&Settings { attempts: Some(exempt), ..guarded() }, async |io, auth| {
        for local in [peer("127.0.0.1"), peer("::1"), peer("::ffff:127.0.0.1"), Peer::Unix] {
            for name in ["a", "b", "c"] {
                assert_eq!(guess(&io, &auth, name, &local).await.0, Error::WrongCredentials, "{local}");
            }
        }
    });
}
