//! The store in the simulator: its operations, with any seed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::needless_pass_by_value,
    missing_docs,
    reason = "tests"
)]

mod changes;
mod other_names;
mod owners;
mod parts;
mod power;
mod power_folders;
mod power_trash;
mod quotas;
mod recorded;
mod resumable;
mod resumed;
mod sweeping;
mod syncs;
mod trash;
mod trash_room;
mod uploads;
mod volumes;

use std::cell::Cell;
use std::path::Path as Folder;
use std::pin::pin;
use std::time::Duration;

use plimsoll_io::sim::{Faults, Host, Sim};
use plimsoll_io::{Io, Lease};
use plimsoll_store::limits::BUFFERED_TIME;
use plimsoll_store::{Committed, Error, Expected, Home, Path, Quota, Settings, Store, Terms, Upload};

/// The data folder on a simulated disk.
const DATA: &str = "/data";
/// Seeds that each test runs with.
const SEEDS: u64 = 20;

/// A simulated machine with a store, and alice's home in it.
#[derive(Clone)]
struct Scene {
    io: Io,
    host: Host,
    store: Store,
    home: Home,
}

impl Scene {
    /// Returns the contents of a file of alice's home.
    fn contents(&self, path: &str) -> Option<Vec<u8>> {
        contents(&self.host, &format!("{DATA}/accounts/alice/files/{path}"))
    }

    /// The names in alice's pending folder, except the trash and the links for mounted file systems.
    fn pending(&self) -> Vec<String> {
        let mut names = names(&self.host, &format!("{DATA}/accounts/alice/pending"));
        names.retain(|name| !name.ends_with(".volume") && name != "staging-name" && name != "trash");
        names
    }

    /// Returns the contents of the only file in alice's pending folder.
    fn pending_bytes(&self) -> Option<Vec<u8>> {
        let [name] = &self.pending()[..] else { return None };
        contents(&self.host, &format!("{DATA}/accounts/alice/pending/{name}"))
    }

    /// Waits long enough for all handed-off work to be done.
    async fn settle(&self) {
        self.io.sleep(Duration::from_secs(1)).await;
    }

    /// Returns the store as a server that starts now finds it.
    async fn started_again(&self) -> Scene {
        let store = open(&self.host);
        let home = store.home(&self.io, 1, "alice").await.unwrap();
        Scene { store, home, ..self.clone() }
    }

    /// Asserts that the home's recorded usage is that of a fresh count.
    async fn assert_counted(&self) {
        let again = self.started_again().await;
        let (known, counted) = (self.home.usage(&self.io).await, again.home.usage(&self.io).await);
        assert_eq!(known.unwrap(), counted.unwrap());
    }
}

/// The time for which interrupted uploads stay resumable in these tests.
const KEPT: Duration = Duration::from_secs(60);

thread_local! {
    /// The time for which removed entries stay in the trash. Most tests are about homes without one.
    static TRASH_TIME: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn settings() -> Settings {
    Settings { upload_kept_time: KEPT, trash_time: TRASH_TIME.get(), ..Settings::default() }
}

fn open(host: &Host) -> Store {
    try_open(host).unwrap()
}

/// As [`open`], on a disk whose power may be cut.
fn try_open(host: &Host) -> std::io::Result<Store> {
    Store::open(&**host.disk(), Folder::new(DATA), settings())
}

fn names(host: &Host, folder: &str) -> Vec<String> {
    use plimsoll_io::Fs as _;
    let disk = host.disk();
    let folder = disk.open_root(Folder::new(folder)).unwrap();
    let entries = disk.names(&folder, usize::MAX).unwrap();
    entries.into_iter().map(|entry| String::from_utf8(entry.name).unwrap()).collect()
}

fn contents(host: &Host, path: &str) -> Option<Vec<u8>> {
    use plimsoll_io::Fs as _;
    let disk = host.disk();
    let root = disk.open_root(Folder::new("/")).unwrap();
    let file = disk.open_beneath(&root, path.trim_start_matches('/').as_bytes()).ok()?;
    let mut bytes = vec![0; usize::try_from(disk.stat(&file).unwrap().size).unwrap()];
    let mut filled = 0;
    while filled < bytes.len() {
        filled += disk.read_at(&file, &mut bytes[filled..], filled as u64).unwrap();
    }
    Some(bytes)
}

/// Runs a test with each seed.
fn with_home<F: Future<Output = ()> + 'static>(test: impl Fn(Scene) -> F + Copy + 'static) {
    for seed in 0..SEEDS {
        let sim = Sim::new(seed, Faults::splits());
        let host = sim.host("server");
        host.disk().mkdir(DATA).unwrap();
        if seed % 2 == 1 {
            // The writes of small uploads are then done in place.
            host.disk().keep_in_memory();
        }
        let (io, store) = (host.io(), open(&host));
        let on = host.clone();
        sim.run(&host, async move {
            let home = store.home(&io, 1, "alice").await.unwrap();
            test(Scene { io, host: on, store, home }).await;
        });
        assert!(sim.panics().is_empty(), "seed {seed}: {:?}", sim.panics());
    }
}

fn path(text: &str) -> Path {
    Path::parse(text.as_bytes()).unwrap()
}

fn any(to: &str) -> Terms {
    Terms::any(path(to), Quota::default())
}

/// Sends bytes in pieces of `piece` bytes.
async fn send(upload: &mut Upload, bytes: &[u8], piece: usize) -> Result<(), Error> {
    for piece in bytes.chunks(piece) {
        upload.write(Lease::owned(piece.to_vec())).await?;
    }
    Ok(())
}

/// Sends bytes, more than one receive, so slowly that all of them are written.
async fn send_slowly(io: &Io, upload: &mut Upload, bytes: &[u8]) -> Result<(), Error> {
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    send(upload, first, first.len()).await?;
    io.sleep(BUFFERED_TIME).await;
    send(upload, rest, rest.len()).await
}

/// Receives nothing for `time`, as a connection does whose client is silent.
async fn nothing_comes(scene: &Scene, upload: &mut Upload, time: Duration) {
    let late = pin!(scene.io.sleep(time));
    upload.meanwhile(late).await.unwrap();
}

async fn put(io: &Io, home: &Home, terms: Terms, bytes: &[u8]) -> Result<Committed, Error> {
    let mut upload = home.upload(io, terms, Expected::default()).await?;
    send(&mut upload, bytes, 1000).await?;
    upload.commit().await
}
