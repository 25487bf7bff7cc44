//! Joins the engine, the protocols and the services into a server. No other module does.
//!
//! It decides nothing that the configuration leaves open. Invariant: per-thread state is built on its own
//! thread. Threads share only counters, caches, configuration and the log queues.

mod listeners;
mod pages;
mod servers;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use plimsoll_auth::{Auth, DirectoryMeter};
use plimsoll_channel::{Meter as ChannelMeter, Settings as ChannelSettings};
use plimsoll_content::{HotCache, Site};
use plimsoll_engine::{
    Connections, EngineKind, Forking, Orders, PerAddress, Plan, ReloadScope, SlotPolicy, WhenFull, serve,
};
use plimsoll_io::{Cells, Network, Networks, Stop};
use plimsoll_operations::Operations;
use plimsoll_proto::ftp::{self, PortShares, StartBarrier};
use plimsoll_proto::http::{
    Api, Challenges, Check, Counters, LogSink, Readiness, Routes, Snapshot, TierLocation, Tiers,
};
use plimsoll_proto::{Current, classic};
use plimsoll_proxy::Settings as ProxySettings;
use plimsoll_store::Store;
use plimsoll_tls::ServerTls;

use crate::common_cells::CommonCells;
use crate::config::{AuthAt, Config, Fixed, FtpTls, PlainPasswords, Proxied, ServerCommand, StoreAt};
use crate::encryption::{self, Encryption, Renewals};
use crate::line_writer::Reopen;
use crate::listening::Listening;
use crate::locked_folder::FolderLock;
use crate::log_sinks::{Logs, Sinks};
use crate::proxying;
use crate::reloading::Replace;
use crate::sites::{open_sites, site_of_all, site_of_guests};
use crate::tiers::{auth_settings, trash_time};
use crate::{hot, open_files, readiness};

pub(crate) use self::servers::auth_server;

/// A server with all its parts, not yet serving.
pub(crate) struct Server {
    grace: Duration,
    shared: Arc<Shared>,
    current: Currents,
    /// The protocols whose clients connect through proxies that send a PROXY header first.
    proxied: Vec<Proxied>,
    /// The sink of the access log.
    requests: Option<Arc<dyn LogSink>>,
    /// The logs that this process writes.
    logs: Logs,
    /// Keeps the data folder locked while the server exists.
    _folder: Option<FolderLock>,
}

/// The replaceable settings and services of new connections.
#[derive(Clone)]
struct Currents {
    http: Arc<Current<Snapshot<Arc<Routes>>>>,
    /// The same over channels, whose peers are proxies of this machine.
    channels: Arc<Current<Snapshot<Arc<Routes>>>>,
    /// The addresses of `--metrics`.
    metrics: Arc<Current<Snapshot<Arc<Routes>>>>,
    /// The peers whose connections begin with a PROXY protocol header.
    proxies: Arc<Current<Networks>>,
    ftp: Arc<Current<ftp::Settings>>,
    classic: Arc<Current<classic::Settings>>,
}

/// The state of a server that no reload replaces.
struct Shared {
    engine: EngineKind,
    threads: usize,
    tiers: Tiers,
    when_full: WhenFull,
    counters: Arc<Counters>,
    hot: Arc<HotCache>,
    connections: Arc<Connections>,
    stop: Stop,
    started: Instant,
    /// Accounts and their files; `None` if the server serves sites only.
    accounts: Option<Accounts>,
    readiness: Arc<Readiness>,
    ftp: Arc<ftp::Services>,
    encryption: Encryption,
    /// The answers to challenges of an ACME server.
    challenges: Option<Challenges>,
    renewals: Arc<Renewals>,
    /// The counts of requests to the directory.
    directory: Arc<DirectoryMeter>,
    /// The settings of channels, and their counters.
    channels: ChannelSettings,
    /// The replaceable settings of new connections to a proxy; `None` if this server is none.
    proxy: Option<Arc<Current<ProxySettings>>>,
}

/// The auth tier of this server, and the HTTP API.
struct Accounts {
    /// `None` on a storage server, which knows no accounts.
    auth: Option<Auth>,
    /// The store, if it is remote; readiness checks it.
    store: Option<Store>,
    /// The store, if its homes are in this process: a reload replaces a setting of it.
    homes: Option<Store>,
    api: Arc<dyn Api>,
}

/// The components from which a server is built, beside its configuration.
struct Parts {
    counters: Arc<Counters>,
    cells: CommonCells,
    accounts: Option<Accounts>,
    operations: Option<Operations>,
    sinks: Sinks,
    logs: Logs,
    /// The data folder, if this server uses one.
    data: Option<PathBuf>,
    /// The lock on the data folder; `None` if another process holds it.
    folder: Option<FolderLock>,
}

/// The parts of a running server that a reload replaces.
pub(crate) struct Reloadable {
    shared: Arc<Shared>,
    current: Currents,
    logs: Vec<Reopen>,
}

impl Server {
    /// Builds a server of its parts.
    fn made_of(parts: Parts, config: &Config, sites: Vec<Site>) -> anyhow::Result<Server> {
        let Parts { counters, cells, accounts, operations, sinks, logs, data, folder } = parts;
        let CommonCells { connections, hold, ports, ready, channels, handshakes, renewals, directory } =
            cells;
        let Sinks { requests, audit_log } = sinks;
        let (fixed, limit) = (&config.fixed, open_files::raise());
        let slots = SlotPolicy {
            per_address: match fixed.connections_per_address {
                // A tier's clients are a few fronts.
                PerAddress::Auto if operations.is_none() && accounts.is_some() => PerAddress::Unlimited,
                per_address => per_address,
            },
            has_accounts: accounts.is_some(),
            ..SlotPolicy::from(open_files::connections_max(config, limit))
        };
        let channels = ChannelSettings {
            ring_bytes: usize::try_from(fixed.channel_ring.0).unwrap_or(usize::MAX),
            slots: fixed.channel_slots,
            meter: ChannelMeter::in_cells(channels),
        };
        let proxy =
            fixed.is_proxy().then(|| proxying::start(config, &channels)).transpose()?.map(Current::new);
        let encryption = Encryption::of(config, handshakes)?;
        let shared = Arc::new(Shared {
            engine: fixed.engine,
            threads: if fixed.engine.has_fixed_threads() { fixed.threads.number(fixed.engine) } else { 1 },
            directory: pages::directory_meter(directory, accounts.as_ref()),
            tiers: tiers_of(fixed, accounts.as_ref(), operations.is_some()),
            readiness: Arc::new(Readiness::with_shared_result(
                ready,
                checks(data.as_deref(), accounts.as_ref(), proxy.as_ref()),
            )),
            when_full: fixed.queue,
            hot: hot::start_hot_cache(config, &sites, limit).context("cannot start a thread")?,
            connections: Connections::counted_in(connections, slots),
            stop: Stop::new(),
            started: Instant::now(),
            accounts,
            ftp: Arc::new(ftp::Services {
                operations,
                audit_log,
                generated: Arc::clone(counters.generated()),
                handshakes: Arc::clone(encryption.handshakes()),
                port_shares: Arc::new(port_shares(config, ports)),
                start_barrier: start_barrier(config, hold),
            }),
            encryption,
            challenges: encryption::challenges(config)?,
            renewals: Renewals::in_cells(renewals),
            channels,
            counters,
            proxy,
        });
        let ftp = ftp_settings(config, &sites, shared.encryption.ftp());
        let classic = classic_settings(config, &sites);
        let http = shared.snapshot(config, sites);
        let current = Currents {
            ftp: Current::new(ftp),
            classic: Current::new(classic),
            metrics: Current::new(shared.snapshot_of_operators(config)),
            proxies: Current::new(config.proxies()),
            channels: Current::new(of_channels(config, &http)),
            http: Current::new(http),
        };
        shared.set_plain_passwords(config);
        shared.exempt_proxies(config);
        let proxied = fixed.proxy_protocol.clone();
        Ok(Server { grace: fixed.grace.0, shared, current, proxied, requests, logs, _folder: folder })
    }

    pub(crate) fn stop(&self) -> &Stop {
        &self.shared.stop
    }

    /// Returns the parts that a reload replaces.
    pub(crate) fn reloadable(&self) -> Reloadable {
        let logs = self.logs.reopen();
        Reloadable { shared: Arc::clone(&self.shared), current: self.current.clone(), logs }
    }

    /// Serves until the order to stop, then until requests in progress end or the grace period is over.
    pub(crate) fn serve(self, listening: Listening) -> anyhow::Result<()> {
        let (stop, connections) = (self.shared.stop.clone(), Arc::clone(&self.shared.connections));
        let Shared { engine, threads, when_full, .. } = *self.shared;
        let listeners = self.behind(listening);
        let served =
            serve(Plan { engine, threads, when_full, listeners, stop, grace: self.grace, connections });
        warn_of_cut_off(&self.shared.connections);
        self.logs.finish();
        Ok(served?)
    }

    /// Like [`Server::serve`], in a fork master, which takes its orders from the main process.
    pub(crate) fn serve_forked(
        self,
        orders: Orders,
        listening: Listening,
        reload: Box<dyn FnMut(ReloadScope) -> bool>,
    ) -> anyhow::Result<()> {
        let (stop, connections) = (self.shared.stop.clone(), Arc::clone(&self.shared.connections));
        let listeners = self.behind(listening);
        Ok(orders.serve(Forking { listeners, stop, grace: self.grace, connections, reload })?)
    }
}

impl Replace for Reloadable {
    fn apply(&self, config: &Config) -> anyhow::Result<()> {
        let (sites, encryption) = (open_sites(config)?, &self.shared.encryption);
        let certificates = encryption.read(config).inspect_err(|error| encryption.note_error(error))?;
        if let Some(current) = &self.shared.proxy {
            current.replace(proxying::settings(config, &self.shared.channels, Some(&current.get()))?);
        }
        encryption.replace(certificates);
        self.shared.set_plain_passwords(config);
        self.current.ftp.replace(ftp_settings(config, &sites, self.shared.encryption.ftp()));
        self.current.classic.replace(classic_settings(config, &sites));
        let http = self.shared.snapshot(config, sites);
        self.current.channels.replace(of_channels(config, &http));
        self.current.http.replace(http);
        self.current.metrics.replace(self.shared.snapshot_of_operators(config));
        self.current.proxies.replace(config.proxies());
        self.shared.exempt_proxies(config);
        let Some(accounts) = &self.shared.accounts else { return Ok(()) };
        accounts.auth.iter().for_each(|auth| auth.set(auth_settings(config)));
        accounts.homes.iter().for_each(|homes| homes.set_trash_time(trash_time(config)));
        Ok(())
    }

    fn refresh_certificates(&self, config: &Config) -> bool {
        self.shared.encryption.refresh(config)
    }

    fn reopen_logs(&self) {
        self.logs.iter().for_each(Reopen::order);
    }
}

/// Returns the settings and routes of connections over channels. Their peers are trusted to name their
/// clients, because the mode of the socket admits only programs of the server's own user.
fn of_channels(config: &Config, http: &Snapshot<Arc<Routes>>) -> Snapshot<Arc<Routes>> {
    let (limits, service) = (http.limits.clone(), Arc::clone(&http.service));
    Snapshot { limits, proxies: config.proxies_and(Network::Unix), service }
}

/// Logs how many connections the end of the grace period has cut off.
pub(crate) fn warn_of_cut_off(connections: &Connections) {
    let cut_off = connections.cut_off();
    if cut_off > 0 {
        tracing::warn!(
            connections = cut_off,
            "the grace period is over; the remaining connections were dropped"
        );
    }
}

fn all_networks() -> Networks {
    let all = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
    Networks::from(all.map(|any| Network::Ip(any, 0)).to_vec())
}

impl Shared {
    /// Bounds neither the connections nor the handshakes of trusted proxies, and no handshakes of fronts.
    fn exempt_proxies(&self, config: &Config) {
        self.connections.exempt(config.proxies());
        let is_tier = matches!(config.fixed.command, ServerCommand::Auth | ServerCommand::Store);
        self.encryption.handshakes().exempt(if is_tier { all_networks() } else { config.proxies() });
    }

    /// Sets on which connections clients may present passwords.
    fn set_plain_passwords(&self, config: &Config) {
        if let Some(operations) = &self.ftp.operations {
            operations.allow_plain_passwords(config.live.tls.plain_passwords == PlainPasswords::Allow);
        }
    }
}

/// Returns the readiness checks of a server whose data folder is `folder`.
fn checks(
    folder: Option<&Path>,
    accounts: Option<&Accounts>,
    proxy: Option<&Arc<Current<ProxySettings>>>,
) -> Vec<Check> {
    let folder = folder.map(readiness::data_folder);
    let auth = accounts.and_then(|accounts| accounts.auth.clone()).map(readiness::accounts);
    let store = accounts.and_then(|accounts| accounts.store.clone()).map(readiness::store);
    let origins = proxy.map(proxying::origins_check);
    folder.into_iter().chain(auth).chain(store).chain(origins).collect()
}

/// Returns the shares of the ports for data of FTP.
fn port_shares(config: &Config, cells: Option<Cells>) -> PortShares {
    let ports = if config.fixed.has_ftp() { config.live.ftp.ftp_ports.0.count() } else { 1 };
    cells.map_or_else(|| PortShares::new(ports), PortShares::in_cells)
}

/// Returns the barrier at which transfers over FTP wait for each other, if a laboratory wants one.
fn start_barrier(config: &Config, cells: Cells) -> Option<StartBarrier> {
    let count = config.fixed.lab_hold_transfers;
    (count > 0).then(|| StartBarrier::in_cells(cells, count))
}

/// Returns the replaceable settings of FTP control connections.
fn ftp_settings(config: &Config, sites: &[Site], server: Option<Arc<Current<ServerTls>>>) -> ftp::Settings {
    let settings = &config.live.ftp;
    let encryption = |server| ftp::Encryption {
        server,
        is_required: settings.ftp_tls == FtpTls::Require,
        reuse: settings.ftp_tls_reuse.0,
    };
    ftp::Settings {
        limits: config.live.ftp_limits(),
        ports: settings.ftp_ports.0,
        announced: settings.ftp_announce.0,
        guests: site_of_guests(config, sites),
        unconfirmed: settings.ftp_unconfirmed.0,
        tls: server.filter(|_| settings.ftp_tls != FtpTls::Off).map(encryption),
    }
}

/// Returns the replaceable settings of classic connections.
fn classic_settings(config: &Config, sites: &[Site]) -> classic::Settings {
    classic::Settings { limits: config.live.classic_limits(), common: site_of_all(sites) }
}

/// Returns the tiers that a server takes part in, each local or remote.
fn tiers_of(fixed: &Fixed, accounts: Option<&Accounts>, is_front: bool) -> Tiers {
    let (here, nowhere) = (Some(TierLocation::Local), Tiers::default());
    let at = |is_here| Some(if is_here { TierLocation::Local } else { TierLocation::Remote });
    match accounts {
        Some(_) if is_front => {
            let (auth, store) = (fixed.auth == AuthAt::Embedded, fixed.store == StoreAt::Local);
            Tiers { front: here, auth: at(auth), store: at(store) }
        }
        Some(accounts) if accounts.auth.is_some() => Tiers { auth: here, ..nowhere },
        Some(_) => Tiers { store: here, ..nowhere },
        None if fixed.is_proxy() => nowhere,
        None => Tiers { front: here, ..nowhere },
    }
}
