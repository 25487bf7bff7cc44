//! Runs a behaviour under the engine `process`, where each connection is a process.
//!
//! This process holds accounts and their files, and answers connection processes as `plimsoll serve` does.
//! Of a proxy and its origin, only the proxy has a process for each connection; the origin is in this one.
//! A test must begin in a process with one thread, because only such a process can be forked.

use std::future::Future;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use plimsoll_engine::{
    Bound, Connections, EngineKind, Forked, Forking, Master, Orders, SystemFs, bind, fork_master,
    shared_cells,
};
use plimsoll_io::{Address, Cells, Stop};
use plimsoll_operations::Meter;
use plimsoll_proto::ftp::{PortShares, StartBarrier};
use plimsoll_proto::http::Counters;

use crate::accounts::{
    Accounts, OperationLogs, auth_beside, in_memory, open_store, rpc_server_setup, store_at,
};
use crate::proxy::proxy_of;
use crate::scene::{Scenario, Scene};
use crate::service::{LogLines, ServerState};
use crate::under::{
    Engine, OtherProtocols, Running, ServerParts, beside, listen, listen_as, listen_for_http, play, setup_of,
    start,
};

/// A test that has a process to itself.
pub struct Alone {
    pub module: &'static str,
    pub name: &'static str,
    pub run: fn(),
}

inventory::collect!(Alone);

/// Registers a function as a test that has a process to itself.
#[macro_export]
macro_rules! alone {
    ($name:ident, $run:expr) => {
        $crate::inventory::submit! {
            $crate::forked::Alone { module: module_path!(), name: stringify!($name), run: $run }
        }
    };
}

impl Alone {
    /// Returns every registered test of this program, by its path.
    pub fn all() -> impl Iterator<Item = (String, fn())> {
        inventory::iter::<Alone>().map(|test| {
            let (_, module) = test.module.split_once("behaviours::").expect("a module of the suite");
            (format!("{module}::{}", test.name), test.run)
        })
    }
}

/// The state that the processes share.
struct Common {
    seen: ServerState,
    logs: OperationLogs,
    connections: Cells,
    /// Counts in the start barrier for transfers, and the holders of FTP's ports.
    ftp: (Cells, Cells),
}

impl Common {
    fn of(scenario: &Scenario) -> Common {
        let counts = [
            1,
            Counters::CELLS,
            Connections::SHARED_CELLS,
            Meter::CELLS,
            StartBarrier::CELLS,
            PortShares::CELLS,
        ];
        let [begun, counters, connections, meter, line, ports] = shared_cells(counts).expect("a page");
        let log = || Arc::new(LogLines::shared());
        let counters = Arc::new(Counters::in_cells(counters));
        let seen =
            ServerState { log: log(), begun: Arc::new(begun), counters, ..ServerState::new(scenario.hot) };
        let meter = Arc::new(Meter::counted_in(meter));
        Common {
            seen,
            logs: OperationLogs { meter, transfers: log(), xferlog: log() },
            connections,
            ftp: (line, ports),
        }
    }
}

/// The listening sockets of a server, and of the origin behind it if it is a proxy.
struct Listening {
    http: Bound,
    origin: Option<Bound>,
    beside: OtherProtocols<Bound>,
}

impl Listening {
    fn of(scenario: &Scenario, folder: &Path) -> Listening {
        let beside = OtherProtocols {
            ftp: scenario.ftp.is_some().then(listen),
            classic: scenario.classic.is_some().then(listen),
        };
        let at = listen_as(scenario, folder);
        match scenario.proxy {
            Some(_) => Listening { http: listen_for_http(), origin: Some(at), beside },
            None => Listening { http: at, origin: None, beside },
        }
    }

    fn addresses(&self) -> (Address, OtherProtocols<Address>) {
        let address = |bound: &Bound| bound.address().clone();
        let OtherProtocols { ftp, classic } = &self.beside;
        let beside =
            OtherProtocols { ftp: ftp.as_ref().map(address), classic: classic.as_ref().map(address) };
        (address(&self.http), beside)
    }
}

pub(crate) fn for_real<F: Future<Output = ()> + 'static>(scenario: &Scenario, behaviour: fn(Scene) -> F) {
    let (folder, data) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    scenario.tree.plant(folder.path());
    let (common, listening) = (Common::of(scenario), Listening::of(scenario, data.path()));
    let rpc_address = Address::Unix(data.path().join("desk.sock"));
    match fork_master().expect("a process with one thread") {
        Forked::Master(orders) => {
            accept(orders, scenario, common, listening, folder.path(), &rpc_address);
            // Skips destructors: the temporary folders belong to the main process.
            std::process::exit(0);
        }
        Forked::Main(master) => {
            let (at, beside) = listening.addresses();
            let Listening { http, origin, beside: others } = listening;
            // Only the master may have the listeners.
            drop((http, others));
            let origin = origin.map(|bound| {
                let setup = setup_of(scenario, &SystemFs, folder.path(), &common.seen, None);
                let nothing = OtherProtocols { ftp: None, classic: None };
                start(EngineKind::Epoll, (bound, setup), nothing, scenario.grace)
            });
            let open = open_rpc_servers(scenario, &common, data.path(), &rpc_address);
            let (accounts, rpc_servers) = open.unzip();
            let connections = Connections::counted_in(common.connections, 0);
            let (stop, watched) = (Stop::new(), Arc::clone(&connections));
            let (engine, seen, root) = (Engine::Process, common.seen, folder.path().to_owned());
            let channel = scenario.channel_of_clients();
            let shown = ServerParts {
                engine,
                at,
                origin: origin.as_ref().map(|running| running.address().clone()),
                beside,
                stop: stop.clone(),
                connections,
                seen,
                accounts,
                root,
                channel,
                is_encrypted: scenario.is_encrypted,
                ftp_tls: scenario.ftp_tls(),
            };
            let master = watch(master, &stop, scenario.grace);
            let passed = play(EngineKind::Epoll, shown, behaviour);
            stop.order();
            master.join().expect("no panic").expect("the server ends well");
            rpc_servers.into_iter().chain(origin).for_each(Running::end);
            assert_eq!(watched.panicked() > 0, scenario.panics, "connections that panicked");
            passed.expect("the behaviour (its message is above)");
        }
    }
}

/// Runs the fork master: accepts connections and forks.
fn accept(
    orders: Orders,
    scenario: &Scenario,
    common: Common,
    listening: Listening,
    root: &Path,
    rpc_address: &Address,
) {
    let Common { seen, logs, connections, ftp: cells } = common;
    let accounts = scenario.accounts.clone().map(|settings| {
        let (auth, store) = (auth_beside(rpc_address, settings), store_at(rpc_address, None));
        Accounts::of(auth, store, root, logs)
    });
    let http = match (scenario.proxy, &listening.origin) {
        (Some(settings), Some(origin)) => scenario.for_clients(proxy_of(settings, origin.address())),
        _ => setup_of(scenario, &SystemFs, root, &seen, accounts.as_ref()),
    };
    // The program's process accepts there.
    drop(listening.origin);
    let OtherProtocols { ftp, classic } = beside(scenario, &SystemFs, root, accounts.as_ref(), Some(cells));
    let beside = listening.beside.ftp.zip(ftp).into_iter().chain(listening.beside.classic.zip(classic));
    let listeners = std::iter::once((listening.http, http)).chain(beside);
    let forking = Forking {
        listeners: listeners.collect(),
        stop: Stop::new(),
        grace: scenario.grace,
        connections: Connections::counted_in(connections, 1_000),
        reload: Box::new(|_| true),
    };
    orders.serve(forking).expect("the master serves");
}

/// Opens accounts and their files, and serves them to connection processes.
fn open_rpc_servers(
    scenario: &Scenario,
    common: &Common,
    data: &Path,
    rpc_address: &Address,
) -> Option<(Accounts, Running)> {
    let settings = scenario.accounts.clone()?;
    let store = open_store(&SystemFs, data);
    let auth = in_memory(settings);
    let accounts = Accounts::of(auth.clone(), store.clone(), data, common.logs.clone());
    let bound = bind(rpc_address).expect("a socket in the folder");
    let nothing = OtherProtocols { ftp: None, classic: None };
    let setup = rpc_server_setup(auth, store, &common.seen.hot);
    Some((accounts, start(EngineKind::Epoll, (bound, setup), nothing, scenario.grace)))
}

/// Has the master accept, and waits for its end on a separate thread.
fn watch(master: Master, stop: &Stop, grace: Duration) -> JoinHandle<std::io::Result<()>> {
    master.begin().expect("the master is there");
    let stop = stop.clone();
    std::thread::spawn(move || master.wait(&stop, grace).outcome)
}
