//! A store and its fronts, each on a host of its own, over the simulator.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod by_hand;
mod fair;
mod listed;
#[path = "../../../operations/tests/operations/memory.rs"]
mod memory;
mod spooled;

use std::collections::BTreeMap;
use std::path::Path as Folder;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_client::http::{Client, Request, Url};
use plimsoll_content::{HotCache, HotSettings, Source};
use plimsoll_io::sim::{Chance, Faults, Host, Moment, Sim, SimDisk, Unsynced, seeds};
use plimsoll_io::{Address, Existing, File, Fs as _, Io, JobOwner, Lease, Networks, Setup};
use plimsoll_proto::Current;
use plimsoll_proto::http::{
    AccessLog, Http, Limits, Load, Readiness, Routes, RpcServer, Snapshot, StatusPage, Tiers,
};
use plimsoll_rpc::{Secret, SecretCheck, ServerAddress};
use plimsoll_store::backend::RemoteFile;
use plimsoll_store::limits::{
    BUFFERED_TIME, STORE_SILENT_TIME, STORE_TRANSFERS_MAX, STORE_TRANSFERS_PER_OWNER_MAX,
};
use plimsoll_store::remote::{FILES, LISTINGS, REQUESTS, StoreAddress};
use plimsoll_store::{
    Begin, Condition, End, Error, Expected, Home, Path, Quota, RemovalKind, Settings, Store, Terms,
};
use plimsoll_web::with_store;

use memory::MemoryStore;

const SECRET: &str = "only the tiers know";
const DATA: &str = "/data";
const SECOND: Duration = Duration::from_secs(1);

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

/// Serves the store tier on `host`.
fn serve(sim: &Sim, host: &Host) -> Address {
    serve_at(sim, host, 7071)
}

fn serve_at(sim: &Sim, host: &Host, port: u16) -> Address {
    host.disk().mkdir(DATA).unwrap();
    serve_store(sim, host, port, open(host.disk()))
}

/// Serves files in memory on `host`.
fn serve_memory(sim: &Sim, host: &Host) -> Address {
    serve_store(sim, host, 7071, Store::of(Arc::<MemoryStore>::default()))
}

fn serve_store(sim: &Sim, host: &Host, port: u16, store: Store) -> Address {
    let server = RpcServer::new(SecretCheck::new(Secret::from(SECRET)), "a test", "test");
    let server = with_store(server, store);
    let service = Routes::with_api(Vec::new(), status_page(), Arc::new(server));
    let current = Current::new(Snapshot { limits: Limits::default(), proxies: Networks::default(), service });
    let hot = HotCache::new(HotSettings { bytes_max: 1 << 20, files_max: 16, time: SECOND });
    let setup: Setup = Arc::new(move |io| {
        let (current, log) = (Arc::clone(&current), AccessLog::new(None));
        Rc::new(Http::new(io, current, log, Arc::default(), Arc::clone(&hot)))
    });
    sim.serve(host, &format!(":{port}").parse().unwrap(), &setup).unwrap()
}

fn open(disk: &Arc<SimDisk>) -> Store {
    Store::open(&**disk, Folder::new(DATA), Settings::default()).unwrap()
}

fn url(at: &Address) -> Url {
    format!("http://{at}").parse().unwrap()
}

/// A front, and its handle of alice's home.
struct Front {
    io: Io,
    home: Home,
}

impl Front {
    async fn new(host: &Host, at: &Address, secret: &str) -> Front {
        Front::of(host, at, secret, (1, "alice")).await
    }

    async fn of(host: &Host, at: &Address, secret: &str, owner: (i64, &str)) -> Front {
        Front::on(host.io(), at, secret, owner).await
    }

    async fn on(io: Io, at: &Address, secret: &str, (account, name): (i64, &str)) -> Front {
        Front::spooling(io, at, secret, (account, name), None).await
    }

    async fn spooling(
        io: Io,
        at: &Address,
        secret: &str,
        (account, name): (i64, &str),
        spool: Option<File>,
    ) -> Front {
        let server = ServerAddress { url: url(at), secret: Secret::from(secret), resolve: None, tls: None };
        let address = StoreAddress { server, directory: String::new(), spool };
        let home = Store::remote(address).home(&io, account, name).await.unwrap();
        Front { io, home }
    }

    async fn put(&self, to: &str, bytes: &[u8], condition: Condition) -> Result<(), Error> {
        let terms = Terms { to: path(to), condition, quota: Quota::default() };
        let mut upload = self.home.upload(&self.io, terms, Expected::default()).await?;
        for piece in bytes.chunks(10_000) {
            upload.write(Lease::owned(piece.to_vec())).await?;
        }
        upload.commit().await.map(drop)
    }

    /// Returns the same front, for requests of this account.
    fn of_account(&self, account: i64) -> Front {
        Front { io: self.io.for_owner(JobOwner::account(account)), home: self.home.clone() }
    }

    async fn get(&self, from: &str) -> Result<Vec<u8>, Error> {
        let mut contents = remote_file(self, from).await?;
        let mut bytes = Vec::new();
        while let Some(lease) = contents.next().await.map_err(|_| Error::Away)? {
            bytes.extend_from_slice(&lease);
        }
        Ok(bytes)
    }

    async fn remove(&self, path_of: &str) -> Result<(), Error> {
        self.home.remove(&self.io, path(path_of), RemovalKind::File, Condition::none()).await.map(drop)
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        let end = |at: &str| End { home: self.home.clone(), path: path(at), quota: Quota::default() };
        end(from).rename(&self.io, end(to), Existing::Replaced).await.map(drop)
    }
}

/// Opens a file of a front's home, which is received while it is read.
async fn remote_file(front: &Front, path_of: &str) -> Result<Box<RemoteFile>, Error> {
    match plimsoll_content::open(&front.io, &front.home.location(path(path_of)), 0).await? {
        (_, Source::Remote(file)) => Ok(file),
        (_, Source::Local(_)) => panic!("the home is remote"),
    }
}

fn path(text: &str) -> Path {
    Path::parse(text.as_bytes()).unwrap()
}

/// Returns bytes that differ for each number.
fn noise(number: u64, length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| (number.wrapping_mul(31).wrapping_add(at * 7) % 251) as u8).collect()
}

/// Runs `test` with a store and two fronts that know it.
fn run(faults: fn() -> Faults, test: impl AsyncFn([Front; 2], Host, Chance) + Copy + 'static) {
    run_with(20, faults, test);
}

/// As [`run`], also with a store in memory.
fn run_over_each(test: impl AsyncFn([Front; 2], Host, Chance) + Copy + 'static) {
    run(Faults::splits, test);
    run_over(20, Faults::splits, serve_memory, test);
}

/// As [`run`], with this many seeds.
fn run_with(
    count: u64,
    faults: fn() -> Faults,
    test: impl AsyncFn([Front; 2], Host, Chance) + Copy + 'static,
) {
    run_over(count, faults, serve, test);
}

/// Runs `test` with the store that `serve` serves.
fn run_over(
    count: u64,
    faults: fn() -> Faults,
    serve: fn(&Sim, &Host) -> Address,
    test: impl AsyncFn([Front; 2], Host, Chance) + Copy + 'static,
) {
    for seed in seeds(count) {
        let sim = Sim::new(seed, faults());
        let store = sim.host("store");
        let at = serve(&sim, &store);
        let (left, right, people) = (sim.host("left"), sim.host("right"), sim.host("people"));
        sim.run(&people, async move {
            let fronts = [Front::new(&left, &at, SECRET).await, Front::new(&right, &at, SECRET).await];
            test(fronts, store, Chance::new(seed)).await;
        });
        assert_eq!(sim.panics(), Vec::<String>::new());
    }
}

#[test]
fn a_file_stored_at_one_front_is_found_at_another() {
    run_over_each(async |[left, right], _, _| {
        for (name, length) in [("empty", 0), ("small", 10), ("large", 300_000)] {
            left.put(name, &noise(1, length), Condition::none()).await.unwrap();
            assert_eq!(right.get(name).await.unwrap(), noise(1, length), "{name}");
        }
        left.rename("small", "renamed").await.unwrap();
        assert!(matches!(right.get("small").await, Err(Error::NotFound)));
        right.remove("renamed").await.unwrap();
        assert!(matches!(left.get("renamed").await, Err(Error::NotFound)));
        let held = [left.home.usage(&left.io).await.unwrap(), right.home.usage(&right.io).await.unwrap()];
        let trash = left.home.trash_info(&left.io).await.unwrap().usage;
        assert_eq!((held[0], held[0].files - trash.files), (held[1], 2));
    });
}

#[test]
fn connections_that_are_kept_are_for_the_store_that_they_lead_to() {
    for seed in seeds(5) {
        let sim = Sim::new(seed, Faults::splits());
        let stores =
            [("one", 7071), ("other", 7072)].map(|(name, port)| serve_at(&sim, &sim.host(name), port));
        let people = sim.host("people");
        sim.run(&people.clone(), async move {
            // One thread, one connection pool.
            let io = people.io();
            let one = Front::on(io.clone(), &stores[0], SECRET, (1, "alice")).await;
            let other = Front::on(io, &stores[1], SECRET, (1, "alice")).await;
            one.put("a", b"a", Condition::none()).await.unwrap();
            assert!(matches!(other.get("a").await, Err(Error::NotFound)));
            assert_eq!(one.get("a").await.unwrap(), b"a");
        });
    }
}

#[test]
fn a_store_whose_disk_takes_long_is_waited_for() {
    let slow = || Faults { offload_delay_max: 4 * STORE_SILENT_TIME, ..Faults::none() };
    run_with(5, slow, async |[left, _], _, _| {
        let begun = left.io.now();
        for (name, length) in [("a", 5), ("b", 500_000)] {
            left.put(name, &noise(1, length), Condition::none()).await.unwrap();
        }
        assert_eq!(left.home.usage(&left.io).await.unwrap().files, 2);
        assert!(left.io.now() > begun + 2 * STORE_SILENT_TIME, "it did take long");
    });
}

#[test]
fn a_store_whose_disk_takes_long_while_a_client_pauses_is_waited_for() {
    let slow = || Faults { offload_delay_max: 4 * STORE_SILENT_TIME, ..Faults::none() };
    run_with(5, slow, async |[left, _], _, _| {
        let Front { home, io } = &left;
        let terms = Terms { to: path("a"), condition: Condition::none(), quota: Quota::default() };
        let mut upload = home.upload(io, terms, Expected::default()).await.unwrap();
        let sent = noise(1, 300_000);
        for part in sent.chunks(100_000) {
            upload.write(Lease::owned(part.to_vec())).await.unwrap();
            io.sleep(2 * BUFFERED_TIME).await;
        }
        upload.commit().await.unwrap();
        assert_eq!(left.get("a").await.unwrap(), sent);
    });
}

#[test]
fn a_prepared_upload_gets_the_modification_time_of_its_commit() {
    run_with(5, Faults::splits, async |[front, _], _, _| {
        let Front { home, io } = &front;
        let terms = Terms { to: path("a"), condition: Condition::none(), quota: Quota::default() };
        let mut upload = home.upload(io, terms, Expected::default()).await.unwrap();
        upload.write(Lease::owned(noise(1, 100_000))).await.unwrap();
        upload.prepare().await.unwrap();
        upload.set_modified(SECOND);
        assert_eq!(upload.commit().await.unwrap().stat.modified, SECOND);
        assert_eq!(home.stat(io, &path("a")).await.unwrap().modified, SECOND);
    });
}

/// Starts downloads of an account that last until they are dropped, because nothing receives their bytes.
async fn transfers(front: &Front, account: i64, of: &str, count: usize) -> Vec<Box<RemoteFile>> {
    let front = front.of_account(account);
    let mut going = Vec::new();
    for _ in 0..count {
        going.push(remote_file(&front, of).await.unwrap());
    }
    going
}

#[test]
fn an_account_that_takes_many_files_slowly_leaves_transfers_to_others() {
    run_with(1, Faults::none, async |[left, _], _, _| {
        left.put("large", &noise(1, 200_000), Condition::none()).await.unwrap();
        let going = transfers(&left, 7, "large", STORE_TRANSFERS_PER_OWNER_MAX).await;
        assert!(matches!(left.of_account(7).get("large").await, Err(Error::Busy)));
        assert_eq!(left.of_account(8).get("large").await.unwrap().len(), 200_000);
        drop(going);
        assert_eq!(left.of_account(7).get("large").await.unwrap().len(), 200_000);
    });
}

#[test]
fn slow_transfers_delay_other_transfers_and_no_request() {
    run_with(1, Faults::none, async |[left, right], _, _| {
        left.put("large", &noise(1, 200_000), Condition::none()).await.unwrap();
        let mut going = Vec::new();
        for account in 1..=(STORE_TRANSFERS_MAX / STORE_TRANSFERS_PER_OWNER_MAX) as i64 {
            going.extend(transfers(&left, account, "large", STORE_TRANSFERS_PER_OWNER_MAX).await);
        }
        assert!(matches!(left.get("large").await, Err(Error::Busy)));
        assert!(matches!(left.put("another", b"a", Condition::none()).await, Err(Error::Busy)));
        assert_eq!(left.home.usage(&left.io).await.unwrap().files, 1);
        left.rename("large", "renamed").await.unwrap();
        assert_eq!(right.get("renamed").await.unwrap().len(), 200_000, "another front has turns of its own");
        // A waiting download gets the slot of one that ends; an aborted wait loses no slot.
        for _ in 0..3 {
            let deadline = left.io.deadline();
            deadline.after(SECOND);
            assert!(deadline.within(left.get("renamed")).await.is_err());
            let ending = async {
                left.io.sleep(SECOND).await;
                going.pop();
            };
            let (got, ()) = plimsoll_io::join(left.get("renamed"), ending).await;
            assert_eq!(got.unwrap().len(), 200_000);
            going.extend(transfers(&left, 9, "renamed", 1).await);
        }
    });
}

#[test]
fn of_two_fronts_that_add_the_same_file_one_is_refused() {
    run_over_each(async |[left, right], _, _| {
        let new_only = || Condition::none().and_new();
        let (bytes, other) = (noise(1, 50_000), noise(2, 50_000));
        let both = plimsoll_io::join(left.put("a", &bytes, new_only()), right.put("a", &other, new_only()));
        let (first, second) = both.await;
        let expected = if first.is_ok() { bytes } else { other };
        assert!(first.is_ok() != second.is_ok(), "{first:?} {second:?}");
        assert!(matches!(first.and(second), Err(Error::Precondition)));
        assert_eq!(left.get("a").await.unwrap(), expected);
    });
}

#[test]
fn a_quota_is_weighed_at_the_store_for_all_fronts() {
    run_over_each(async |[left, right], _, _| {
        let quota = Quota { bytes: Some(100), files: None, keeps_trash: false };
        let terms = |to: &str| Terms { quota, ..Terms::any(path(to), quota) };
        left.put("a", &noise(1, 60), Condition::none()).await.unwrap();
        let mut upload = right.home.upload(&right.io, terms("b"), Expected::default()).await.unwrap();
        let written = upload.write(Lease::owned(noise(2, 60))).await;
        let ended = match written {
            Ok(()) => upload.commit().await.map(drop),
            Err(error) => Err(error),
        };
        assert!(matches!(ended, Err(Error::Quota)), "{ended:?}");
    });
}

#[test]
fn an_upload_to_be_refused_is_refused_before_its_first_byte() {
    run_over_each(async |[left, _], _, _| {
        let begin = async |to: &str, condition| {
            let terms = Terms { to: path(to), condition, quota: Quota::default() };
            left.home.upload(&left.io, terms, Expected::default()).await.err()
        };
        left.put("a", b"a", Condition::none()).await.unwrap();
        assert!(matches!(begin("a", Condition::none().and_new()).await, Some(Error::Precondition)));
        assert!(matches!(begin("no/folder", Condition::none()).await, Some(Error::NoFolder)));
        let words = "If-Match: \"another\"\r\n";
        // The store checks the header lines; the front's own test does not count.
        let condition = Condition::new(words, |_| true);
        assert!(matches!(begin("a", condition).await, Some(Error::Precondition)));
    });
}

#[test]
fn an_upload_dropped_by_a_front_leaves_nothing_and_a_kept_one_can_be_resumed() {
    run(Faults::splits, async |[left, right], store, _| {
        let terms = || Terms::any(path("a"), Quota::default());
        let mut dropped = left.home.upload(&left.io, terms(), Expected::default()).await.unwrap();
        dropped.write(Lease::owned(noise(1, 100_000))).await.unwrap();
        drop(dropped);
        let mut kept = left.home.upload_from(&left.io, terms(), Begin::Start, true).await.unwrap();
        kept.write(Lease::owned(noise(2, 100_000))).await.unwrap();
        kept.abort().await;
        let mut again =
            right.home.upload_from(&right.io, terms(), Begin::EndAt(100_000), true).await.unwrap();
        assert_eq!(again.start_offset(), 100_000);
        again.write(Lease::owned(noise(2, 100_001)[100_000..].to_vec())).await.unwrap();
        again.commit().await.unwrap();
        assert_eq!(left.get("a").await.unwrap(), noise(2, 100_001));
        left.io.sleep(SECOND).await;
        assert_eq!(pending(store.disk()), 0);
    });
}

/// Returns the number of entries of alice's pending folder, without her trash.
fn pending(disk: &Arc<SimDisk>) -> usize {
    let folder = disk.open_root(Folder::new("/data/accounts/alice/pending")).unwrap();
    let names = disk.names(&folder, usize::MAX).unwrap();
    names.iter().filter(|entry| entry.name != b"trash").count()
}

/// The possible contents of a file: the confirmed ones, and those of later unconfirmed changes.
#[derive(Default)]
struct PossibleContents {
    confirmed: Option<Vec<u8>>,
    perhaps: Vec<Option<Vec<u8>>>,
}

impl PossibleContents {
    fn note(&mut self, outcome: &Result<(), Error>, now: Option<Vec<u8>>) {
        match outcome {
            Ok(()) => (self.confirmed, self.perhaps) = (now, Vec::new()),
            // The outcome is unknown.
            Err(Error::Away | Error::Failed(_)) => self.perhaps.push(now),
            Err(_) => {}
        }
    }

    fn may_be(&self, found: &Option<Vec<u8>>) -> bool {
        *found == self.confirmed || self.perhaps.contains(found)
    }
}

/// Stores and removes files at random at two fronts.
async fn work(
    fronts: &[Front; 2],
    chance: &mut Chance,
    known: &mut BTreeMap<&'static str, PossibleContents>,
    steps: u64,
) {
    for number in 0..steps {
        let (front, name) = (&fronts[chance.index(2)], ["a", "b", "c"][chance.index(3)]);
        let file = known.entry(name).or_default();
        if chance.below(4) == 0 {
            let removed = match front.remove(name).await {
                Err(Error::NotFound) => Ok(()),
                other => other,
            };
            file.note(&removed, None);
        } else {
            let bytes = noise(number, [0, 7, 70_000, 200_000][chance.index(4)]);
            file.note(&front.put(name, &bytes, Condition::none()).await, Some(bytes));
        }
        if !file.perhaps.is_empty() {
            // An aborted change may still complete.
            front.io.sleep(SECOND).await;
        }
        let found = match fronts[chance.index(2)].get(name).await {
            Ok(bytes) => Some(bytes),
            Err(Error::NotFound) => None,
            Err(_) => continue,
        };
        assert!(file.may_be(&found), "{name} is {:?}", found.map(|bytes| bytes.len()));
    }
}

#[test]
fn a_read_finds_a_confirmed_or_an_unconfirmed_change_whatever_connections_fail() {
    run(
        || Faults::resets(5),
        async |fronts, store, mut chance| {
            let mut known = BTreeMap::new();
            work(&fronts, &mut chance, &mut known, 20).await;
            // An aborted upload is cleaned up when its connection has ended at the store, too.
            fronts[0].io.sleep(100 * SECOND).await;
            assert_eq!(pending(store.disk()), 0);
        },
    );
}

#[test]
fn a_confirmed_change_survives_a_power_cut_of_the_store_at_any_moment() {
    for seed in seeds(100) {
        let sim = Sim::new(seed, Faults::splits());
        let store = sim.host("store");
        let at = serve(&sim, &store);
        let (left, right, people) = (sim.host("left"), sim.host("right"), sim.host("people"));
        let mut when = Chance::new(!seed);
        let moment = if when.below(2) == 0 { Moment::Before } else { Moment::After };
        store.disk().cut_at(store.disk().calls() + 1 + when.below(60), moment);
        let known = sim.run(&people, async move {
            let fronts = [Front::new(&left, &at, SECRET).await, Front::new(&right, &at, SECRET).await];
            let (mut known, mut chance) = (BTreeMap::new(), Chance::new(seed));
            work(&fronts, &mut chance, &mut known, 8).await;
            known
        });
        let disk = store.disk().after_power_cut(Unsynced::Drawn(seed));
        for (name, file) in known {
            let found = disk.read(format!("/data/accounts/alice/files/{name}")).ok();
            assert!(file.may_be(&found), "seed {seed}: {name} is {:?}", found.map(|bytes| bytes.len()));
        }
    }
}

#[test]
fn a_home_is_opened_for_the_account_whose_it_was_first_and_for_no_other() {
    for seed in seeds(5) {
        let sim = Sim::new(seed, Faults::splits());
        let store = sim.host("store");
        let at = serve(&sim, &store);
        let people = sim.host("people");
        sim.run(&people.clone(), async move {
            let of = |owner| Front::of(&people, &at, SECRET, owner);
            of((1, "alice")).await.put("a", b"a", Condition::none()).await.unwrap();
            // Another account number with the same name, and another name with the same number: accounts
            // of other fronts.
            for owner in [(2, "alice"), (1, "bob")] {
                let stranger = of(owner).await;
                assert!(matches!(stranger.get("a").await, Err(Error::Denied(_))), "{owner:?}");
                let put = stranger.put("b", b"b", Condition::none()).await;
                assert!(matches!(put, Err(Error::Denied(_))), "{owner:?}");
            }
            assert_eq!(of((1, "alice")).await.get("a").await.unwrap(), b"a");
            of((3, "carol")).await.put("c", b"c", Condition::none()).await.unwrap();
        });
    }
}

#[test]
fn a_store_that_says_nothing_is_given_up_in_a_bounded_time() {
    for seed in seeds(5) {
        let sim = Sim::new(seed, Faults::splits());
        let silent = sim.host("silent");
        let listener = silent.io().listen(&":7071".parse().unwrap()).unwrap();
        let at = listener.address().clone();
        let people = sim.host("people");
        let io = people.io();
        sim.run(&people.clone(), async move {
            let front = Front::new(&people, &at, SECRET).await;
            let begun = io.now();
            assert!(matches!(front.put("a", b"a", Condition::none()).await, Err(Error::Away)));
            assert!(matches!(front.get("a").await, Err(Error::Away)));
            assert!(io.now() - begun < 200 * SECOND);
            drop(listener);
        });
    }
}

#[test]
fn without_the_secret_nothing_is_answered() {
    for seed in seeds(5) {
        let sim = Sim::new(seed, Faults::splits());
        let at = serve(&sim, &sim.host("store"));
        let people = sim.host("people");
        let io = people.io();
        sim.run(&people.clone(), async move {
            let stranger = Front::new(&people, &at, "a guess").await;
            assert!(matches!(stranger.put("a", b"a", Condition::none()).await, Err(Error::Away)));
            assert!(matches!(stranger.get("a").await, Err(Error::Away)));
            assert!(matches!(stranger.home.usage(&io).await, Err(Error::Away)));
            let mut client = Client::new(&io, url(&at));
            for (method, target) in [
                ("POST", REQUESTS),
                ("POST", LISTINGS),
                ("GET", FILES),
                ("PUT", FILES),
                ("GET", "/api/status"),
            ] {
                let status = client.send(Request::new(method, target)).await.unwrap().status();
                assert_eq!(status.code(), 401, "{method} {target}");
            }
        });
    }
}
