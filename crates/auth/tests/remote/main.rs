//! An auth server and its fronts, each on a host of its own, over the simulator.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod guessing;
mod link;
mod locking;
mod secrets;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_auth::{
    Argon2Settings, Attempts, Auth, AuthServer, Error, MemoryDirectory, NewShare, Permission, REQUESTS_PATH,
    Secret, ServerAddress, Settings, SignUp,
};
use plimsoll_client::http::{Body, Client, Request, Url};
use plimsoll_content::HotCache;
use plimsoll_io::sim::{Chance, Faults, Host, Sim, seeds};
use plimsoll_io::{Address, Io, Networks, Peer, Setup};
use plimsoll_proto::Current;
use plimsoll_proto::http::{
    AccessLog, Http, Limits, Load, Readiness, Routes, RpcServer, Snapshot, StatusPage, Tiers,
};
use plimsoll_rpc::{SecretCheck, Service};

const SECRET: &str = "only the tiers know";
const PASSWORD: &str = "correct horse";
const SECOND: Duration = Duration::from_secs(1);

fn settings() -> Settings {
    Settings {
        argon2: Argon2Settings { memory_kib: 8, passes: 1, lanes: 1 },
        sign_up: SignUp::Open,
        attempts: None,
        ..Settings::default()
    }
}

fn here() -> Peer {
    Peer::Ip("192.0.2.1".parse().unwrap(), 40_000)
}

fn status_page() -> StatusPage {
    let load = Load {
        connections_open: 0,
        connections_max: 0,
        connections_accepted: 0,
        connections_refused: 0,
        connections_evicted: 0,
        connections_panicked: 0,
        draining: false,
        uptime_seconds: 0,
    };
    StatusPage {
        version: "test",
        engine: "simulator".to_owned(),
        threads: 1,
        tiers: Tiers::default(),
        load: Box::new(move || load),
        counters: Arc::default(),
        hot: HotCache::off(),
        lab: Vec::new(),
        operations: Box::new(String::new),
        channel: Box::new(BTreeMap::new),
        certificates: Box::new(Vec::new),
        proxy: None,
        readiness: Arc::new(Readiness::new(Vec::new())),
    }
}

/// Serves the auth tier on `host`.
fn auth_server(sim: &Sim, host: &Host) -> Address {
    serve(sim, host, Auth::local(Box::new(MemoryDirectory::new()), settings()))
}

fn serve(sim: &Sim, host: &Host, auth: Auth) -> Address {
    serve_methods(":7070", sim, host, AuthServer::for_fronts(auth))
}

fn serve_methods(at: &str, sim: &Sim, host: &Host, service: impl Service + 'static) -> Address {
    let server = RpcServer::new(SecretCheck::new(Secret::from(SECRET)), "a test", "test");
    let service = Routes::with_api(Vec::new(), status_page(), Arc::new(server.with(Arc::new(service))));
    let current = Current::new(Snapshot { limits: Limits::default(), proxies: Networks::default(), service });
    let setup: Setup = Arc::new(move |io| {
        let (current, log) = (Arc::clone(&current), AccessLog::new(None));
        Rc::new(Http::new(io, current, log, Arc::default(), HotCache::off()))
    });
    sim.serve(host, &at.parse().unwrap(), &setup).unwrap()
}

fn address(at: &Address, secret: &str) -> ServerAddress {
    ServerAddress { url: url(at), secret: Secret::from(secret), resolve: None, tls: None }
}

fn url(at: &Address) -> Url {
    format!("http://{at}").parse().unwrap()
}

/// A front, and whether it is cut off from its auth server.
struct Front {
    io: Io,
    auth: Auth,
    is_cut: Rc<Cell<bool>>,
}

impl Front {
    /// Creates a front whose requests to the server at `at` pass a link that the test may cut.
    fn new(sim: &Sim, name: &str, at: &Address, secret: &str) -> Front {
        let (at, is_cut) = link::connect(sim, name, at);
        Front::of(sim, name, Auth::remote(address(&at, secret), settings()), is_cut)
    }

    /// Creates a connection process of the server at `at`.
    fn process(sim: &Sim, name: &str, at: &Address) -> Front {
        let (at, is_cut) = link::connect(sim, name, at);
        Front::of(sim, name, Auth::of_main_process(address(&at, SECRET), settings()), is_cut)
    }

    fn of(sim: &Sim, name: &str, auth: Auth, is_cut: Rc<Cell<bool>>) -> Front {
        let host = sim.host(name);
        if let Some(following) = auth.follow_changes(&host.io()) {
            sim.spawn(&host, following);
        }
        Front { io: host.io(), auth, is_cut }
    }

    /// Whether a token is valid; `None` if the auth server is unreachable.
    async fn opens(&self, token: &str) -> Option<bool> {
        match self.auth.by_token(&self.io, token.as_bytes()).await {
            Ok(_) => Some(true),
            Err(Error::NoSession) => Some(false),
            Err(Error::Unavailable | Error::Busy { .. }) => None,
            Err(error) => panic!("{error:?}"),
        }
    }

    /// As [`Front::opens`], but gives up after a second.
    async fn opens_now(&self, token: &str) -> Option<bool> {
        let deadline = self.io.deadline();
        deadline.after(SECOND);
        deadline.within(self.opens(token)).await.ok().flatten()
    }

    async fn log_in(&self, name: &str) -> String {
        self.auth.log_in(&self.io, name, &Secret::from(PASSWORD), &here()).await.unwrap().token
    }

    async fn log_out(&self, token: &str) -> Result<(), Error> {
        let caller = self.auth.by_token(&self.io, token.as_bytes()).await?;
        self.auth.log_out(&self.io, &caller).await
    }
}

/// Runs `test` with an auth server and two fronts that know it.
fn run(test: impl AsyncFn([Front; 2], Chance) + Copy + 'static) {
    for seed in seeds(20) {
        let sim = Sim::new(seed, Faults::splits());
        let at = auth_server(&sim, &sim.host("auth"));
        let fronts = ["left", "right"].map(|name| Front::new(&sim, name, &at, SECRET));
        let people = sim.host("people");
        sim.run(&people, async move { test(fronts, Chance::new(seed)).await });
        assert_eq!(sim.panics(), Vec::<String>::new());
    }
}

#[test]
fn a_session_begun_at_one_front_is_valid_at_another() {
    run(async |[left, right], _| {
        left.auth.sign_up(&left.io, "alice", &Secret::from(PASSWORD), &here()).await.unwrap();
        let token = right.log_in("alice").await;
        assert_eq!(left.opens(&token).await, Some(true));
    });
}

#[test]
fn a_session_that_one_front_ended_opens_nothing_at_another_at_the_next_request() {
    run(async |[left, right], _| {
        left.auth.sign_up(&left.io, "alice", &Secret::from(PASSWORD), &here()).await.unwrap();
        let token = left.log_in("alice").await;
        // By then both fronts have cached it, and the server knows all fronts.
        left.io.sleep(3 * SECOND).await;
        assert_eq!((left.opens(&token).await, right.opens(&token).await), (Some(true), Some(true)));
        let begun = left.io.now();
        left.log_out(&token).await.unwrap();
        assert!(left.io.now() - begun < SECOND, "nobody is waited for who has heard of it");
        assert_eq!((left.opens(&token).await, right.opens(&token).await), (Some(false), Some(false)));
    });
}

#[test]
fn a_change_is_confirmed_when_a_front_that_is_cut_off_has_stopped_trusting_what_it_remembers() {
    run(async |[left, right], _| {
        left.auth.sign_up(&left.io, "alice", &Secret::from(PASSWORD), &here()).await.unwrap();
        let token = left.log_in("alice").await;
        // Until a front has received the change feed once, it treats every cache entry as stale.
        left.io.sleep(3 * SECOND).await;
        assert_eq!(right.opens(&token).await, Some(true));
        right.is_cut.set(true);
        assert_eq!(right.opens(&token).await, Some(true), "it trusts what it remembers for a while");
        left.log_out(&token).await.unwrap();
        // The request hangs, because the front is cut off.
        let asked = right.auth.by_token(&right.io, token.as_bytes());
        let deadline = right.io.deadline();
        deadline.after(SECOND);
        assert!(deadline.within(asked).await.is_err(), "it must not say what it remembers");
    });
}

#[test]
fn a_removed_paths_shares_have_ended_at_every_front_when_their_end_is_confirmed() {
    run(async |[left, right], _| {
        let password = Secret::from(PASSWORD);
        for name in ["alice", "bob"] {
            left.auth.sign_up(&left.io, name, &password, &here()).await.unwrap();
        }
        let alice = left.auth.by_password(&left.io, b"alice", &password, &here()).await.unwrap();
        let share = NewShare {
            path: b"a".to_vec(),
            with: "bob".to_owned(),
            permission: Permission::Read,
            expires: None,
        };
        left.auth.share(&left.io, &alice, share).await.unwrap();
        // Until a front has received the change feed once, it treats every cache entry as stale.
        left.io.sleep(3 * SECOND).await;
        let bob = right.auth.by_password(&right.io, b"bob", &password, &here()).await.unwrap();
        let (_, basis) = right.auth.granted_with_basis(&right.io, &bob, "alice", b"a").await.unwrap();
        right.is_cut.set(true);
        assert!(right.auth.grant_holds(&right.io, &basis), "it trusts the grant for a while");
        left.auth.end_shares(&left.io, alice.account.id, b"a").await.unwrap();
        assert!(!right.auth.grant_holds(&right.io, &basis));
    });
}

#[test]
fn without_the_secret_nothing_is_answered() {
    for seed in seeds(5) {
        let sim = Sim::new(seed, Faults::splits());
        let at = auth_server(&sim, &sim.host("auth"));
        let front = Front::new(&sim, "stranger", &at, "a guess");
        let people = sim.host("people");
        let io = people.io();
        sim.run(&people, async move {
            let signed = front.auth.sign_up(&front.io, "alice", &Secret::from(PASSWORD), &here()).await;
            assert_eq!(signed.unwrap_err(), Error::Unavailable);
            let mut client = Client::new(&io, url(&at));
            let mut request = Request::new("POST", REQUESTS_PATH);
            request.body = Body::Bytes(b"{\"session\":\"00\"}".to_vec());
            assert_eq!(client.send(request).await.unwrap().status().code(), 401);
            let status = client.send(Request::new("GET", "/api/status")).await.unwrap().status();
            assert_eq!(status.code(), 401, "also what the server does");
        });
    }
}

#[test]
fn a_password_that_was_right_is_not_hashed_again_because_the_front_was_cut_off() {
    for seed in seeds(20) {
        let sim = Sim::new(seed, Faults::splits());
        let answering = Auth::local(Box::new(MemoryDirectory::new()), settings());
        let at = serve(&sim, &sim.host("auth"), answering.clone());
        let (front, people) = (Front::new(&sim, "front", &at, SECRET), sim.host("people"));
        sim.run(&people, async move {
            let password = Secret::from(PASSWORD);
            front.auth.sign_up(&front.io, "alice", &password, &here()).await.unwrap();
            // Until a front has received the change feed once, it treats every cache entry as stale.
            front.io.sleep(3 * SECOND).await;
            front.auth.by_password(&front.io, b"alice", &password, &here()).await.unwrap();
            let hashed = answering.hashes();
            front.is_cut.set(true);
            front.io.sleep(3 * SECOND).await;
            front.is_cut.set(false);
            front.auth.by_password(&front.io, b"alice", &password, &here()).await.unwrap();
            assert_eq!(answering.hashes(), hashed);
            let wrong = Secret::from("a guess");
            let result = front.auth.by_password(&front.io, b"alice", &wrong, &here()).await;
            assert_eq!(result.unwrap_err(), Error::WrongCredentials);
        });
        assert_eq!(sim.panics(), Vec::<String>::new());
    }
}

#[test]
fn a_password_that_was_changed_and_changed_back_is_right_at_a_front_that_was_cut_off_meanwhile() {
    run(async |[left, right], _| {
        let (password, other) = (Secret::from(PASSWORD), Secret::from("battery staple"));
        left.auth.sign_up(&left.io, "alice", &password, &here()).await.unwrap();
        left.io.sleep(3 * SECOND).await;
        right.auth.by_password(&right.io, b"alice", &password, &here()).await.unwrap();
        right.is_cut.set(true);
        right.io.sleep(3 * SECOND).await;
        for (old, new) in [(&password, &other), (&other, &password)] {
            let caller = left.auth.by_password(&left.io, b"alice", old, &here()).await.unwrap();
            left.auth.change_password(&left.io, &caller, old, new, &here()).await.unwrap();
        }
        let from = here();
        let again = right.auth.by_password(&right.io, b"alice", &password, &from);
        let (mut again, deadline) = (std::pin::pin!(again), right.io.deadline());
        deadline.after(SECOND);
        assert!(deadline.within(again.as_mut()).await.is_err(), "the front is cut off");
        right.is_cut.set(false);
        again.await.unwrap();
    });
}

/// The limits of the auth server apply to all its fronts together; these fronts have no limits of their
/// own.
#[test]
fn guesses_count_at_all_fronts_together() {
    for seed in seeds(10) {
        let sim = Sim::new(seed, Faults::splits());
        let guarded = Settings { attempts: Some(Attempts::default()), ..settings() };
        let auth = Auth::local(Box::new(MemoryDirectory::new()), guarded);
        let at = serve(&sim, &sim.host("auth"), auth);
        let fronts = ["left", "right"].map(|name| Front::new(&sim, name, &at, SECRET));
        let people = sim.host("people");
        sim.run(&people, async move {
            let [left, right] = &fronts;
            left.auth.sign_up(&left.io, "alice", &Secret::from(PASSWORD), &here()).await.unwrap();
            let budget = Attempts::default().per_name_from_address.count;
            for guess in 0..budget {
                let front = &fronts[guess as usize % 2];
                let result =
                    front.auth.by_password(&front.io, b"alice", &Secret::from("a guess"), &here()).await;
                assert_eq!(result.unwrap_err(), Error::WrongCredentials, "{guess}");
            }
            for front in [left, right] {
                let result =
                    front.auth.by_password(&front.io, b"alice", &Secret::from(PASSWORD), &here()).await;
                assert!(matches!(result, Err(Error::TooManyAttempts { .. })), "{result:?}");
            }
        });
    }
}

/// Token checks have a queue of their own. The front has not cached these tokens.
#[test]
fn guesses_that_wait_are_in_nobodys_way_who_shows_a_token() {
    for seed in seeds(5) {
        let sim = Sim::new(seed, Faults::splits());
        let guarded = Settings { attempts: Some(Attempts::default()), ..settings() };
        let at = serve(&sim, &sim.host("auth"), Auth::local(Box::new(MemoryDirectory::new()), guarded));
        let (front, people) = (Rc::new(Front::new(&sim, "front", &at, SECRET)), sim.host("people"));
        let waiting = Rc::new(Cell::new(0));
        for number in 0..500 {
            let (front, waiting) = (Rc::clone(&front), Rc::clone(&waiting));
            let guess = async move {
                front.io.sleep(10 * SECOND).await;
                waiting.set(waiting.get() + 1);
                let from = Peer::Ip(Ipv4Addr::from_bits(0x0a00_0000 + number).into(), 40_000);
                // The response to a wrong password is delayed on one of many connections.
                let _ = front.auth.by_password(&front.io, b"alice", &Secret::from("a guess"), &from).await;
                waiting.set(waiting.get() - 1);
            };
            sim.spawn(&people, Box::pin(guess));
        }
        sim.run(&people, async move {
            front.auth.sign_up(&front.io, "alice", &Secret::from(PASSWORD), &here()).await.unwrap();
            let tokens = [front.log_in("alice").await, front.log_in("alice").await];
            front.io.sleep((10 * SECOND + SECOND / 20).saturating_sub(front.io.now().since_start())).await;
            for token in tokens {
                let begun = front.io.now();
                assert_eq!(front.opens(&token).await, Some(true));
                // The order tells: the split packets of 500 guesses alone take up to a second here.
                assert!(waiting.get() > 100, "it waited behind the guesses: {} are left", waiting.get());
                assert!(front.io.now() - begun < 2 * SECOND, "{:?}", front.io.now() - begun);
            }
        });
    }
}

#[test]
fn a_server_that_says_nothing_is_given_up_in_a_bounded_time() {
    for seed in seeds(5) {
        let sim = Sim::new(seed, Faults::splits());
        let silent = sim.host("silent");
        let listener = silent.io().listen(&":7070".parse().unwrap()).unwrap();
        let at = listener.address().clone();
        let front = Front::new(&sim, "front", &at, SECRET);
        let people = sim.host("people");
        sim.run(&people, async move {
            let begun = front.io.now();
            assert_eq!(front.opens("pls_0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a").await, None);
            assert!(front.io.now() - begun < 6 * SECOND);
            drop(listener);
        });
    }
}

#[test]
fn a_repeated_logout_is_answered_only_after_every_front_has_applied_it() {
    run(async |[left, right], _| {
        left.auth.sign_up(&left.io, "alice", &Secret::from(PASSWORD), &here()).await.unwrap();
        let token = left.log_in("alice").await;
        left.io.sleep(3 * SECOND).await;
        assert_eq!(right.opens(&token).await, Some(true));
        right.is_cut.set(true);
        let caller = left.auth.by_token(&left.io, token.as_bytes()).await.unwrap();
        let deadline = left.io.deadline();
        deadline.after(SECOND / 10);
        // Aborted before it is confirmed.
        assert!(deadline.within(left.auth.log_out(&left.io, &caller)).await.is_err());
        // The server may have received it, or not.
        let again = left.auth.log_out(&left.io, &caller).await;
        assert!(matches!(again, Ok(()) | Err(Error::NoSession)), "{again:?}");
        assert_eq!(right.opens_now(&token).await, None);
    });
}

#[test]
fn an_operators_request_is_refused_to_a_front() {
    run(async |[left, _], _| {
        assert_eq!(left.auth.accounts(&left.io).await.unwrap_err(), Error::NotAllowed);
    });
}

/// The state of a session, as its client knows it.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Session {
    Open,
    /// A log-out was requested and not confirmed.
    Unknown,
    Ended,
}

/// Random log-ins, log-outs, token checks and cuts at two fronts, compared with the confirmed results.
#[test]
fn a_session_confirmed_as_ended_is_valid_at_no_front_whatever_else_fails() {
    run(async |fronts, mut chance| {
        let here_and_there = [&fronts[0], &fronts[1]];
        fronts[0].auth.sign_up(&fronts[0].io, "alice", &Secret::from(PASSWORD), &here()).await.unwrap();
        let mut sessions: Vec<(String, Session)> = Vec::new();
        for _ in 0..60 {
            let at = chance.index(2);
            let front = here_and_there[at];
            match chance.below(10) {
                0 | 1 if !front.is_cut.get() => {
                    sessions.push((front.log_in("alice").await, Session::Open));
                }
                // Only one front is cut off at a time; the other one continues.
                2 if !here_and_there[1 - at].is_cut.get() => front.is_cut.set(!front.is_cut.get()),
                3 | 4 if !sessions.is_empty() && !front.is_cut.get() => {
                    let index = chance.index(sessions.len());
                    let (token, session) = &mut sessions[index];
                    *session = match front.log_out(token).await {
                        Ok(()) | Err(Error::NoSession) => Session::Ended,
                        Err(_) => Session::Unknown,
                    };
                }
                5 => front.io.sleep(Duration::from_millis(chance.below(3000))).await,
                _ if !sessions.is_empty() => {
                    let index = chance.index(sessions.len());
                    let (token, session) = sessions[index].clone();
                    look(front, &token, session).await;
                }
                _ => {}
            }
        }
    });
}

/// Checks whether a token is valid exactly if its session is open.
async fn look(front: &Front, token: &str, session: Session) {
    let deadline = front.io.deadline();
    deadline.after(5 * SECOND);
    let found = deadline.within(front.opens(token)).await.ok().flatten();
    match session {
        Session::Open if front.is_cut.get() => assert_ne!(found, Some(false)),
        Session::Open => assert_eq!(found, Some(true)),
        Session::Ended => assert_ne!(found, Some(true), "it was confirmed to have ended"),
        Session::Unknown => {}
    }
}

/// Runs `test` with two connection processes of one program, and with the handle of the main process,
/// which has these limits on guesses.
fn run_beside(attempts: Option<Attempts>, test: impl AsyncFn([Front; 2], Auth) + Copy + 'static) {
    for seed in seeds(20) {
        let sim = Sim::new(seed, Faults::splits());
        let auth = Auth::local(Box::new(MemoryDirectory::new()), Settings { attempts, ..settings() });
        let server = AuthServer::for_connection_processes(auth.clone());
        let at = serve_methods(":7070", &sim, &sim.host("program"), server);
        let fronts = ["left", "right"].map(|name| Front::process(&sim, name, &at));
        sim.run(&sim.host("people"), async move { test(fronts, auth).await });
        assert_eq!(sim.panics(), Vec::<String>::new());
    }
}

#[test]
fn a_session_that_ends_in_one_process_ends_at_once_in_its_siblings() {
    run_beside(None, async |[left, right], _| {
        left.auth.sign_up(&left.io, "alice", &Secret::from(PASSWORD), &here()).await.unwrap();
        let token = right.log_in("alice").await;
        assert_eq!((left.opens(&token).await, right.opens(&token).await), (Some(true), Some(true)));
        let shown =
            right.auth.by_password(&right.io, b"alice", &Secret::from(PASSWORD), &here()).await.unwrap();
        let begun = left.io.now();
        left.log_out(&token).await.unwrap();
        assert!(left.io.now() - begun < SECOND, "nobody is waited for, also right after the start");
        assert_eq!((left.opens(&token).await, right.opens(&token).await), (Some(false), Some(false)));
        let caller =
            left.auth.by_password(&left.io, b"alice", &Secret::from(PASSWORD), &here()).await.unwrap();
        assert!(right.auth.renew(&right.io, &shown).await.is_ok());
        let (old, new) = (Secret::from(PASSWORD), Secret::from("another horse"));
        left.auth.change_password(&left.io, &caller, &old, &new, &here()).await.unwrap();
        assert!(matches!(right.auth.renew(&right.io, &shown).await, Err(Error::NoSession)));
    });
}

/// A process keeps its initial settings, and the authentication server may have open sign-up.
#[test]
fn a_closed_sign_up_is_closed_for_processes_started_before_too() {
    for seed in seeds(20) {
        let sim = Sim::new(seed, Faults::splits());
        let (at, host) = (auth_server(&sim, &sim.host("auth")), sim.host("program"));
        let program = Auth::remote(address(&at, SECRET), settings());
        sim.spawn(&host, program.follow_changes(&host.io()).unwrap());
        let server = AuthServer::for_connection_processes(program.clone());
        let at = serve_methods(":7071", &sim, &host, server);
        let process = Front::process(&sim, "process", &at);
        sim.run(&sim.host("people"), async move {
            let sign_up = async |name| {
                let password = Secret::from(PASSWORD);
                process.auth.sign_up(&process.io, name, &password, &here()).await.map(drop)
            };
            assert_eq!(sign_up("alice").await, Ok(()));
            program.set(Settings { sign_up: SignUp::Closed, ..settings() });
            assert_eq!(sign_up("bob").await, Err(Error::SignUpClosed));
        });
        assert_eq!(sim.panics(), Vec::<String>::new());
    }
}

#[test]
fn a_password_is_hashed_once_for_all_processes_that_belong_to_one() {
    run_beside(None, async |[left, right], auth| {
        left.auth.sign_up(&left.io, "alice", &Secret::from(PASSWORD), &here()).await.unwrap();
        let shows = async |front: &Front, password: &str| {
            let password = Secret::from(password);
            front.auth.by_password(&front.io, b"alice", &password, &here()).await.is_ok()
        };
        assert!(shows(&left, PASSWORD).await);
        let hashed = auth.hashes();
        for front in [&right, &left, &right] {
            assert!(shows(front, PASSWORD).await);
        }
        assert_eq!(auth.hashes(), hashed, "it is remembered for all");
        assert!(!shows(&right, "another horse").await);
    });
}

#[test]
fn guesses_are_counted_over_all_processes_that_belong_to_one() {
    run_beside(Settings::default().attempts, async |[left, right], _| {
        left.auth.sign_up(&left.io, "alice", &Secret::from(PASSWORD), &here()).await.unwrap();
        let guess = async |front: &Front| {
            let guessed =
                front.auth.by_password(&front.io, b"alice", &Secret::from("a guess"), &here()).await;
            guessed.map(drop).unwrap_err()
        };
        let mut guesses = 0;
        while guess(&left).await == Error::WrongCredentials {
            guesses += 1;
            assert!(guesses < 1_000, "there is a limit");
        }
        assert!(
            matches!(guess(&right).await, Error::TooManyAttempts { .. }),
            "also where nobody has guessed"
        );
    });
}

#[test]
fn a_process_that_belongs_to_one_finds_out_whether_it_answers_and_orders_nothing() {
    run_beside(None, async |[left, right], _| {
        assert_eq!(left.auth.check(&left.io).await, Ok(()));
        assert_eq!(left.auth.accounts(&left.io).await.unwrap_err(), Error::NotAllowed);
        right.is_cut.set(true);
        assert!(right.auth.check(&right.io).await.is_err());
    });
}
