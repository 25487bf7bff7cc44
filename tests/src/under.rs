//! Runs a behaviour under an engine: a real server on loopback, or a simulated one, once for each seed.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_channel::{Bodies, Connector, Settings};
use plimsoll_engine::{
    Bound, Connections, EngineKind, Plan, SystemFs, WhenFull, bind, block_on, check_ring, serve,
};
use plimsoll_io::sim::{Faults, Host, Sim, seeds};
use plimsoll_io::{Address, Cells, Fs, Io, Setup, Stop};
use plimsoll_proto::{classic, ftp, http};

use crate::accounts::{Accounts, open_spool, open_store, store_at, store_server};
use crate::counted::counted;
use crate::forked;
use crate::ftp::{FtpTls, ftp as ftp_setup};
use crate::proxy::proxy_of;
use crate::scene::{Disk, Protocol, SIMULATED_DATA, SIMULATED_ROOT, Scenario, Scene};
use crate::service::{self, ServerState};
use crate::skips::{Need, skip};
use crate::tls::pinned_connector;

/// The engine that a behaviour runs under.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Process,
    Epoll,
    Thread,
    Pool,
    Uring,
    Simulator,
}

/// Seeds of the simulator on each commit; `PLIMSOLL_SEEDS` overrides it.
const SEEDS: u64 = 200;

/// One of this many seeds also runs with a remote store, or runs a behaviour of TLS itself: cryptography
/// takes most of its time.
const APART_EVERY: usize = 10;

/// One of this many seeds runs a behaviour that transfers megabytes.
const LARGE_EVERY: usize = 20;

/// One of this many seeds runs over TLS.
const OVER_TLS_EVERY: usize = 100;

/// Workers of a pool: more than any behaviour has connections open at a time.
const WORKERS: usize = 128;

/// No behaviour takes longer than this on a real engine, also on a slow machine.
const TIME_MAX: Duration = Duration::from_secs(90);

/// Runs `behaviour` against `scenario` under `engine`.
pub fn under<F: Future<Output = ()> + 'static>(
    engine: Engine,
    scenario: fn() -> Scenario,
    behaviour: fn(Scene) -> F,
) {
    let scenario = scenario();
    let step = if scenario.is_large {
        LARGE_EVERY
    } else if scenario.is_encrypted {
        APART_EVERY
    } else {
        1
    };
    run(engine, &scenario, step, behaviour);
}

/// As [`under`], with clients that reach the server, or the proxy, over TLS. It runs in the simulator with
/// fewer seeds; FTP, which encrypts in the middle of a session, with more of them.
pub fn over_tls<F: Future<Output = ()> + 'static>(
    engine: Engine,
    scenario: fn() -> Scenario,
    behaviour: fn(Scene) -> F,
) {
    let scenario = scenario().over_tls();
    let step = if scenario.ftp.is_some() { APART_EVERY } else { OVER_TLS_EVERY };
    run(engine, &scenario, step, behaviour);
}

/// Runs `behaviour` under `engine`; in the simulator, once for each `step`th seed.
fn run<F: Future<Output = ()> + 'static>(
    engine: Engine,
    scenario: &Scenario,
    step: usize,
    behaviour: fn(Scene) -> F,
) {
    match engine {
        Engine::Process => forked::for_real(scenario, behaviour),
        Engine::Epoll => for_real(engine, EngineKind::Epoll, scenario, behaviour),
        Engine::Thread => for_real(engine, EngineKind::Thread, scenario, behaviour),
        Engine::Pool => for_real(engine, EngineKind::Pool, scenario, behaviour),
        Engine::Uring if has_a_ring() => for_real(engine, EngineKind::Uring, scenario, behaviour),
        Engine::Uring => {}
        Engine::Simulator => {
            for seed in every_seed().step_by(step) {
                simulated(seed, Faults::splits(), scenario, behaviour);
            }
        }
    }
}

/// Runs `behaviour` against `scenario` with a remote store for the accounts' files. It runs in the
/// simulator with fewer seeds, and with the feature `every-engine` also on a real engine.
pub fn remote<F: Future<Output = ()> + 'static>(scenario: fn() -> Scenario, behaviour: fn(Scene) -> F) {
    with_a_store(&Scenario { remote: true, ..scenario() }, behaviour);
}

/// As [`remote`], with each upload buffered at the front until it is complete.
pub fn spooled<F: Future<Output = ()> + 'static>(scenario: fn() -> Scenario, behaviour: fn(Scene) -> F) {
    with_a_store(&Scenario { remote: true, spool: true, ..scenario() }, behaviour);
}

fn with_a_store<F: Future<Output = ()> + 'static>(scenario: &Scenario, behaviour: fn(Scene) -> F) {
    for seed in every_seed().step_by(APART_EVERY) {
        simulated(seed, Faults::splits(), scenario, behaviour);
    }
    if cfg!(feature = "every-engine") {
        for_real(Engine::Epoll, EngineKind::Epoll, scenario, behaviour);
    }
}

/// Returns whether this kernel has the features that the engine `uring` needs. If not, skips the test.
pub fn has_a_ring() -> bool {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    let missing = MISSING.get_or_init(|| check_ring().err().map(|reason| reason.to_string()));
    missing.iter().for_each(|reason| skip(Need::Uring, reason));
    missing.is_none()
}

/// Returns the seeds that each test in the simulator runs with.
pub fn every_seed() -> impl Iterator<Item = u64> {
    let count = std::env::var("PLIMSOLL_SEEDS").ok().and_then(|count| count.parse().ok());
    seeds(count.unwrap_or(SEEDS))
}

/// Runs `behaviour` in the simulator with one seed.
pub fn simulated<F: Future<Output = ()> + 'static>(
    seed: u64,
    faults: Faults,
    scenario: &Scenario,
    behaviour: impl FnOnce(Scene) -> F,
) {
    let Simulation { sim, client, scene, .. } = Simulation::new(seed, faults, scenario);
    sim.run(&client, behaviour(scene));
    assert_eq!(
        !sim.panics().is_empty(),
        scenario.panics,
        "seed {seed}: the server panicked: {:?}",
        sim.panics()
    );
}

/// A simulated server, and a host for its clients.
pub struct Simulation {
    pub sim: Sim,
    pub server: Host,
    pub client: Host,
    pub scene: Scene,
}

impl Simulation {
    /// Serves `scenario` in a separate simulated world.
    pub fn new(seed: u64, faults: Faults, scenario: &Scenario) -> Simulation {
        let sim = Sim::new(seed, faults);
        let (server, client) = (sim.host("server"), sim.host("client"));
        let (root, seen) = (Path::new(SIMULATED_ROOT), ServerState::new(scenario.hot));
        let open = Arc::<AtomicUsize>::default();
        scenario.tree.plant_in(server.disk(), root);
        server.disk().mkdir(SIMULATED_DATA).expect("an empty disk");
        let accounts = scenario.accounts.clone().map(|settings| {
            let data = Path::new(SIMULATED_DATA);
            let mut store = open_store(&**server.disk(), data);
            if scenario.remote {
                let (at, setup) = (Address::Ip((server.ip(), 7071).into()), store_server(store, &seen.hot));
                let at = sim.serve(&server, &at, &setup).expect("the address is free");
                store = store_at(&at, scenario.spool.then(|| open_spool(&**server.disk(), data)));
            }
            Accounts::open(store, data, settings)
        });
        let setup = setup_of(scenario, &**server.disk(), root, &seen, accounts.as_ref());
        let serve_at = |at: Address, setup| {
            sim.serve(&server, &at, &counted(setup, &open)).expect("the address is free")
        };
        let serve = |port, setup| serve_at(Address::Ip((server.ip(), port).into()), setup);
        let mut proxy_disk = None;
        let (at, stop, origin) = match (scenario.channel, scenario.proxy) {
            (Some(_), None) => {
                (serve_at(Address::Unix("/channel.sock".into()), setup), server.stop().clone(), None)
            }
            (None, None) => (serve(80, setup), server.stop().clone(), None),
            (channel, Some(settings)) => {
                let (origin, host) = match channel {
                    // One machine: the proxy sends files of the server's disk.
                    Some(_) => {
                        (Address::Unix("/channel.sock".into()), sim.host_with_disk("proxy", server.disk()))
                    }
                    None => (Address::Ip((server.ip(), 8080).into()), sim.host("proxy")),
                };
                let origin = sim.serve(&server, &origin, &setup).expect("the address is free");
                let setup = counted(scenario.for_clients(proxy_of(settings, &origin)), &open);
                // The folder of its spool; a disk that is the server's has it already, at most.
                let _ = host.disk().mkdir(std::env::temp_dir());
                proxy_disk = Some(Disk::Simulated(Arc::clone(host.disk())));
                let at = sim.serve(&host, &Address::Ip((host.ip(), 80).into()), &setup);
                (at.expect("the address is free"), host.stop().clone(), Some(origin))
            }
        };
        let OtherProtocols { ftp, classic } =
            beside(scenario, &**server.disk(), root, accounts.as_ref(), None);
        let scene = Scene {
            io: client.io(),
            at,
            ftp_at: ftp.map(|setup| serve(21, setup)),
            ftp_tls: scenario.ftp_tls(),
            classic_at: classic.map(|setup| serve(9000, setup)),
            origin,
            engine: Engine::Simulator,
            stop,
            connections: Rc::new(move || open.load(Ordering::Relaxed)),
            log: seen.log,
            accounts,
            begun: seen.begun,
            hot: seen.hot,
            disk: Disk::Simulated(Arc::clone(server.disk())),
            proxy_disk,
            connector: connector(&client.io(), scenario.channel_of_clients()),
            tls: scenario.is_encrypted.then(pinned_connector),
            channels: seen.channels,
        };
        Simulation { sim, server, client, scene }
    }
}

pub(crate) fn setup_of(
    scenario: &Scenario,
    fs: &dyn Fs,
    root: &Path,
    seen: &ServerState,
    accounts: Option<&Accounts>,
) -> Setup {
    let settings = (scenario.limits.clone(), scenario.proxies.clone(), scenario.cors.clone());
    let http = || service::http(fs, root, settings, seen, accounts);
    let setup: Setup = match scenario.protocol {
        Protocol::Http => service::behind_proxies(scenario, http::OVER_SHARE, http()),
        Protocol::HttpOver(wrap) => service::over(http(), wrap),
        Protocol::Of(make) => Arc::new(make),
    };
    let setup = service::over_channels(scenario, setup, &seen.channels);
    if scenario.proxy.is_none() { scenario.for_clients(setup) } else { setup }
}

/// The protocols besides HTTP.
#[derive(Clone)]
pub(crate) struct OtherProtocols<T> {
    pub(crate) ftp: Option<T>,
    pub(crate) classic: Option<T>,
}

/// Returns the setups of these protocols. `cells` are those of FTP's start barrier and of its ports, if
/// processes share them.
pub(crate) fn beside(
    scenario: &Scenario,
    fs: &dyn Fs,
    root: &Path,
    accounts: Option<&Accounts>,
    cells: Option<(Cells, Cells)>,
) -> OtherProtocols<Setup> {
    let classic = scenario.classic.clone().zip(accounts);
    OtherProtocols {
        ftp: scenario
            .ftp
            .as_ref()
            .map(|wanted| ftp_setup(wanted, fs, root, accounts, cells))
            .map(|setup| service::behind_proxies(scenario, ftp::OVER_SHARE, setup)),
        classic: classic.map(|(limits, accounts)| {
            let setup = service::classic(limits, fs, root, accounts);
            service::behind_proxies(scenario, classic::OVER_SHARE, setup)
        }),
    }
}

/// Listens for HTTP as the scenario says: over channels at a socket in `folder`, or at a loopback port.
pub(crate) fn listen_as(scenario: &Scenario, folder: &Path) -> Bound {
    match scenario.channel {
        Some(_) => bind(&Address::Unix(folder.join("channel.sock"))).expect("a free name"),
        None => listen_for_http(),
    }
}

/// As [`listen`], for HTTP.
pub(crate) fn listen_for_http() -> Bound {
    listen().client_speaks_first()
}

/// Listens at a free loopback port.
pub(crate) fn listen() -> Bound {
    bind(&":0".parse().unwrap()).expect("a port of loopback")
}

/// A server on separate threads.
pub(crate) struct Running {
    at: Address,
    beside: OtherProtocols<Address>,
    stop: Stop,
    connections: Arc<Connections>,
    thread: JoinHandle<std::io::Result<()>>,
}

/// Serves on separate threads.
pub(crate) fn start(
    kind: EngineKind,
    http: (Bound, Setup),
    beside: OtherProtocols<Setup>,
    grace: Duration,
) -> Running {
    let at = http.0.address().clone();
    let mut listeners = vec![http];
    let mut serve_at = |setup| {
        let bound = listen();
        let at = bound.address().clone();
        listeners.push((bound, setup));
        at
    };
    let beside =
        OtherProtocols { ftp: beside.ftp.map(&mut serve_at), classic: beside.classic.map(&mut serve_at) };
    let (stop, connections) = (Stop::new(), Connections::new(10_000));
    let plan = Plan {
        engine: kind,
        threads: if kind == EngineKind::Pool { WORKERS } else { 2 },
        when_full: WhenFull::Block,
        listeners,
        stop: stop.clone(),
        grace,
        connections: Arc::clone(&connections),
    };
    Running { at, beside, stop, connections, thread: std::thread::spawn(move || serve(plan)) }
}

impl Running {
    /// Returns its address for HTTP.
    pub(crate) fn address(&self) -> &Address {
        &self.at
    }

    /// Stops the server, and waits until it has ended.
    pub(crate) fn end(self) {
        self.stop.order();
        self.thread.join().expect("the server's thread does not panic").expect("the server ends well");
    }
}

fn for_real<F: Future<Output = ()> + 'static>(
    engine: Engine,
    kind: EngineKind,
    scenario: &Scenario,
    behaviour: fn(Scene) -> F,
) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    scenario.tree.plant(folder.path());
    let seen = ServerState::new(scenario.hot);
    let data = tempfile::tempdir().expect("a temporary folder");
    let store = scenario.accounts.is_some().then(|| open_store(&SystemFs, data.path()));
    let remote = store.clone().filter(|_| scenario.remote);
    let remote = remote.map(|store| {
        let nothing = OtherProtocols { ftp: None, classic: None };
        start(kind, (listen_for_http(), store_server(store, &seen.hot)), nothing, scenario.grace)
    });
    let spool = scenario.spool.then(|| open_spool(&SystemFs, data.path()));
    let store = remote.as_ref().map(|running| store_at(&running.at, spool)).or(store);
    let settings = scenario.accounts.clone().zip(store);
    let accounts = settings.map(|(settings, store)| Accounts::open(store, data.path(), settings));
    let setup = setup_of(scenario, &SystemFs, folder.path(), &seen, accounts.as_ref());
    let beside = beside(scenario, &SystemFs, folder.path(), accounts.as_ref(), None);
    let mut running = start(kind, (listen_as(scenario, data.path()), setup), beside, scenario.grace);
    let behind = scenario.proxy.map(|settings| {
        let nothing = OtherProtocols { ftp: None, classic: None };
        let setup = scenario.for_clients(proxy_of(settings, &running.at));
        let proxy = start(kind, (listen_for_http(), setup), nothing, scenario.grace);
        std::mem::replace(&mut running, proxy)
    });
    let connections = Arc::clone(&running.connections);
    let beside = behind.as_ref().unwrap_or(&running).beside.clone();
    let shown = ServerParts {
        engine,
        at: running.at.clone(),
        origin: behind.as_ref().map(|behind| behind.at.clone()),
        beside,
        stop: running.stop.clone(),
        connections: Arc::clone(&connections),
        seen,
        accounts,
        root: folder.path().to_owned(),
        channel: scenario.channel_of_clients(),
        is_encrypted: scenario.is_encrypted,
        ftp_tls: scenario.ftp_tls(),
    };
    let passed = play(kind, shown, behaviour);
    running.end();
    behind.into_iter().for_each(Running::end);
    remote.into_iter().for_each(Running::end);
    assert_eq!(connections.panicked() > 0, scenario.panics, "connections that panicked");
    passed.expect("the behaviour (its message is above)");
}

/// The parts of a running server from which a [`Scene`] is made.
pub(crate) struct ServerParts {
    pub(crate) engine: Engine,
    pub(crate) at: Address,
    pub(crate) origin: Option<Address>,
    pub(crate) beside: OtherProtocols<Address>,
    pub(crate) stop: Stop,
    pub(crate) connections: Arc<Connections>,
    pub(crate) seen: ServerState,
    pub(crate) accounts: Option<Accounts>,
    pub(crate) root: PathBuf,
    pub(crate) channel: Option<Bodies>,
    pub(crate) is_encrypted: bool,
    pub(crate) ftp_tls: Option<FtpTls>,
}

/// Runs the behaviour, with clients on an engine of this kind.
pub(crate) fn play<F: Future<Output = ()> + 'static>(
    kind: EngineKind,
    shown: ServerParts,
    behaviour: fn(Scene) -> F,
) -> std::io::Result<()> {
    block_on(kind, move |io| {
        let ServerParts { engine, at, origin, beside, stop, connections, seen, accounts, .. } = shown;
        let ServerParts { root, channel, is_encrypted, ftp_tls, .. } = shown;
        let ServerState { log, begun, hot, channels, .. } = seen;
        let scene = Scene {
            io: io.clone(),
            at,
            origin,
            engine,
            stop,
            connections: Rc::new(move || connections.open()),
            log,
            ftp_at: beside.ftp,
            ftp_tls,
            classic_at: beside.classic,
            accounts,
            begun,
            hot,
            disk: Disk::Real(root),
            proxy_disk: None,
            connector: connector(&io, channel),
            tls: is_encrypted.then(pinned_connector),
            channels,
        };
        within_time(io, behaviour(scene))
    })
}

fn connector(io: &Io, channel: Option<Bodies>) -> Option<Rc<Connector>> {
    channel.map(|bodies| Rc::new(Connector::new(io, bodies, Settings::default())))
}

async fn within_time(io: Io, behaviour: impl Future<Output = ()>) {
    let deadline = io.deadline();
    deadline.after(TIME_MAX);
    deadline.within(behaviour).await.expect("the behaviour ends in time");
}
