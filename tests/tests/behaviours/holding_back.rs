//! Rate limits of passwords. Wrong passwords and sign-ups are refused until a time that the answer names.
//! Concurrent hashes above the limit are queued.
//!
//! The engine's own queue of passwords is filled in `binary/`. A limited client must not delay any other.

use std::time::Duration;

use plimsoll_auth::{Argon2Settings, Attempts, Budget, Settings};
use plimsoll_tests::accounts::{PASSWORD, settings};
use plimsoll_tests::{Answer, Engine, Person, Scenario, Scene, behaviours, together, under};
use serde_json::json;

const JSON: &str = "Content-Type: application/json\r\n";

/// `alice:a guess of it`
const GUESS: &str = "Authorization: Basic YWxpY2U6YSBndWVzcyBvZiBpdA==\r\n";

/// More than any budget here permits.
const TRIES_MAX: usize = 20;

/// Concurrent logins with one name; far fewer are hashed at a time.
const AT_ONCE: usize = 24;

fn of(name: &str, password: &str) -> String {
    json!({ "name": name, "password": password }).to_string()
}

/// Small budgets that are soon forgiven, and hashes that take a moment.
fn scenario() -> Scenario {
    let few = Budget { count: 3, forgiven_after: Duration::from_secs(2) };
    let quick = Duration::from_millis(1);
    let attempts = Attempts {
        per_name_from_address: few,
        sign_ups: few,
        slow_first: quick,
        slow_max: quick,
        ..Attempts::default()
    };
    let argon2 = Argon2Settings { memory_kib: 256, passes: 1, lanes: 1 };
    let settings = Settings { attempts: Some(attempts), argon2, ..settings() };
    Scenario { accounts: Some(settings), ..Scenario::default() }
}

/// Returns the time of `Retry-After` of a refusal with `status`.
fn comes_back(answer: &Answer, status: u16) -> Duration {
    let (detail, after) = (answer.problem(status), answer.field("Retry-After").expect("a time"));
    assert!(detail.contains(&format!("Try again in {after} s.")), "{detail}, {after}");
    Duration::from_secs(after.parse().expect("whole seconds"))
}

/// Repeats a request that is answered `usual` until it is refused with 429, and returns the time to wait.
async fn held_back(usual: u16, mut ask: impl AsyncFnMut(usize) -> Answer) -> Duration {
    for at in 0..TRIES_MAX {
        let answer = ask(at).await;
        if answer.status != usual {
            return comes_back(&answer, 429);
        }
    }
    panic!("{TRIES_MAX} tries are held back by nothing");
}

async fn a_client_that_guesses_at_a_login_gets_a_retry_time(scene: Scene) {
    let (mut alice, mut bob) = (Person::new(&scene, "alice").await, Person::new(&scene, "bob").await);
    let mut client = scene.connect().await;
    let guess = async |_| client.ask("POST", "/api/sessions", JSON, of("alice", "a guess of it")).await;
    let time = held_back(401, guess).await;
    assert_eq!(bob.client.ask("POST", "/api/sessions", JSON, of("bob", PASSWORD)).await.status, 201);
    assert_eq!(alice.get("/api/whoami").await.status, 200);
    scene.io.sleep(time).await;
    assert_eq!(client.ask("POST", "/api/sessions", JSON, of("alice", PASSWORD)).await.status, 201);
}

async fn a_client_that_guesses_with_each_request_gets_a_retry_time(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut client = scene.connect().await;
    let time = held_back(401, async |_| client.get_with("/files/", GUESS).await).await;
    assert_eq!(alice.get("/files/").await.status, 200);
    scene.io.sleep(time).await;
    assert_eq!(client.get_with("/files/", GUESS).await.status, 401);
}

async fn a_client_that_creates_many_accounts_gets_a_retry_time(scene: Scene) {
    let mut client = scene.connect().await;
    let sign_up =
        async |at| client.ask("POST", "/api/accounts", JSON, of(&format!("name{at}"), PASSWORD)).await;
    let time = held_back(201, sign_up).await;
    assert_eq!(client.ask("POST", "/api/sessions", JSON, of("name0", PASSWORD)).await.status, 201);
    scene.io.sleep(time).await;
    assert_eq!(client.ask("POST", "/api/accounts", JSON, of("another", PASSWORD)).await.status, 201);
}

async fn a_crowd_with_one_name_waits_and_gets_in(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    let mut crowd = Vec::new();
    for _ in 0..AT_ONCE {
        crowd.push(scene.connect().await);
    }
    let log_ins =
        crowd.iter_mut().map(|client| client.ask("POST", "/api/sessions", JSON, of("alice", PASSWORD)));
    for answer in together(log_ins).await {
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    assert_eq!(alice.get("/api/whoami").await.status, 200);
}

behaviours!(scenario and remote and tls;
    a_client_that_guesses_at_a_login_gets_a_retry_time,
    a_client_that_guesses_with_each_request_gets_a_retry_time,
    a_client_that_creates_many_accounts_gets_a_retry_time,
    a_crowd_with_one_name_waits_and_gets_in,
);

fn by_default() -> Scenario {
    Scenario { accounts: Some(Settings { attempts: Some(Attempts::default()), ..settings() }), ..scenario() }
}

/// In the simulator alone: the time is too long for a real clock.
#[test]
fn the_default_budgets_hold_guesses_back_too() {
    under(Engine::Simulator, by_default, |scene| async move {
        let mut alice = Person::new(&scene, "alice").await;
        let guess =
            async |_| alice.client.ask("POST", "/api/sessions", JSON, of("alice", "a guess of it")).await;
        let time = held_back(401, guess).await;
        scene.io.sleep(time).await;
        assert_eq!(alice.client.ask("POST", "/api/sessions", JSON, of("alice", PASSWORD)).await.status, 201);
    });
}
