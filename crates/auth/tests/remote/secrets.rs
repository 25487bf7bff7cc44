//! Guesses at the shared secret of tiers.

use std::net::Ipv4Addr;
use std::time::Duration;

use plimsoll_auth::{REQUESTS_PATH, Secret};
use plimsoll_client::http::{Body, Client, Request};
use plimsoll_io::sim::{Faults, Sim, seeds};
use plimsoll_io::{Address, Io, Peer};
use plimsoll_rpc::{SecretCheck, SecretRefused};

use super::{SECOND, SECRET, auth_server, url};

/// Posts a request for an unknown session with `secret`. Returns the status.
async fn status_with(io: &Io, at: &Address, secret: &str) -> u16 {
    let mut client = Client::new(io, url(at));
    let mut request = Request::new("POST", REQUESTS_PATH).field("Authorization", format!("Bearer {secret}"));
    let number = "00".repeat(32);
    request.body = Body::Bytes(format!("{{\"session\":\"{number}\"}}").into_bytes());
    client.send(request).await.unwrap().status().code()
}

#[test]
fn wrong_secrets_of_one_address_are_limited_and_fronts_that_showed_the_right_one_are_not() {
    for seed in seeds(5) {
        let sim = Sim::new(seed, Faults::splits());
        let at = auth_server(&sim, &sim.host("auth"));
        let guesser = sim.host("guesser").io();
        sim.run(&sim.host("people"), async move {
            for guess in 0..10 {
                assert_eq!(status_with(&guesser, &at, "a-guess-of-the-secret").await, 401, "{guess}");
            }
            for secret in ["a-guess-of-the-secret", SECRET] {
                assert_eq!(
                    status_with(&guesser, &at, secret).await,
                    429,
                    "the right one is not checked either"
                );
            }
            guesser.sleep(11 * SECOND).await;
            assert_eq!(status_with(&guesser, &at, SECRET).await, 200, "one is forgiven");
            for _ in 0..20 {
                assert_eq!(status_with(&guesser, &at, "a-guess-of-the-secret").await, 401);
            }
            assert_eq!(status_with(&guesser, &at, SECRET).await, 200, "an address that has shown it before");
        });
    }
}

#[test]
fn wrong_secrets_of_many_addresses_slow_all_that_have_not_shown_the_right_one() {
    let sim = Sim::new(1, Faults::none());
    let host = sim.host("people");
    let io = host.io();
    sim.run(&host, async move {
        let secret = SecretCheck::new(Secret::from(SECRET));
        let check = async |shown: &str, number: u32| {
            let (from, begun) = (Ipv4Addr::from_bits(0x0a00_0000 + number), io.now());
            let checked = secret.check(&io, Some(shown.as_bytes()), &Peer::Ip(from.into(), 1)).await;
            (checked, io.now() - begun)
        };
        assert_eq!(check(SECRET, 0).await.0, Ok(()));
        for number in 1..=1000 {
            let (checked, took) = check("a guess of the secret", number).await;
            assert_eq!((checked, took), (Err(SecretRefused::Wrong), Duration::ZERO), "{number}");
        }
        let (checked, took) = check(SECRET, 2000).await;
        assert!(checked.is_ok() && took >= SECOND, "{took:?}");
        let (checked, took) = check(SECRET, 0).await;
        assert!(checked.is_ok() && took < SECOND, "{took:?}");
    });
}
