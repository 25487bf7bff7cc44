//! The engine `process` of `plimsoll serve` and `plimsoll auth`: the main process and the fork master.
//!
//! The main process has everything that needs threads and handles: signals, the configuration file, the
//! logs, accounts and their files. The fork master has the listeners and the services.
//!
//! It does not fork for connections; the engine does ([`plimsoll_engine::fork_master`]). Invariants: the
//! master is forked before any thread exists. All errors of the configuration are found before the first
//! connection.

mod lines;
mod rpc_servers;
mod socket;

use std::sync::Arc;

use anyhow::Context as _;
use plimsoll_acme::Proof;
use plimsoll_auth::{Auth, DirectoryMeter, Secret};
use plimsoll_engine::{Connections, Forked, Master, Orders, Reload, ReloadScope, fork_master, shared_cells};
use plimsoll_io::{Cells, Stop};
use plimsoll_operations::{AuditLog, Meter};
use plimsoll_proto::ftp::{PortShares, StartBarrier};
use plimsoll_proto::http::{Counters, Readiness};
use plimsoll_store::Store;

use self::lines::{LogKind, Receiver, Sender, Writers};
use self::rpc_servers::RpcServers;
use crate::assemble::{Reloadable, Server, warn_of_cut_off};
use crate::common_cells::CommonCells;
use crate::config::{Config, Loaded};
use crate::encryption::{self, FilesWatch, Renewals, Stamps};
use crate::line_writer::Reopen;
use crate::listening::{Addresses, Listening};
use crate::locked_folder::{make_data_folder, share_data_folder, take_data_folder};
use crate::log_file::Destination;
use crate::log_sinks::{Logs, Sinks};
use crate::operator_log::{Level, OperatorLog, start_with};
use crate::reloading::{self, Reloading, Replace};
use crate::sites::open_sites;
use crate::stopping;
use crate::tiers::{auth_settings, empty_spool, trash_time};

/// The kind of server that runs under the engine `process`.
#[derive(Clone)]
pub(crate) enum Role {
    /// `plimsoll serve`.
    Front,
    /// `plimsoll auth`, with the secret shared with its fronts.
    Auth(Secret),
}

/// State shared by all processes of a server: counters, and the address of the RPC servers.
struct Common {
    counters: Cells,
    operations: Cells,
    cells: CommonCells,
    rpc_servers: Option<RpcServers>,
}

impl Common {
    /// Creates the shared state of a server with this configuration.
    fn of(config: &Config, role: &Role) -> anyhow::Result<Common> {
        let counts = [
            Counters::CELLS,
            Connections::SHARED_CELLS,
            Meter::CELLS,
            StartBarrier::CELLS,
            PortShares::CELLS,
            Readiness::CELLS,
            plimsoll_channel::Meter::CELLS,
            plimsoll_tls::Handshakes::CELLS,
            Renewals::CELLS,
            DirectoryMeter::CELLS,
        ];
        let [
            counters,
            connections,
            operations,
            hold,
            ports,
            ready,
            channels,
            handshakes,
            renewals,
            directory,
        ] = shared_cells(counts).context("cannot make memory that processes share")?;
        if config.fixed.accounts {
            // Created before the fork, because the master may read files in it first.
            make_data_folder(&config.fixed.data)?;
        }
        let rpc_servers = config.fixed.accounts.then(|| RpcServers::of(config, role)).transpose();
        let rpc_servers = rpc_servers.context("cannot draw a secret")?;
        let ports = Some(ports);
        let cells =
            CommonCells { connections, hold, ports, ready, channels, handshakes, renewals, directory };
        Ok(Common { counters, operations, cells, rpc_servers })
    }
}

/// Serves until the order to stop. Must be called before any thread exists.
pub(crate) fn serve(
    loaded: Loaded,
    role: Role,
    announce: impl FnOnce(&Config, &Addresses) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let config = &loaded.config;
    plimsoll_engine::check_kernel()?;
    // Opened for their errors, which this process can still print.
    open_sites(config)?;
    encryption::read(config)?;
    let listening = Listening::at(config)?;
    let (sender, receiver) = lines::pair().context("cannot make a socket for logs")?;
    let common = Common::of(config, &role)?;
    match fork_master().context("cannot make the process that accepts")? {
        Forked::Master(orders) => {
            drop(receiver);
            accept(loaded, role, orders, listening, common, &sender)
        }
        Forked::Main(master) => {
            drop(sender);
            let addresses = listening.addresses();
            // Only the master may have the listeners.
            drop(listening);
            watch_over(loaded, &role, master, common, receiver, &addresses, announce)
        }
    }
}

/// Runs the fork master.
fn accept(
    mut loaded: Loaded,
    role: Role,
    orders: Orders,
    listening: Listening,
    common: Common,
    sender: &Sender,
) -> anyhow::Result<()> {
    let (config, sender) = (&loaded.config, &sender.of_master());
    let counters = Arc::new(Counters::in_cells(common.counters));
    let (format, level) = (config.fixed.log_format, config.live.log_level);
    let level = start_with(format, level, sender.to(LogKind::Operator, &counters));
    let sinks = sinks(config, sender, &counters, Meter::counted_in(common.operations));
    let Common { cells, rpc_servers, .. } = common;
    let server = match (role, rpc_servers) {
        (Role::Auth(secret), Some(rpc_servers)) => {
            Server::of_auth_master(config, counters, cells, rpc_servers.address()?, secret)?
        }
        (_, rpc_servers) => {
            let operations =
                rpc_servers.map(|rpc_servers| rpc_servers.ask(config, &sinks.audit_log)).transpose()?;
            Server::of_master(config, counters, cells, sinks, operations)?
        }
    };
    let parts = server.reloadable();
    let reload = move |scope| match scope {
        ReloadScope::Files => parts.refresh_certificates(&loaded.config),
        ReloadScope::Configuration => match read_again(&mut loaded, &parts, &level) {
            Ok(()) => true,
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(error, "the process that accepts could not read the configuration again");
                false
            }
        },
    };
    server.serve_forked(orders, listening, Box::new(reload))
}

fn read_again(loaded: &mut Loaded, parts: &Reloadable, level: &Level) -> anyhow::Result<()> {
    let mut new = loaded.again()?;
    new.config.fixed = loaded.config.fixed.clone();
    parts.apply(&new.config)?;
    level.set(new.config.live.log_level);
    loaded.config = new.config;
    Ok(())
}

/// Returns the sinks of the logs that the main process writes.
fn sinks(config: &Config, sender: &Sender, counters: &Arc<Counters>, meter: Meter) -> Sinks {
    let fixed = &config.fixed;
    let to_log = |kind, at: &Destination, is_on: bool| {
        (is_on && *at != Destination::Off).then(|| Arc::new(sender.to(kind, counters)))
    };
    let has_operations = fixed.has_operations();
    let log = to_log(LogKind::Transfers, &fixed.transfer_log, has_operations);
    let xferlog = to_log(LogKind::Xferlog, &fixed.xferlog, has_operations);
    Sinks {
        requests: to_log(LogKind::Requests, &fixed.access_log, true).map(|sink| sink as _),
        audit_log: AuditLog::new(Arc::new(meter), log.map(|sink| sink as _), xferlog.map(|sink| sink as _)),
    }
}

/// Runs the main process beside its fork master.
fn watch_over(
    loaded: Loaded,
    role: &Role,
    master: Master,
    common: Common,
    receiver: Receiver,
    addresses: &Addresses,
    announce: impl FnOnce(&Config, &Addresses) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let config = loaded.config.clone();
    let log = OperatorLog::start(config.fixed.log_format, config.live.log_level);
    let log = log.context("cannot start the log")?;
    let counters = Arc::new(Counters::in_cells(common.counters));
    // Before the logs, which may be in the data folder.
    let lock = match role {
        Role::Front => take_data_folder,
        Role::Auth(_) => share_data_folder,
    };
    let folder = config.fixed.accounts.then(|| lock(&config.fixed.data)).transpose()?;
    if folder.is_some() && matches!(role, Role::Front) {
        // The master has opened the spool folder, but no connection process uses it yet.
        empty_spool(&config.fixed)?;
    }
    let logs = Logs::open(&config.fixed)?;
    let meter = DirectoryMeter::in_cells(common.cells.directory);
    let open = common.rpc_servers.map(|rpc_servers| rpc_servers.open(folder, &config, &meter)).transpose()?;
    let receiving = receiver.start(writers(&log, &logs, counters)).context("cannot start a thread")?;
    let stop = Stop::new();
    stopping::watch(&stop, addresses).context("cannot watch for signals")?;
    encryption::start_acme(&config, Proof::Http, &Renewals::in_cells(common.cells.renewals), &stop)?;
    let auth = open.as_ref().map(|open| open.auth.clone());
    let homes = open.as_ref().and_then(|open| open.homes.clone());
    let parts = Box::new(AtMaster {
        reload: master.reload(),
        watch: FilesWatch::default(),
        logs: logs.reopen(),
        auth,
        homes,
    });
    let doing = match role {
        Role::Front => "serving",
        Role::Auth(_) => "answering",
    };
    Reloading { loaded, parts, level: log.level(), status: reloading::status(doing, addresses) }
        .watch(&stop)?;
    announce(&config, addresses)?;
    master.begin().context("the process that accepts has ended; it has said why")?;
    let grace = config.fixed.grace.0;
    let ended = master.wait(&stop, grace);
    if let Some(open) = open {
        let since = ended.ordered_at.map(|at| at.elapsed()).unwrap_or_default();
        open.finish(grace.saturating_sub(since));
    }
    receiving.finish();
    warn_of_cut_off(&Connections::counted_in(common.cells.connections, 0));
    logs.finish();
    log.finish();
    ended.outcome.context("the server ended early")
}

fn writers(log: &OperatorLog, logs: &Logs, counters: Arc<Counters>) -> Writers {
    let lines = |log: &Option<crate::log_file::Log>| log.as_ref().map(|log| log.writer.lines());
    let (requests, transfers, xferlog) =
        (lines(&logs.requests), lines(&logs.transfers), lines(&logs.xferlog));
    Writers { operator: log.lines(), requests, transfers, xferlog, counters }
}

/// The reload of a server under the engine `process`; the fork master has most replaceable parts.
struct AtMaster {
    reload: Reload,
    watch: FilesWatch,
    logs: Vec<Reopen>,
    auth: Option<Auth>,
    homes: Option<Store>,
}

impl Replace for AtMaster {
    fn apply(&self, config: &Config) -> anyhow::Result<()> {
        // Checked before the master does, so that an error is reported once, with its reason.
        open_sites(config)?;
        let stamps = Stamps::of(config);
        encryption::check(config).inspect_err(|error| {
            self.watch.note_error(error);
        })?;
        let done = self.reload.order().context("the process that accepts does not answer")?;
        anyhow::ensure!(done, "the process that accepts could not; the log says why");
        self.watch.note_used(stamps);
        if let Some(auth) = &self.auth {
            auth.set(auth_settings(config));
        }
        if let Some(homes) = &self.homes {
            homes.set_trash_time(trash_time(config));
        }
        Ok(())
    }

    fn refresh_certificates(&self, config: &Config) -> bool {
        // The master logs the result.
        let order = || self.reload.order_refresh().unwrap_or(false);
        encryption::refresh_elsewhere(config, &self.watch, order)
    }

    fn reopen_logs(&self) {
        self.logs.iter().for_each(Reopen::order);
    }
}
