//! Guesses at one account's password from many networks. Networks of earlier log-ins are admitted all the
//! same. Fresh networks are admitted as long as the attacker has fewer of them than the budget allows.

use plimsoll_auth::{Auth, Error, Settings, SqliteDirectory};
use plimsoll_io::Io;
use plimsoll_io::sim::{Faults, Sim};

use crate::{MINUTE, PASSWORD, all, guarded, here, join_as, peer, run, secret};

/// Sends one wrong password for `alice`. Returns whether the server checked it.
async fn guess(io: &Io, auth: &Auth, from: &str) -> bool {
    let refused = auth.log_in(io, "alice", &secret("wrong horse"), &peer(from)).await.unwrap_err();
    refused == Error::WrongCredentials
}

/// Guesses from one fresh network after another until the server refuses; returns how many it checked.
async fn guess_until_refused(io: &Io, auth: &Auth) -> usize {
    for number in 0..2000 {
        if !guess(io, auth, &format!("198.51.{}.{}", number / 250, number % 250)).await {
            return number;
        }
    }
    panic!("2000 guesses from as many networks are refused by nothing");
}

async fn log_in(io: &Io, auth: &Auth, password: &str, from: &str) -> Result<(), Error> {
    auth.log_in(io, "alice", &secret(password), &peer(from)).await.map(drop)
}

#[test]
fn a_few_guessing_networks_do_not_lock_a_fresh_network_out() {
    run(&guarded(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let networks = [1, 2, 3, 4, 5].map(|network| format!("203.0.113.{network}"));
        let checked = all((0..60).map(|at| guess(&io, &auth, &networks[at % 5]))).await;
        assert_eq!(checked.iter().filter(|checked| **checked).count(), 50);
        for _ in 0..10 {
            all(networks.iter().map(|network| guess(&io, &auth, network))).await;
            assert_eq!(log_in(&io, &auth, PASSWORD, "192.0.2.77").await, Ok(()));
            io.sleep(MINUTE).await;
        }
    });
}

#[test]
fn a_network_of_an_earlier_log_in_is_never_refused_for_guesses_of_others() {
    run(&guarded(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        assert_eq!(log_in(&io, &auth, PASSWORD, "2001:db8::1").await, Ok(()));
        let checked = guess_until_refused(&io, &auth).await;
        assert!((100..=300).contains(&checked), "{checked}");
        assert!(matches!(
            log_in(&io, &auth, PASSWORD, "192.0.2.99").await,
            Err(Error::TooManyAttempts { .. })
        ));
        for from in ["192.0.2.1", "2001:db8::1", "2001:db8::ffff:1"] {
            assert_eq!(log_in(&io, &auth, PASSWORD, from).await, Ok(()), "{from}");
        }
        // The network may send as many wrong passwords as any other.
        assert!(guess(&io, &auth, "192.0.2.1").await);
    });
}

#[test]
fn an_address_whose_other_users_guess_is_not_refused_where_the_account_logged_in_before() {
    run(&guarded(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let (names, wrong, from) =
            ((0..120).map(|number| format!("name{number}")), secret("wrong horse"), here());
        let names: Vec<_> = names.collect();
        for some in names.chunks(40) {
            all(some.iter().map(|name| auth.log_in(&io, name, &wrong, &from))).await;
        }
        let stranger = auth.log_in(&io, "bob", &secret(PASSWORD), &here()).await.unwrap_err();
        assert!(matches!(stranger, Error::TooManyAttempts { .. }), "{stranger}");
        assert_eq!(log_in(&io, &auth, PASSWORD, "192.0.2.1").await, Ok(()));
    });
}

#[test]
fn known_networks_outlive_the_server_and_end_with_the_password() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("directory.sqlite");
    let open = move || {
        let settings = Settings { attempts: Some(plimsoll_auth::Attempts::default()), ..crate::settings() };
        Auth::local(Box::new(SqliteDirectory::open(&path).unwrap()), settings)
    };
    let sim = Sim::new(1, Faults::splits());
    let host = sim.host("one");
    let io = host.io();
    sim.run(&host, async move {
        let auth = open();
        join_as(&io, &auth, "alice").await;
        drop(auth);
        let auth = open();
        guess_until_refused(&io, &auth).await;
        let caller = auth.by_password(&io, b"alice", &secret(PASSWORD), &here()).await.unwrap();
        let new = secret("battery staple");
        auth.change_password(&io, &caller, &secret(PASSWORD), &new, &peer("192.0.2.50")).await.unwrap();
        drop(auth);
        let auth = open();
        guess_until_refused(&io, &auth).await;
        // The password was changed from this network.
        assert_eq!(log_in(&io, &auth, "battery staple", "192.0.2.50").await, Ok(()));
        // This network is known under the old password only.
        let forgotten = log_in(&io, &auth, "battery staple", "192.0.2.1").await;
        assert!(matches!(forgotten, Err(Error::TooManyAttempts { .. })), "{forgotten:?}");
    });
}
