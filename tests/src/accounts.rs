//! Accounts for behaviour tests: the parts of a server with accounts, and test users with a session.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_auth::{
    Argon2Settings, Auth, AuthServer, MemoryDirectory, Permissions, Quota, Secret, ServerAddress, Settings,
    SignUp,
};
use plimsoll_client::http::Url;
use plimsoll_content::HotCache;
use plimsoll_io::{Address, File, FileKind, Fs, Networks, Setup};
use plimsoll_operations::{AuditLog, LineSink, Meter, Operations};
use plimsoll_proto::Current;
use plimsoll_proto::http::{AccessLog, Api, Http, Limits, Routes, RpcServer, Snapshot};
use plimsoll_rpc::SecretCheck;
use plimsoll_store::Store;
use plimsoll_web::{Web, with_store};
use plimsoll_wire::http::head::HeadLimits;

use crate::client::{Answer, Client};
use crate::scene::{Disk, Scene};
use crate::service::{LogLines, status_page};

/// Settings with password hashing at minimal cost, open sign-up and no limit on login attempts.
pub fn settings() -> Settings {
    let argon2 = Argon2Settings { memory_kib: 8, passes: 1, lanes: 1 };
    Settings { argon2, sign_up: SignUp::Open, attempts: None, ..Settings::default() }
}

/// How long interrupted uploads are kept: short enough for a simulation to wait for.
pub const UPLOAD_KEPT_TIME: Duration = Duration::from_secs(600);

/// The accounts, operations and logs of a server.
#[derive(Clone)]
pub struct Accounts {
    pub auth: Auth,
    pub operations: Operations,
    /// Lines of the transfer log so far.
    pub transfers: Arc<LogLines>,
    /// Lines of the xferlog so far.
    pub xferlog: Arc<LogLines>,
    data: PathBuf,
}

impl LineSink for LogLines {
    fn take(&self, line: Vec<u8>) {
        plimsoll_proto::http::LogSink::take(self, line);
    }
}

/// The metrics and logs of operations.
#[derive(Clone, Default)]
pub(crate) struct OperationLogs {
    pub(crate) meter: Arc<Meter>,
    pub(crate) transfers: Arc<LogLines>,
    pub(crate) xferlog: Arc<LogLines>,
}

/// Creates accounts in memory.
pub(crate) fn in_memory(settings: Settings) -> Auth {
    Auth::local(Box::new(MemoryDirectory::new()), settings)
}

impl Accounts {
    /// Opens accounts in memory, with their files in `store` in the folder `data`.
    pub(crate) fn open(store: Store, data: &Path, settings: Settings) -> Accounts {
        Accounts::of(in_memory(settings), store, data, OperationLogs::default())
    }

    /// Opens the accounts of `auth`, with their files in `store` in the folder `data`.
    pub(crate) fn of(auth: Auth, store: Store, data: &Path, logs: OperationLogs) -> Accounts {
        let OperationLogs { meter, transfers, xferlog } = logs;
        let sink = |log: &Arc<LogLines>| Some(Arc::clone(log) as Arc<dyn LineSink>);
        let audit_log = AuditLog::new(meter, sink(&transfers), sink(&xferlog));
        let operations = Operations::new(auth.clone(), store, audit_log);
        Accounts { auth, operations, transfers, xferlog, data: data.to_owned() }
    }

    pub(crate) fn api(&self) -> Arc<dyn Api> {
        Web::new(self.operations.clone())
    }

    /// Returns each line of the transfer log.
    pub fn lines(&self) -> Vec<serde_json::Value> {
        self.transfers.text().lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

/// The shared secret of a remote store and its front.
const SECRET: &str = "only the tiers know";

/// Opens the store of homes in the existing folder `data`.
pub(crate) fn open_store(fs: &dyn Fs, data: &Path) -> Store {
    let kept = plimsoll_store::Settings { upload_kept_time: UPLOAD_KEPT_TIME, ..Default::default() };
    Store::open(fs, data, kept).expect("the folder is there")
}

/// Serves a store to its fronts, with the hot cache that the scene observes. It waits longer for fronts
/// than they wait for their clients.
pub(crate) fn store_server(store: Store, hot: &Arc<HotCache>) -> Setup {
    tier_server(with_store(rpc_server(), store), hot)
}

/// Serves RPC requests of connection processes for accounts and files.
pub(crate) fn rpc_server_setup(auth: Auth, store: Store, hot: &Arc<HotCache>) -> Setup {
    let accounts = Arc::new(AuthServer::for_connection_processes(auth));
    tier_server(with_store(rpc_server().with(accounts), store), hot)
}

fn rpc_server() -> RpcServer {
    RpcServer::new(SecretCheck::new(Secret::from(SECRET)), "a test", "test")
}

fn tier_server(tier: RpcServer, hot: &Arc<HotCache>) -> Setup {
    let time = Duration::from_secs(600);
    let head = HeadLimits { bytes_max: 64 << 10, ..HeadLimits::default() };
    let limits = Limits { head, receive_time: time, send_time: time, ..Limits::default() };
    let service = Routes::with_api(Vec::new(), status_page(), Arc::new(tier));
    let current = Current::new(Snapshot { limits, proxies: Networks::default(), service });
    let hot = Arc::clone(hot);
    Arc::new(move |io| {
        let log = AccessLog::new(None);
        Rc::new(Http::new(io, Arc::clone(&current), log, Arc::default(), Arc::clone(&hot)))
    })
}

/// Connects to the store that is served at an address. With `spool`, uploads to it are buffered in that
/// folder.
pub(crate) fn store_at(at: &Address, spool: Option<File>) -> Store {
    let server = server_address(at);
    Store::remote(plimsoll_store::remote::StoreAddress { server, directory: String::new(), spool })
}

/// Connects to the accounts that the program's process serves at an address to its connection processes.
pub(crate) fn auth_beside(at: &Address, settings: Settings) -> Auth {
    Auth::of_main_process(server_address(at), settings)
}

fn server_address(at: &Address) -> ServerAddress {
    ServerAddress { url: url_of(at), secret: Secret::from(SECRET), resolve: None, tls: None }
}

/// Returns an address in the form that the HTTP client takes.
fn url_of(at: &Address) -> Url {
    let url = match at {
        Address::Ip(at) => format!("http://{at}"),
        Address::Unix(_) => at.to_string(),
    };
    url.parse().expect("an address is a URL's")
}

/// Creates the folder in which a front buffers uploads.
pub(crate) fn open_spool(fs: &dyn Fs, data: &Path) -> File {
    let data = fs.open_root(data).expect("the folder is there");
    fs.make_folder(&data, b"spool").expect("there is none yet");
    fs.open_beneath(&data, b"spool").expect("it was made")
}

/// The contents of a folder: files with their bytes, folders with `None`.
pub type FolderContents = BTreeMap<String, Option<Vec<u8>>>;

impl Scene {
    /// Returns the accounts of the server.
    pub fn accounts(&self) -> &Accounts {
        self.accounts.as_ref().expect("the scenario has accounts")
    }

    /// Returns the contents of an account's home, read directly from the disk.
    pub fn home(&self, name: &str) -> FolderContents {
        self.held(&self.accounts().data.join("accounts").join(name).join("files"))
    }

    /// Returns the stored files of an account's pending uploads, without its trash.
    pub fn pending(&self, name: &str) -> FolderContents {
        let mut held = self.held(&self.accounts().data.join("accounts").join(name).join("pending"));
        held.retain(|path, _| path != "trash" && !path.starts_with("trash/"));
        held
    }

    /// Returns the path of an account's files on the disk.
    pub fn home_folder(&self, name: &str) -> PathBuf {
        self.accounts().data.join("accounts").join(name).join("files")
    }

    /// Creates a symbolic link in a home, as an operator with a shell might.
    pub fn link_into_home(&self, name: &str, link: &str, target: &str) {
        let at = self.home_folder(name).join(link);
        match &self.disk {
            Disk::Real(_) => std::os::unix::fs::symlink(target, at).unwrap(),
            Disk::Simulated(disk) => disk.symlink(at, target).unwrap(),
        }
    }

    /// Removes an entry of a home without the server, of a folder with all its contents.
    pub fn remove_in_home(&self, name: &str, entry: &str) {
        let at = self.home_folder(name).join(entry);
        match &self.disk {
            Disk::Real(_) if at.is_dir() => std::fs::remove_dir_all(at).unwrap(),
            Disk::Real(_) => std::fs::remove_file(at).unwrap(),
            Disk::Simulated(disk) => disk.remove(at).unwrap(),
        }
    }

    /// Writes a file into a home, which exists, without the server, as an operator might. Creates its folder.
    pub fn write_home(&self, name: &str, file: &str, bytes: &[u8]) {
        let at = self.home_folder(name).join(file);
        match &self.disk {
            Disk::Real(_) => {
                std::fs::create_dir_all(at.parent().expect("a folder")).unwrap();
                std::fs::write(at, bytes).unwrap();
            }
            Disk::Simulated(disk) => disk.write(at, bytes).unwrap(),
        }
    }

    fn held(&self, folder: &Path) -> FolderContents {
        let mut held = FolderContents::new();
        match &self.disk {
            Disk::Real(_) => gather(&plimsoll_engine::SystemFs, folder, "", &mut held),
            Disk::Simulated(disk) => gather(&**disk, folder, "", &mut held),
        }
        held
    }
}

fn gather(fs: &dyn Fs, folder: &Path, prefix: &str, held: &mut FolderContents) {
    let Ok(root) = fs.open_root(folder) else { return };
    for entry in fs.names(&root, usize::MAX).unwrap() {
        let name = format!("{prefix}{}", String::from_utf8_lossy(&entry.name));
        if entry.stat.kind == FileKind::Folder {
            let inner = folder.join(std::str::from_utf8(&entry.name).expect("UTF-8"));
            gather(fs, &inner, &format!("{name}/"), held);
            held.insert(name, None);
            continue;
        }
        let Ok(file) = fs.open_beneath(&root, &entry.name) else { continue };
        // Of a link, the file that it leads to.
        let stat = fs.stat(&file).unwrap();
        if stat.kind == FileKind::Folder {
            held.insert(name, None);
            continue;
        }
        let mut bytes = vec![0; usize::try_from(stat.size).unwrap()];
        let mut filled = 0;
        while filled < bytes.len() {
            match fs.read_at(&file, &mut bytes[filled..], filled as u64).unwrap() {
                0 => break,
                count => filled += count,
            }
        }
        held.insert(name, Some(bytes));
    }
}

/// The password of every test account.
pub const PASSWORD: &str = "correct horse";

/// A test user with an account, a session and a separate connection.
pub struct Person {
    pub name: String,
    pub token: String,
    pub client: Client,
}

impl Person {
    /// Creates an account without quota and logs in.
    pub async fn new(scene: &Scene, name: &str) -> Person {
        Person::with(scene, name, Quota::default(), Permissions::default()).await
    }

    /// Creates an account and logs in.
    pub async fn with(scene: &Scene, name: &str, quota: Quota, permissions: Permissions) -> Person {
        let auth = &scene.accounts().auth;
        auth.add(&scene.io, name, &Secret::from(PASSWORD), quota, permissions).await.expect("an account");
        Person::again(scene, name).await
    }

    /// Logs in once more, on another connection.
    pub async fn again(scene: &Scene, name: &str) -> Person {
        let (auth, client) = (&scene.accounts().auth, scene.connect().await);
        let peer = plimsoll_io::Peer::Unix;
        let begun = auth.log_in(&scene.io, name, &Secret::from(PASSWORD), &peer).await.expect("a session");
        Person { name: name.to_owned(), token: begun.token, client }
    }

    /// Returns the `Authorization` field with the session's token.
    pub fn field(&self) -> String {
        format!("Authorization: Bearer {}\r\n", self.token)
    }

    /// Sends one request with the user's token; `fields` each end in CRLF.
    pub async fn ask(&mut self, method: &str, target: &str, fields: &str, body: impl AsRef<[u8]>) -> Answer {
        let fields = format!("{}{fields}", self.field());
        self.client.ask(method, target, &fields, body).await
    }

    pub async fn get(&mut self, target: &str) -> Answer {
        self.ask("GET", target, "", "").await
    }

    pub async fn put(&mut self, target: &str, body: impl AsRef<[u8]>) -> Answer {
        self.ask("PUT", target, "", body).await
    }

    pub async fn delete(&mut self, target: &str) -> Answer {
        self.ask("DELETE", target, "", "").await
    }

    /// Sends a request with a JSON body.
    pub async fn send(&mut self, method: &str, target: &str, body: &serde_json::Value) -> Answer {
        self.ask(method, target, "Content-Type: application/json\r\n", body.to_string()).await
    }

    /// Creates a share and returns its id.
    pub async fn share(&mut self, path: &str, with: &str, permission: &str) -> String {
        let new = serde_json::json!({ "path": path, "with": with, "permission": permission });
        let answer = self.send("POST", "/api/shares", &new).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        answer.json()["id"].as_str().expect("an id").to_owned()
    }
}
