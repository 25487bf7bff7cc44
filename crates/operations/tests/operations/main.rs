//! Operations in the simulator, with accounts in memory: the behaviour that all protocols rely on.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    missing_docs,
    reason = "tests"
)]

mod files;
mod lookups;
mod memory;
mod resuming;

use std::path::Path as Folder;
use std::sync::{Arc, Mutex};

use plimsoll_auth::{
    Argon2Settings, Auth, MemoryDirectory, Permission, Permissions, Quota, Secret, Settings,
};
use plimsoll_io::sim::{Faults, Host, Sim, seeds};
use plimsoll_io::{File, Fs, Io, Lease, Peer};
use plimsoll_operations::{
    AuditLog, Caller, Error, HomePath, IncomingUpload, LineSink, Meter, Operations, Parents, Protocol,
    Visitor,
};
use plimsoll_store::backend::FileRequest;
use plimsoll_store::{Condition, Expected, Opened, Path, Store};

use memory::MemoryStore;

const PASSWORD: &str = "correct horse";

/// The operations of a server, without connections.
struct Scene {
    io: Io,
    auth: Auth,
    operations: Operations,
    log: Arc<Lines>,
    xferlog: Arc<Lines>,
}

/// The lines of a log.
#[derive(Default)]
struct Lines(Mutex<Vec<String>>);

impl LineSink for Lines {
    fn take(&self, line: Vec<u8>) {
        self.0.lock().unwrap().push(String::from_utf8(line).unwrap());
    }
}

impl Lines {
    fn last(&self) -> String {
        self.0.lock().unwrap().last().cloned().unwrap_or_default()
    }

    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// Runs `test` with a few seeds, over files on a disk and over files in memory.
fn run(test: impl AsyncFn(Scene) + Copy + 'static) {
    run_over(open, test);
    run_over(|_| Store::of(Arc::<MemoryStore>::default()), test);
}

/// Opens a store on a disk.
fn open(host: &Host) -> Store {
    host.disk().mkdir("/data").unwrap();
    Store::open(&**host.disk(), Folder::new("/data"), Default::default()).unwrap()
}

/// Runs `test` with a few seeds.
fn run_over(open: fn(&Host) -> Store, test: impl AsyncFn(Scene) + Copy + 'static) {
    for seed in seeds(10) {
        let sim = Sim::new(seed, Faults::splits());
        let host = sim.host("one");
        let store = open(&host);
        let argon2 = Argon2Settings { memory_kib: 8, passes: 1, lanes: 1 };
        let settings = Settings { argon2, attempts: None, ..Settings::default() };
        let auth = Auth::local(Box::new(MemoryDirectory::new()), settings);
        let (log, xferlog) = (Arc::<Lines>::default(), Arc::<Lines>::default());
        let meter = Arc::<Meter>::default();
        let audit_log = AuditLog::new(meter, Some(log.clone()), Some(xferlog.clone()));
        let operations = Operations::new(auth.clone(), store, audit_log);
        let scene = Scene { io: host.io(), auth, operations, log, xferlog };
        sim.run(&host, async move { test(scene).await });
        assert_eq!(sim.panics(), Vec::<String>::new());
    }
}

impl Scene {
    /// Creates an account, and returns its caller as authenticated by password.
    async fn person(&self, name: &str) -> Caller {
        self.person_who_may(name, Permissions::default()).await
    }

    async fn person_who_may(&self, name: &str, may: Permissions) -> Caller {
        let password = Secret::from(PASSWORD);
        self.auth.add(&self.io, name, &password, Quota::default(), may).await.unwrap();
        let visitor =
            Visitor { io: self.io.clone(), peer: Peer::Unix, protocol: Protocol::Ftp, is_protected: true };
        self.operations.by_password(&visitor, name.as_bytes(), &password).await.unwrap()
    }

    /// Returns the same caller after an operator has changed the account's permissions.
    async fn with_permissions(&self, caller: &Caller, may: Permissions) -> Caller {
        self.auth.set_permissions(&self.io, &caller.identity.account.name, may).await.unwrap();
        self.operations.renew(caller).await.unwrap()
    }

    async fn put(&self, caller: &Caller, place: &HomePath, bytes: &[u8]) -> Result<(), Error> {
        let any = Condition::none();
        let mut upload =
            self.operations.upload(caller, (place, Parents::Needed), any, Expected::default()).await?;
        send(&mut upload, bytes).await?;
        upload.commit().await.map(drop)
    }

    async fn share(&self, caller: &Caller, path: &str, with: &str, permission: Permission) {
        let path = Path::parse(path.as_bytes()).unwrap();
        self.operations.share(caller, path, with, permission, None).await.unwrap();
    }

    /// Returns the contents of a file in the caller's home.
    async fn contents(&self, owner: &Caller, path: &str) -> Option<String> {
        let access = self.operations.look(owner, &own(path)).await.unwrap();
        let read = |fs: &dyn Fs, root: &File, name: &[u8]| {
            let file = fs.open_beneath(root, name)?;
            let mut bytes = vec![0; usize::try_from(fs.stat(&file)?.size).unwrap()];
            let mut filled = 0;
            while filled < bytes.len() {
                filled += fs.read_at(&file, &mut bytes[filled..], filled as u64)?;
            }
            Ok(bytes)
        };
        let bytes = match access.location.open(&self.io, FileRequest::default, read).await.ok()? {
            Opened::Local(bytes) => bytes,
            Opened::Remote(mut file) => file.next().await.unwrap().map_or_else(Vec::new, |all| all.to_vec()),
        };
        Some(String::from_utf8(bytes).unwrap())
    }
}

async fn send(upload: &mut IncomingUpload, bytes: &[u8]) -> Result<(), Error> {
    upload.write(Lease::owned(bytes.to_vec())).await
}

fn own(path: &str) -> HomePath {
    HomePath::own(Path::parse(path.as_bytes()).unwrap())
}

fn of(owner: &str, path: &str) -> HomePath {
    HomePath::shared(owner, Path::parse(path.as_bytes()).unwrap())
}

/// No permissions, not even the default ones.
const NOTHING: Permissions = Permissions::NONE;

/// All permissions except delete and operate.
const NO_DELETE: Permissions = Permissions { read: true, write: true, share: true, ..Permissions::NONE };
