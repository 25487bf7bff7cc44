//! Files that an origin passes to a proxy with a cache: how many stay open, and when they are closed.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use plimsoll_tests::binary::{EngineKind, Server, command, free_address, process, until};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;

use super::proxy_cache::make_old;
use super::reverse_proxy::curl;

/// The proxy's limit of descriptors, of which the cache has an eighth.
const OPEN_FILES: usize = 512;
/// More files than it may keep.
const FILES: usize = OPEN_FILES / 8 + 40;
/// More than the origin sends from memory.
const BYTES: usize = 40_000;

/// A site whose files are fresh for a day.
fn old_site() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in 0..FILES {
        let path = folder.path().join(file.to_string());
        std::fs::write(&path, noise(file as u64, BYTES)).unwrap();
        make_old(&path);
    }
    let last = std::fs::metadata(folder.path().join((FILES - 1).to_string())).unwrap();
    let nanos = u64::try_from(last.ctime_nsec()).unwrap();
    let changed = Duration::new(u64::try_from(last.ctime()).unwrap(), u32::try_from(nanos).unwrap());
    // A file that has changed a moment ago is copied.
    let settled = SystemTime::UNIX_EPOCH + changed + Duration::from_millis(50);
    until("the files have not changed for a moment", || SystemTime::now() > settled);
    folder
}

/// Starts a proxy with a cache over a channel, and a lower limit of descriptors.
fn keeping_proxy(kind: EngineKind, socket: &Path, cache: &Path, metrics: &str) -> Server {
    let mut limited = Command::new("prlimit");
    limited.arg(format!("--nofile={OPEN_FILES}:{OPEN_FILES}")).arg(command().get_program());
    limited.args(["proxy", "--listen", "127.0.0.1:0", "--access-log", "off", "--engine", &kind.to_string()]);
    limited.args(["--origin", &format!("unix:{}", socket.display()), "--channel", "shm"]);
    limited.args(["--metrics", metrics, "--cache"]).arg(cache).stdin(Stdio::null());
    Server::spawn(limited)
}

fn cache_figures(metrics: &str) -> serde_json::Value {
    let page = curl(&[&format!("http://{metrics}/api/status")]);
    serde_json::from_slice::<serde_json::Value>(&page).unwrap()["proxy"]["cache"].take()
}

fn passed_files_stay_open_within_a_bound_and_are_closed_by_a_change_and_by_a_purge(kind: EngineKind) {
    let (site, sockets, cache) = (old_site(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let socket = sockets.path().join("channel");
    let origin = Server::start(kind, site.path(), &["--channel", socket.to_str().unwrap()]);
    let metrics = free_address();
    let proxy = keeping_proxy(kind, &socket, cache.path(), &metrics);
    let open = || process::open_files_below(proxy.pid(), site.path()).len();
    let mut visitor = proxy.visit();
    for file in 0..FILES {
        let reply = visitor.get(&format!("/{file}")).unwrap();
        assert!(reply.status == 200 && reply.body == noise(file as u64, BYTES), "{file}");
    }
    let figures = cache_figures(&metrics);
    let kept = usize::try_from(figures["index"]["passed_objects"].as_u64().unwrap()).unwrap();
    assert!(kept > OPEN_FILES / 16 && kept <= OPEN_FILES / 8, "{figures}");
    assert_eq!(figures["index"]["disk_objects"], 0, "{figures}");
    assert_eq!(std::fs::read_dir(cache.path().join("objects")).unwrap().count(), 0);
    until("the others are closed", || open() == kept);
    let passed = origin.status()["channel"]["files_passed"].clone();
    assert_eq!(passed, FILES);

    let is_hit = |reply: &plimsoll_tests::binary::Reply| {
        reply.field("Cache-Status").is_some_and(|status| status.contains("; hit"))
    };
    let path = process::open_files_below(proxy.pid(), site.path()).pop().unwrap();
    let target = format!("/{}", path.file_name().unwrap().to_str().unwrap());
    let hit = visitor.get(&target).unwrap();
    assert!(is_hit(&hit) && hit.body == std::fs::read(&path).unwrap());
    std::fs::remove_file(&path).unwrap();
    until("a removed file is closed", || open() == kept - 1);
    assert_eq!(cache_figures(&metrics)["changed"], 1);
    assert_eq!(visitor.get(&target).unwrap().status, 404);

    curl(&["--request", "POST", &format!("http://{metrics}/purge?all=yes")]);
    until("purged files are closed", || open() == 0);
    let text = String::from_utf8(curl(&[&format!("http://{metrics}/metrics")])).unwrap();
    for line in ["passed_objects 0", "passed_objects_max 64", "passed_bytes 0", "changed_total 1"] {
        assert!(text.contains(&format!("\nplimsoll_proxy_cache_{line}\n")), "{text}");
    }
}

on_each_engine!(passed_files_stay_open_within_a_bound_and_are_closed_by_a_change_and_by_a_purge);
