//! The parameters of a behaviour: the server's address, and clients to reach it.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plimsoll_channel::limits::SLOTS;
use plimsoll_channel::{Bodies, Connector, Meter};
use plimsoll_client::ftp::{Encryption, TlsStart};
use plimsoll_content::{HotCache, HotSettings};
use plimsoll_engine::SystemFs;
use plimsoll_io::sim::SimDisk;
use plimsoll_io::{Address, Cells, Existing, Fs, Handler, Io, Networks, Setup, Stop, Stream};
use plimsoll_proto::classic;
use plimsoll_proto::http::{Cors, Limits};
use plimsoll_tls::Connector as TlsConnector;

use crate::accounts::Accounts;
use crate::client::Client;
use crate::ftp::{Ftp, FtpTls};
use crate::proxy::ProxySettings;
use crate::tls::{SERVER_NAME, connector, secured};
use crate::tree::Tree;
use crate::under::Engine;

/// The configuration to serve, independent of the engine.
pub struct Scenario {
    pub tree: Tree,
    pub limits: Limits,
    /// The settings of the hot cache.
    pub hot: HotSettings,
    pub protocol: Protocol,
    /// With it, FTP is served too, at [`Scene::ftp`].
    pub ftp: Option<Ftp>,
    /// With it, classic is served too, at [`Scene::classic`]. It needs `accounts`.
    pub classic: Option<classic::Limits>,
    /// With these, there are accounts; without, only sites.
    pub accounts: Option<plimsoll_auth::Settings>,
    /// Whether the accounts' files are in a remote store.
    pub remote: bool,
    /// Whether the front buffers each upload until it is complete before it sends it to a remote store.
    pub spool: bool,
    /// The trusted proxies, which may name a request's client.
    pub proxies: Networks,
    /// Whether connections begin with a header of the PROXY protocol: those from `proxies`, or all.
    pub proxy_protocol: bool,
    /// The origins whose pages may read responses.
    pub cors: Cors,
    /// With it, HTTP is served over channels instead of TCP, and bodies reach the clients, or the proxy, as
    /// it says.
    pub channel: Option<Bodies>,
    /// The slots of the server's side of a channel.
    pub channel_slots: usize,
    /// How long connections may continue after the order to stop.
    pub grace: Duration,
    /// Whether the behaviour makes the server panic on purpose.
    pub panics: bool,
    /// Whether behaviours transfer megabytes: the simulator runs them with fewer seeds.
    pub is_large: bool,
    /// With it, a proxy is in front of the server, and clients connect to the proxy.
    pub proxy: Option<ProxySettings>,
    /// Whether clients reach the server, or the proxy, over TLS.
    pub is_encrypted: bool,
}

/// Wraps a stream into another after a handshake.
pub type Wrap = fn(Io, Stream) -> Pin<Box<dyn Future<Output = std::io::Result<Stream>>>>;

/// The protocol of the server.
pub enum Protocol {
    /// The real HTTP server over the tree, with a few test services (`service.rs`).
    Http,
    /// The same, over another transport: each accepted stream is wrapped before it is served.
    HttpOver(Wrap),
    /// Any handler, created once for each serving thread.
    Of(fn(Io) -> Rc<dyn Handler>),
}

/// As a server's defaults, but smaller.
pub const HOT: HotSettings = HotSettings { bytes_max: 1 << 20, files_max: 16, time: Duration::from_secs(1) };

/// The same, for behaviours that change files as another program would, and read them immediately.
pub const LOOKED_UP_EACH_TIME: HotSettings = HotSettings { time: Duration::ZERO, ..HOT };

impl Default for Scenario {
    fn default() -> Scenario {
        Scenario {
            tree: Tree::new(),
            limits: Limits::default(),
            hot: HOT,
            protocol: Protocol::Http,
            ftp: None,
            classic: None,
            accounts: None,
            remote: false,
            spool: false,
            proxies: Networks::default(),
            proxy_protocol: false,
            cors: Cors::default(),
            channel: None,
            channel_slots: SLOTS,
            grace: Duration::from_secs(20),
            panics: false,
            is_large: false,
            proxy: None,
            is_encrypted: false,
        }
    }
}

impl Scenario {
    /// Returns the scenario with TLS: clients of HTTP and of FTP encrypt their connections.
    pub(crate) fn over_tls(mut self) -> Scenario {
        self.is_encrypted = true;
        self.ftp.iter_mut().for_each(|ftp| ftp.tls = ftp.tls.or(Some(FtpTls::default())));
        self
    }

    /// Returns the TLS of FTP.
    pub(crate) fn ftp_tls(&self) -> Option<FtpTls> {
        self.ftp.as_ref().and_then(|ftp| ftp.tls)
    }

    /// Returns how bodies reach clients that are connected by channels.
    pub(crate) fn channel_of_clients(&self) -> Option<Bodies> {
        self.channel.filter(|_| self.proxy.is_none())
    }

    /// Encrypts the server that clients connect to, if they are to reach it so.
    pub(crate) fn for_clients(&self, setup: Setup) -> Setup {
        if self.is_encrypted { secured(setup) } else { setup }
    }
}

/// The disk with the served folder.
#[derive(Clone)]
pub enum Disk {
    Real(PathBuf),
    Simulated(Arc<SimDisk>),
}

/// The served folder on a simulated disk.
pub const SIMULATED_ROOT: &str = "/site";

/// The folder of the accounts' files on a simulated disk.
pub const SIMULATED_DATA: &str = "/data";

/// A running server, and an engine for its clients.
#[derive(Clone)]
pub struct Scene {
    /// The client's engine.
    pub io: Io,
    /// The server's address for HTTP.
    pub at: Address,
    /// The address of the server behind the proxy, if there is one.
    pub origin: Option<Address>,
    /// The engine that serves.
    pub engine: Engine,
    /// The server's order to stop.
    pub stop: Stop,
    /// Counts the server's open connections.
    pub connections: Rc<dyn Fn() -> usize>,
    /// Lines of the access log so far.
    pub log: Arc<crate::service::LogLines>,
    pub(crate) ftp_at: Option<Address>,
    /// The TLS of FTP.
    pub(crate) ftp_tls: Option<FtpTls>,
    pub(crate) classic_at: Option<Address>,
    pub(crate) accounts: Option<Accounts>,
    pub(crate) begun: Arc<Cells>,
    /// The server's hot cache.
    pub hot: Arc<HotCache>,
    pub(crate) disk: Disk,
    /// The disk of the proxy's machine, if there is a proxy.
    pub(crate) proxy_disk: Option<Disk>,
    /// Connects channels, if the scenario serves them.
    pub(crate) connector: Option<Rc<Connector>>,
    /// Encrypts connections, if the scenario has TLS.
    pub(crate) tls: Option<TlsConnector>,
    /// The server's counts of channels, unless it has a process for each connection.
    pub channels: Arc<Meter>,
}

impl Scene {
    /// Connects to the server.
    pub async fn connect(&self) -> Client {
        self.try_connect().await.expect("the server accepts connections")
    }

    /// Connects to the server, if it accepts the connection.
    pub async fn try_connect(&self) -> std::io::Result<Client> {
        let stream = match &self.connector {
            Some(connector) => connector.connect(&self.at).await,
            None => self.io.connect(&self.at).await,
        };
        let mut stream = stream?;
        if let Some(tls) = &self.tls {
            tls.connect(&self.io, &mut stream, SERVER_NAME).await.map_err(std::io::Error::other)?;
        }
        Ok(Client::new(&self.io, stream))
    }

    /// Returns the scheme of the server's URLs.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Returns the server's address for FTP.
    pub fn ftp(&self) -> &Address {
        self.ftp_at.as_ref().expect("the scenario has FTP")
    }

    /// Returns the encryption of sessions with the server for FTP, if it has TLS.
    pub fn ftp_encryption(&self) -> Option<Encryption> {
        let start = if self.ftp_tls?.is_implicit { TlsStart::Implicit } else { TlsStart::Explicit };
        Some(Encryption { connector: connector(&["ftp"]), name: SERVER_NAME.to_owned(), start })
    }

    /// Returns the server's address for classic.
    pub fn classic(&self) -> &Address {
        self.classic_at.as_ref().expect("the scenario has classic")
    }

    /// Returns the number of the server's open connections.
    pub fn open(&self) -> usize {
        (self.connections)()
    }

    /// Returns the number of requests for which the server has begun an answer.
    pub fn begun(&self) -> u64 {
        self.begun[0].load(Ordering::Relaxed)
    }

    /// Returns the path of the served folder on the server's file system.
    pub fn root(&self) -> &Path {
        match &self.disk {
            Disk::Real(root) => root,
            Disk::Simulated(_) => Path::new(SIMULATED_ROOT),
        }
    }

    /// Returns the disk with the server's files.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Returns the file system of the server's machine.
    pub fn fs(&self) -> &dyn Fs {
        match &self.disk {
            Disk::Real(_) => &SystemFs,
            Disk::Simulated(disk) => &**disk,
        }
    }

    /// Returns the file system of the proxy's machine.
    pub fn proxy_fs(&self) -> &dyn Fs {
        match &self.proxy_disk {
            Some(Disk::Simulated(disk)) => &**disk,
            Some(Disk::Real(_)) | None => &SystemFs,
        }
    }

    /// Overwrites a served file in place, as another program would.
    pub fn write(&self, name: &str, bytes: &[u8]) {
        match &self.disk {
            Disk::Real(root) => std::fs::write(root.join(name), bytes).unwrap(),
            Disk::Simulated(disk) => {
                disk.write(Path::new(SIMULATED_ROOT).join(name), bytes.to_vec()).unwrap()
            }
        }
    }

    /// Replaces a served file by another one of the same name, as another program would.
    pub fn replace(&self, name: &str, bytes: &[u8]) {
        let (folder, name) = name.rsplit_once('/').unwrap_or(("", name));
        let root = self.fs().open_root(&self.root().join(folder)).unwrap();
        let file = self.fs().create(&root, b"replacement").unwrap();
        let mut written = 0;
        while written < bytes.len() {
            written += self.fs().write_at(&file, &bytes[written..], written as u64).unwrap();
        }
        self.fs().rename(&root, b"replacement", &root, name.as_bytes(), Existing::Replaced).unwrap();
    }

    /// Removes a served file.
    pub fn remove(&self, name: &str) {
        match &self.disk {
            Disk::Real(root) => std::fs::remove_file(root.join(name)).unwrap(),
            Disk::Simulated(disk) => disk.remove(Path::new(SIMULATED_ROOT).join(name)).unwrap(),
        }
    }

    /// Cuts a served file to `len` bytes.
    pub fn truncate(&self, name: &str, len: usize) {
        match &self.disk {
            Disk::Real(root) => {
                let file = std::fs::File::options().write(true).open(root.join(name)).unwrap();
                file.set_len(len as u64).unwrap();
            }
            Disk::Simulated(disk) => disk.truncate(Path::new(SIMULATED_ROOT).join(name), len).unwrap(),
        }
    }

    /// Removes the permission to read a served file. On a real disk, it does not bind root.
    pub fn forbid(&self, name: &str) {
        match &self.disk {
            Disk::Real(root) => {
                let none = std::os::unix::fs::PermissionsExt::from_mode(0o0);
                std::fs::set_permissions(root.join(name), none).unwrap();
            }
            Disk::Simulated(disk) => disk.forbid(Path::new(SIMULATED_ROOT).join(name)).unwrap(),
        }
    }

    /// Waits until `reached`, polling every few milliseconds; the behaviour's time limit bounds the wait.
    pub async fn until(&self, reached: impl Fn() -> bool) {
        self.until_every(Duration::from_millis(2), reached).await;
    }

    /// Waits until `reached`, polling after each `pause`.
    pub async fn until_every(&self, pause: Duration, reached: impl Fn() -> bool) {
        while !reached() {
            self.io.sleep(pause).await;
        }
    }

    /// Sends one request on a new connection with `Connection: close`, and returns the answer.
    pub async fn get(&self, target: &str) -> crate::Answer {
        self.get_with(target, "").await
    }

    /// As [`Scene::get`], with more field lines, each ended by CRLF.
    pub async fn get_with(&self, target: &str, fields: &str) -> crate::Answer {
        let mut client = self.connect().await;
        let answer = client.get_with(target, &format!("Connection: close\r\n{fields}")).await;
        client.expect_end().await;
        answer
    }
}
