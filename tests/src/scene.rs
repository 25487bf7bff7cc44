//! What a behaviour is told: where the server is, and how to reach it.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plimsoll_engine::SystemFs;
use plimsoll_io::sim::SimDisk;
use plimsoll_io::{Address, Cells, Fs, Handler, Io, Networks, Stop, Stream};
use plimsoll_proto::classic;
use plimsoll_proto::http::Limits;
use plimsoll_proto::http::site::{HotSet, HotSettings};

use crate::accounts::Accounts;
use crate::client::Client;
use crate::ftp::Ftp;
use crate::tree::Tree;
use crate::under::Engine;

/// What is served, before it is known under which engine.
pub struct Scenario {
    pub tree: Tree,
    pub limits: Limits,
    /// What is kept ready of the files.
    pub hot: HotSettings,
    pub protocol: Protocol,
    /// With it, FTP is served beside, at [`Scene::ftp`].
    pub ftp: Option<Ftp>,
    /// With it, classic is served beside, at [`Scene::classic`]; the scenario has accounts.
    pub classic: Option<classic::Limits>,
    /// With these, there are accounts; without, sites alone.
    pub accounts: Option<plimsoll_auth::Settings>,
    /// Whether the accounts' files are at a store apart.
    pub apart: bool,
    /// Whether uploads wait at the front until all of each has come, on their way to a store apart.
    pub spool: bool,
    /// The peers that are believed when they name a request's client.
    pub proxies: Networks,
    /// Whether connections begin with a header of the PROXY protocol, those of `proxies` or all.
    pub proxy_protocol: bool,
    /// How long connections may go on after the order to stop.
    pub grace: Duration,
    /// Whether the behaviour makes the server panic on purpose.
    pub panics: bool,
}

/// Makes one stream of another: a handshake.
pub type Wrap = fn(Io, Stream) -> Pin<Box<dyn Future<Output = std::io::Result<Stream>>>>;

/// What the server speaks.
pub enum Protocol {
    /// The real HTTP server over the tree, with a few services for tests beside it (`service.rs`).
    Http,
    /// The same, over another transport: what each accepted stream becomes before it is served.
    HttpOver(Wrap),
    /// Anything: made for each thread that serves.
    Of(fn(Io) -> Rc<dyn Handler>),
}

/// As a server has it unless it is told otherwise, but smaller.
pub const HOT: HotSettings = HotSettings { bytes_max: 1 << 20, files_max: 16, time: Duration::from_secs(1) };

/// The same, where a behaviour changes files as another program would, and looks at once.
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
            apart: false,
            spool: false,
            proxies: Networks::default(),
            proxy_protocol: false,
            grace: Duration::from_secs(20),
            panics: false,
        }
    }
}

/// Where the served folder is.
#[derive(Clone)]
pub enum Disk {
    Real(PathBuf),
    Simulated(Arc<SimDisk>),
}

/// The folder on a simulated disk that is served.
pub const SIMULATED_ROOT: &str = "/site";

/// The folder on a simulated disk that accounts' files are in.
pub const SIMULATED_DATA: &str = "/data";

/// A running server, and an engine to reach it by.
#[derive(Clone)]
pub struct Scene {
    /// The client's engine.
    pub io: Io,
    /// Where the server listens.
    pub at: Address,
    /// Under which engine this runs.
    pub engine: Engine,
    /// The server's order to stop.
    pub stop: Stop,
    /// Counts the server's open connections.
    pub connections: Rc<dyn Fn() -> usize>,
    /// Lines of the access log so far.
    pub log: Arc<crate::service::LogLines>,
    pub(crate) ftp_at: Option<Address>,
    pub(crate) classic_at: Option<Address>,
    pub(crate) accounts: Option<Accounts>,
    pub(crate) begun: Arc<Cells>,
    /// Files that the server keeps ready.
    pub hot: Arc<HotSet>,
    pub(crate) disk: Disk,
}

impl Scene {
    /// A connection to the server.
    pub async fn connect(&self) -> Client {
        Client::new(&self.io, self.io.connect(&self.at).await.expect("the server accepts connections"))
    }

    /// Where FTP is served.
    pub fn ftp(&self) -> &Address {
        self.ftp_at.as_ref().expect("the scenario has FTP")
    }

    /// Where classic is served.
    pub fn classic(&self) -> &Address {
        self.classic_at.as_ref().expect("the scenario has classic")
    }

    /// Connections that the server has open.
    pub fn open(&self) -> usize {
        (self.connections)()
    }

    /// Requests whose answer the server has begun to make.
    pub fn begun(&self) -> u64 {
        self.begun[0].load(Ordering::Relaxed)
    }

    /// Where the served folder is, as the server's engine names it.
    pub fn root(&self) -> &Path {
        match &self.disk {
            Disk::Real(root) => root,
            Disk::Simulated(_) => Path::new(SIMULATED_ROOT),
        }
    }

    /// Where the server's files are.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// The file system of the server's machine.
    pub fn fs(&self) -> &dyn Fs {
        match &self.disk {
            Disk::Real(_) => &SystemFs,
            Disk::Simulated(disk) => &**disk,
        }
    }

    /// Changes a served file (in place, as another program would).
    pub fn write(&self, name: &str, bytes: &[u8]) {
        match &self.disk {
            Disk::Real(root) => std::fs::write(root.join(name), bytes).unwrap(),
            Disk::Simulated(disk) => {
                disk.write(Path::new(SIMULATED_ROOT).join(name), bytes.to_vec()).unwrap()
            }
        }
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

    /// Takes away the right to read a served file. Nobody can take it from root on a real disk.
    pub fn forbid(&self, name: &str) {
        match &self.disk {
            Disk::Real(root) => {
                let none = std::os::unix::fs::PermissionsExt::from_mode(0o0);
                std::fs::set_permissions(root.join(name), none).unwrap();
            }
            Disk::Simulated(disk) => disk.forbid(Path::new(SIMULATED_ROOT).join(name)).unwrap(),
        }
    }

    /// Waits until `reached`, looking again every few milliseconds; the behaviour's own time limit ends it.
    pub async fn until(&self, reached: impl Fn() -> bool) {
        self.until_every(Duration::from_millis(2), reached).await;
    }

    /// Waits until `reached`, looking again after each `pause`.
    pub async fn until_every(&self, pause: Duration, reached: impl Fn() -> bool) {
        while !reached() {
            self.io.sleep(pause).await;
        }
    }

    /// One request on a connection of its own, which the server is asked to close: the answer.
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
