//! Long work of one account delays that account alone, and ends with its client.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plimsoll_io::sim::Faults;
use plimsoll_io::{Either, join, select};
use plimsoll_proto::classic;
use plimsoll_store::limits::{COPY_SLICE_BYTES, STORE_TRANSFERS_PER_OWNER_MAX};
use plimsoll_tests::accounts::{PASSWORD, settings};
use plimsoll_tests::tree::noise;
use plimsoll_tests::under::{every_seed, simulated};
use plimsoll_tests::{Client, Engine, Ftp, FtpClient, Person, Scenario, Scene, behaviours};

fn scenario() -> Scenario {
    Scenario { accounts: Some(settings()), ..Scenario::default() }
}

/// One of this many seeds runs a behaviour that takes long.
const EVERY: usize = 20;
/// More listings than may wait on a simulated host at a time.
const HOSTILE_CLIENTS: usize = 80;
/// The maximal time of a slice: all that wait take much longer.
const SLICE_TIME_MAX: Duration = Duration::from_secs(2);

/// Runs a behaviour in which each slice of long work takes up to [`SLICE_TIME_MAX`].
fn slowly<F: Future<Output = ()> + 'static>(behaviour: fn(Scene) -> F) {
    let slow = || Faults { offload_delay_max: SLICE_TIME_MAX, ..Faults::none() };
    for seed in every_seed().step_by(EVERY) {
        simulated(seed, slow(), &scenario(), behaviour);
    }
}

/// Sends a request and does not wait for the response.
fn push(client: &mut Client, person: &Person, method: &str, path: &str, fields: &str) {
    let field = person.field();
    client.push(format!("{method} {path} HTTP/1.1\r\nHost: test\r\n{field}{fields}\r\n"));
}

async fn one_accounts_listings_delay_no_other_account(scene: Scene) {
    let (mut alice, mut bob) = (Person::new(&scene, "alice").await, Person::new(&scene, "bob").await);
    for person in [&mut alice, &mut bob] {
        assert_eq!(person.get("/files/?format=json").await.status, 200);
    }
    let mut waiting = Vec::new();
    for _ in 0..HOSTILE_CLIENTS {
        let mut client = scene.connect().await;
        // The account is known by the credentials, and then by the connection that presented them.
        push(&mut client, &alice, "GET", "/files/nothing", "");
        client.answer().await.problem(404);
        push(&mut client, &alice, "GET", "/files/?format=json", "");
        waiting.push(client);
    }
    scene.io.sleep(Duration::from_millis(10)).await;
    let begun = scene.io.now();
    let answer = bob.get("/files/?format=json").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(scene.io.now() - begun <= 2 * SLICE_TIME_MAX, "after {:?}", scene.io.now() - begun);
    // Listings of alice that do not fit into the queue are refused.
    let refused = waiting.pop().unwrap().answer().await;
    assert!(!refused.problem(503).is_empty() && refused.field("Retry-After").is_some());
    // Listings whose clients are gone free their slots for others of alice.
    drop(waiting);
    scene.io.sleep(Duration::from_secs(1)).await;
    assert_eq!(alice.get("/files/?format=json").await.status, 200);
    assert!(scene.io.now() - begun <= 8 * SLICE_TIME_MAX, "after {:?}", scene.io.now() - begun);
}

#[test]
fn an_account_with_many_listings_is_refused_and_others_are_served() {
    slowly(one_accounts_listings_delay_no_other_account);
}

/// The copies that were aborted in the middle, over all seeds.
static ABORTED: AtomicUsize = AtomicUsize::new(0);

const TO_COPY: &str = "Destination: /files/copy\r\n";

async fn a_large_copy_is_aborted_when_its_client_is_gone(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    assert_eq!(alice.put("/files/small", "small").await.status, 201);
    let large = vec![7; usize::try_from(2 * COPY_SLICE_BYTES + 1).unwrap()];
    scene.write_home("alice", "large", &large);
    let mut gone = scene.connect().await;
    push(&mut gone, &alice, "COPY", "/files/large", TO_COPY);
    let is_complete = || scene.home("alice").contains_key("copy");
    scene
        .until_every(Duration::from_millis(20), || !scene.pending("alice").is_empty() || is_complete())
        .await;
    if is_complete() {
        // This seed's slices took no time: there is nothing to abort.
        return;
    }
    // A part of it has been copied by now.
    drop(gone);
    ABORTED.fetch_add(1, Ordering::Relaxed);
    scene.until_every(Duration::from_millis(100), || scene.pending("alice").is_empty()).await;
    let home = scene.home("alice");
    assert_eq!(home.keys().collect::<Vec<_>>(), ["large", "small"]);
    // Its slot is free, and so is the space that it had reserved.
    let copied = alice.ask("COPY", "/files/small", TO_COPY, "").await;
    assert_eq!(copied.status, 201, "{}", copied.text());
}

#[test]
fn an_aborted_copy_leaves_nothing() {
    slowly(a_large_copy_is_aborted_when_its_client_is_gone);
    assert!(ABORTED.load(Ordering::Relaxed) > 0, "all copies were complete at once");
}

async fn a_copy_of_several_slices_is_whole(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    assert_eq!(alice.put("/files/a", "a").await.status, 201);
    let large: Vec<u8> = (0..2 * COPY_SLICE_BYTES + 5).map(|at| u8::try_from(at % 251).unwrap()).collect();
    scene.write_home("alice", "large", &large);
    for target in ["/files/copy", "/files/again"] {
        let fields = format!("Destination: {target}\r\n");
        assert_eq!(alice.ask("COPY", "/files/large", &fields, "").await.status, 201);
    }
    let home = scene.home("alice");
    assert!(home["copy"].as_ref() == Some(&large) && home["again"].as_ref() == Some(&large));
}

#[test]
fn a_large_file_is_copied_whole() {
    slowly(a_copy_of_several_slices_is_whole);
    plimsoll_tests::under(Engine::Epoll, scenario, a_copy_of_several_slices_is_whole);
}

async fn a_client_that_sends_nothing_more_gets_its_listing_and_its_copy(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    assert_eq!(alice.put("/files/a", "a").await.status, 201);
    for (method, path, fields, status) in
        [("GET", "/files/?format=json", "", 200), ("COPY", "/files/a", TO_COPY, 201)]
    {
        let mut client = scene.connect().await;
        push(&mut client, &alice, method, path, fields);
        client.stream.tx.finish();
        assert_eq!(client.answer().await.status, status, "{method}");
    }
}

async fn two_accounts_list_and_copy_at_the_same_time(scene: Scene) {
    let (alice, bob) = (Person::new(&scene, "alice").await, Person::new(&scene, "bob").await);
    let work = async |mut person: Person| {
        assert_eq!(person.put("/files/a", "a").await.status, 201);
        assert_eq!(person.ask("COPY", "/files/a", TO_COPY, "").await.status, 201);
        let listing = person.get("/files/?format=json").await.json();
        assert_eq!(listing["entries"].as_array().map(Vec::len), Some(2));
    };
    join(work(alice), work(bob)).await;
}

async fn a_listing_that_is_not_waited_for_disturbs_nothing(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for pause in 0..3 {
        let mut client = scene.connect().await;
        push(&mut client, &alice, "GET", "/files/?format=json", "");
        let pause = scene.io.sleep(Duration::from_millis(pause));
        assert!(matches!(select(pause, std::future::pending::<()>()).await, Either::Left(())));
        drop(client);
        assert_eq!(alice.get("/files/?format=json").await.status, 200);
    }
}

behaviours!(scenario and remote and tls;
    a_client_that_sends_nothing_more_gets_its_listing_and_its_copy,
    two_accounts_list_and_copy_at_the_same_time,
    a_listing_that_is_not_waited_for_disturbs_nothing,
);

/// Bytes of a file that does not fit into the buffers between server and client.
const LARGE_BYTES: usize = 300_000;

/// Runs a behaviour once with a remote store, over FTP and classic too.
fn over_all_protocols<F: Future<Output = ()> + 'static>(behaviour: fn(Scene) -> F) {
    let (ftp, classic) = (Some(Ftp::default()), Some(classic::Limits::default()));
    let scenario = Scenario { remote: true, ftp, classic, ..scenario() };
    for seed in every_seed().take(1) {
        simulated(seed, Faults::none(), &scenario, behaviour);
    }
}

/// Creates both accounts, each with a file `large`.
async fn with_large_files(scene: &Scene) -> Vec<u8> {
    let large = noise(1, LARGE_BYTES);
    for name in ["alice", "bob"] {
        let mut person = Person::new(scene, name).await;
        assert_eq!(person.put("/files/large", &large).await.status, 201);
    }
    large
}

// All clients have the same address: only the account tells alice's transfers from bob's.

async fn many_slow_retrievals_of_one_account(scene: Scene) {
    let large = with_large_files(&scene).await;
    let mut started = Vec::new();
    for _ in 0..STORE_TRANSFERS_PER_OWNER_MAX {
        let mut client = FtpClient::of(&scene, "alice").await;
        let data = client.begin("RETR large").await;
        started.push((client, data));
    }
    let mut alice = FtpClient::of(&scene, "alice").await;
    alice.refused("RETR large").await.expect(450);
    assert!(FtpClient::of(&scene, "bob").await.retr("large").await == large);
    drop(started);
    assert!(alice.retr("large").await == large);
}

#[test]
fn an_account_that_retrieves_many_files_slowly_leaves_transfers_to_others() {
    over_all_protocols(many_slow_retrievals_of_one_account);
}

/// Requests an account's large file over classic. Nothing receives the response yet.
async fn request_over_classic(scene: &Scene, name: &str) -> Client {
    let stream = scene.io.connect(scene.classic()).await.expect("the server accepts connections");
    let mut client = Client::new(&scene.io, stream);
    client.push(format!("get:{name}:{PASSWORD}\nlarge\n"));
    client
}

async fn many_slow_classic_downloads_of_one_account(scene: Scene) {
    let large = with_large_files(&scene).await;
    let whole = [format!("ok\nok {LARGE_BYTES}\n").as_bytes(), &large[..]].concat();
    let mut started = Vec::new();
    for _ in 0..STORE_TRANSFERS_PER_OWNER_MAX {
        let mut client = request_over_classic(&scene, "alice").await;
        assert_eq!(client.body(6).await.unwrap(), b"ok\nok ");
        started.push(client);
    }
    let refused = request_over_classic(&scene, "alice").await.rest().await.unwrap();
    assert_eq!(refused, b"ok\nerror: too much is going on; try again shortly\n");
    assert!(request_over_classic(&scene, "bob").await.rest().await.unwrap() == whole);
    drop(started);
    assert!(request_over_classic(&scene, "alice").await.rest().await.unwrap() == whole);
}

#[test]
fn an_account_that_downloads_many_files_slowly_over_classic_leaves_transfers_to_others() {
    over_all_protocols(many_slow_classic_downloads_of_one_account);
}
