//! The cache of `plimsoll proxy`, as a process: kill -9 and restart, purges, and the refusal of an engine
//! without shared memory.

use std::fs::File;
use std::io::{Read, Write};
use std::ops::Range;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use plimsoll_tests::binary::{EngineKind, Server, command, free_address, free_port, process, until};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;
use rustix::process::Signal;

use super::reverse_proxy::{curl, proxy, status};

/// Files of the origin: most are larger than what is cached in memory.
const FILES: usize = 12;
/// How often the proxy is killed.
const KILLS: usize = 5;

fn bytes_of(file: usize) -> Vec<u8> {
    noise(file as u64 + 1, 20_000 + file * 90_001)
}

/// A site whose files have not changed for long, so that they are fresh for a day.
fn old_site() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for file in 0..FILES {
        let path = folder.path().join(format!("{file}.bin"));
        std::fs::write(&path, bytes_of(file)).unwrap();
        make_old(&path);
    }
    folder
}

pub(super) fn make_old(path: &Path) {
    let long_ago = SystemTime::now() - Duration::from_secs(100 * 24 * 3600);
    File::options().write(true).open(path).unwrap().set_modified(long_ago).unwrap();
}

/// Starts a proxy with a cache in `folder`.
fn caching_proxy(kind: EngineKind, origin: &Server, folder: &Path, more: &[&str]) -> Server {
    let (origin, folder) = (format!("http://{}", origin.at()), folder.display().to_string());
    let args = ["--origin", &origin, "--cache", &folder, "--cache-size", "100MiB"];
    proxy(kind, &[&args[..], more].concat())
}

/// The name of the site. It is a part of the key of a stored response, and each proxy has another port.
const HOST: &str = "Host: files.test";

fn get(url: &str) -> Vec<u8> {
    curl(&["--header", HOST, url])
}

/// Returns the Cache-Status of a response.
fn cache_status(url: &str) -> String {
    let head = curl(&["--header", HOST, "--dump-header", "-", "--output", "/dev/null", url]);
    let head = String::from_utf8(head).unwrap();
    let line = head.lines().find_map(|line| line.strip_prefix("Cache-Status: "));
    line.unwrap_or_else(|| panic!("{head}")).to_owned()
}

fn a_killed_proxy_restarts_without_a_wrong_byte(kind: EngineKind) {
    let (site, cache) = (old_site(), tempfile::tempdir().unwrap());
    let origin = Server::start(kind, site.path(), &[]);
    for round in 0..KILLS {
        let proxy = caching_proxy(kind, &origin, cache.path(), &[]);
        let stop = AtomicBool::new(false);
        let urls: Vec<String> = (0..FILES).map(|file| proxy.url(&format!("/{file}.bin"))).collect();
        std::thread::scope(|scope| {
            for visitor in 0..3 {
                let (stop, urls) = (&stop, &urls);
                scope.spawn(move || {
                    let order = (0..FILES).cycle().map(|file| (file * (visitor + 1) + visitor) % FILES);
                    for file in order {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let visit = std::process::Command::new("curl")
                            .args(["--silent", "--max-time", "20", "--header", HOST, &urls[file]])
                            .output()
                            .unwrap();
                        // A response that the kill has cut short is an error of curl.
                        assert!(!visit.status.success() || visit.stdout == bytes_of(file), "{file}");
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(150 + 130 * round as u64));
            proxy.signal(Signal::KILL);
            stop.store(true, Ordering::Relaxed);
        });
    }
    let proxy = caching_proxy(kind, &origin, cache.path(), &[]);
    for _ in 0..2 {
        for file in 0..FILES {
            assert!(get(&proxy.url(&format!("/{file}.bin"))) == bytes_of(file), "{file}");
        }
    }
    drop(origin);
    for file in 0..FILES {
        let url = proxy.url(&format!("/{file}.bin"));
        assert!(get(&url) == bytes_of(file), "{file} without the origin");
        assert!(cache_status(&url).starts_with("plimsoll; hit"), "{file}");
    }
}

/// Visitors of a file that is larger than the cache stores as a whole get exact ranges of it, whenever the
/// proxy is killed.
fn a_killed_proxy_has_no_wrong_slice(kind: EngineKind) {
    const VISITS: usize = 7;
    let bytes = noise(77, 10_007).repeat(1500);
    let (site, cache) = (old_site(), tempfile::tempdir().unwrap());
    let path = site.path().join("video.bin");
    std::fs::write(&path, &bytes).unwrap();
    make_old(&path);
    let origin = Server::start(kind, site.path(), &[]);
    let range = |visit: usize| {
        let start = visit * 2_000_003;
        start..start + 1_300_000
    };
    let fetch = |url: &str, visit: usize| {
        let range = range(visit);
        let range = format!("{}-{}", range.start, range.end - 1);
        let args = ["--silent", "--max-time", "20", "--header", HOST, "--range", &range, url];
        std::process::Command::new("curl").args(args).output().unwrap()
    };
    for round in 0..KILLS {
        let proxy = caching_proxy(kind, &origin, cache.path(), &[]);
        let (url, stop) = (proxy.url("/video.bin"), AtomicBool::new(false));
        std::thread::scope(|scope| {
            for visitor in 0..3 {
                let (stop, url, bytes) = (&stop, &url, &bytes);
                scope.spawn(move || {
                    for visit in (0..VISITS).cycle().map(|visit| (visit * (visitor + 1)) % VISITS) {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let part = fetch(url, visit);
                        // A response that the kill has cut short is an error of curl.
                        assert!(!part.status.success() || part.stdout == bytes[range(visit)], "{visit}");
                    }
                });
            }
            std::thread::sleep(Duration::from_millis(100 + 90 * round as u64));
            proxy.signal(Signal::KILL);
            stop.store(true, Ordering::Relaxed);
        });
    }
    let proxy = caching_proxy(kind, &origin, cache.path(), &[]);
    let url = proxy.url("/video.bin");
    for visit in 0..VISITS {
        assert!(fetch(&url, visit).stdout == bytes[range(visit)], "{visit}");
    }
    let is_stored = |visit| {
        let Range { start, end } = range(visit);
        let range = format!("Range: bytes={start}-{}", end - 1);
        let args = ["--header", "Cache-Control: only-if-cached", "--header", &range, "--header", HOST, &url];
        curl(&args) == bytes[start..end]
    };
    until("all slices are stored", || (0..VISITS).all(is_stored));
    drop((proxy, origin));
    // The slices are found again, without the origin.
    let origin = format!("http://127.0.0.1:{}", free_port());
    let folder = cache.path().display().to_string();
    let proxy = super::reverse_proxy::proxy(
        kind,
        &["--origin", &origin, "--cache", &folder, "--cache-size", "100MiB"],
    );
    for visit in 0..VISITS {
        let part = fetch(&proxy.url("/video.bin"), visit);
        assert!(part.stdout == bytes[range(visit)], "{visit} without the origin");
    }
}

fn large_responses_are_found_again_after_a_restart(kind: EngineKind) {
    let (site, cache) = (old_site(), tempfile::tempdir().unwrap());
    let origin = Server::start(kind, site.path(), &[]);
    let mut first = caching_proxy(kind, &origin, cache.path(), &[]);
    let url = first.url("/5.bin");
    assert!(get(&url) == bytes_of(5));
    until("the response is stored", || cache_status(&url).starts_with("plimsoll; hit"));
    first.signal(Signal::TERM);
    assert!(first.ends_within(Duration::from_secs(20)).success());
    let second = caching_proxy(kind, &origin, cache.path(), &[]);
    drop(origin);
    assert!(get(&second.url("/5.bin")) == bytes_of(5));
    assert_eq!(status(&second.url("/6.bin")), "502");
}

fn purges_are_for_operators_and_remove_for_good(kind: EngineKind) {
    let (site, cache) = (old_site(), tempfile::tempdir().unwrap());
    let origin = Server::start(kind, site.path(), &[]);
    let metrics = free_address();
    let proxy = caching_proxy(kind, &origin, cache.path(), &["--metrics", &metrics]);
    let url = proxy.url("/5.bin");
    let is_hit = || cache_status(&url).starts_with("plimsoll; hit");
    until("the response is stored", is_hit);
    let path = site.path().join("5.bin");
    std::fs::write(&path, noise(99, 400_000)).unwrap();
    make_old(&path);
    let post = |url: &str| {
        let args = ["--request", "POST", "--output", "/dev/null", "--write-out", "%{http_code}", url];
        String::from_utf8(curl(&args)).unwrap()
    };
    assert_eq!(post(&proxy.url("/purge?all=yes")), "405", "the origin's answer");
    assert!(is_hit() && get(&url) == bytes_of(5));
    assert_eq!(post(&format!("http://{metrics}/purge?all")), "400");
    assert_eq!(status(&format!("http://{metrics}/purge?all=yes")), "405");
    let purged = curl(&["--request", "POST", &format!("http://{metrics}/purge?url=http://files.test/5.bin")]);
    assert_eq!(purged, b"{\"purged\":1}\n");
    assert!(get(&url) == noise(99, 400_000));
    let page: serde_json::Value =
        serde_json::from_slice(&curl(&[&format!("http://{metrics}/api/status")])).unwrap();
    assert_eq!(page["proxy"]["cache"]["purged"], 1, "{page}");
    assert!(page["proxy"]["cache"]["hit_ratio"].as_f64().unwrap() > 0.1, "{page}");
    let text = String::from_utf8(curl(&[&format!("http://{metrics}/metrics")])).unwrap();
    assert!(text.contains("\nplimsoll_proxy_cache_purged_total 1\n"), "{text}");
}

/// A page of another site in a browser on the same machine sends its Origin. If its own name resolves to this
/// machine, it sends that in Host.
fn a_page_in_a_browser_purges_and_reads_nothing(kind: EngineKind) {
    let (site, cache) = (old_site(), tempfile::tempdir().unwrap());
    let of_origin = free_address();
    let name = ["--metrics", &of_origin, "--operator-hosts", "server1.example"];
    let origin = Server::start(kind, site.path(), &name);
    let metrics = free_address();
    let proxy = caching_proxy(kind, &origin, cache.path(), &["--metrics", &metrics]);
    let url = proxy.url("/5.bin");
    let is_hit = || cache_status(&url).starts_with("plimsoll; hit");
    until("the response is stored", is_hit);
    let purge = format!("http://{metrics}/purge?all=yes");
    let ask = |fields: &[&str], url: &str| {
        let fields = fields.iter().flat_map(|field| ["--header", field]);
        let args: Vec<&str> = ["--write-out", "\n%{http_code}", url].into_iter().chain(fields).collect();
        String::from_utf8(curl(&args)).unwrap()
    };
    let post = |field: &str| {
        let args = ["--request", "POST", "--write-out", "%{http_code}", "--header", field, &purge];
        String::from_utf8(curl(&args)).unwrap()
    };
    for field in [
        "Origin: http://evil.example",
        "Origin: null",
        "Origin: http://127.0.0.1:1",
        "Sec-Fetch-Site: cross-site",
        "Sec-Fetch-Site: same-site",
        "Host: evil.example",
    ] {
        assert!(post(field).ends_with("403"), "{field}");
    }
    assert!(post("Host: evil.example").contains("operator_hosts"));
    assert!(is_hit(), "nothing was purged");
    for server in [&metrics, &of_origin] {
        for page in ["metrics", "api/status"] {
            let page = format!("http://{server}/{page}");
            let refused = ask(&["Host: evil.example"], &page);
            assert!(refused.ends_with("403") && refused.contains("operator_hosts"), "{refused}");
            assert!(ask(&["Host: localhost:1"], &page).ends_with("200"));
            let is_known = server == &of_origin;
            let named = ask(&["Host: Server1.example:9100"], &page);
            assert!(named.ends_with(if is_known { "200" } else { "403" }), "{named}");
        }
        for page in ["healthz", "readyz"] {
            assert!(ask(&["Host: evil.example"], &format!("http://{server}/{page}")).ends_with("200"));
        }
    }
    assert!(post(&format!("Origin: http://{metrics}")).ends_with("200"), "a page of the address itself");
}

fn answers_are_counted_by_their_kind_and_logged_with_their_bytes(kind: EngineKind) {
    let (site, cache) = (old_site(), tempfile::tempdir().unwrap());
    let origin = Server::start(kind, site.path(), &[]);
    let metrics = free_address();
    let log = cache.path().join("access.log");
    let folder = cache.path().join("cache");
    let mut proxy = command();
    proxy.args(["proxy", "--engine", &kind.to_string(), "--listen", "127.0.0.1:0", "--metrics", &metrics]);
    proxy.args(["--origin", &format!("http://{}", origin.at()), "--cache"]).arg(&folder);
    proxy.arg("--access-log").arg(&log).stdin(Stdio::null());
    let proxy = Server::spawn(proxy);
    let figures = || {
        let page = curl(&[&format!("http://{metrics}/api/status")]);
        let page: serde_json::Value = serde_json::from_slice(&page).unwrap();
        ["hits", "misses", "validated"].map(|name| page["proxy"]["cache"][name].as_u64().unwrap())
    };
    let [small, large] = ["/0.bin", "/9.bin"].map(|path| proxy.url(path));
    until("the response is stored", || cache_status(&small).starts_with("plimsoll; hit"));
    let [hits, misses, validated] = figures();
    assert!(hits > 0 && misses > 0 && validated == 0, "{hits} {misses} {validated}");
    assert!(curl(&["--header", HOST, "--header", "Cache-Control: no-cache", &small]) == bytes_of(0));
    assert_eq!(figures(), [hits, misses, 1], "a validated response is no miss");
    assert!(get(&large) == bytes_of(9));
    let refused = curl(&["--proxy", &proxy.url("/"), "http://elsewhere.test/0.bin"]);
    let lines = [
        format!("GET /0.bin HTTP/1.1\" 200 {}", bytes_of(0).len()),
        format!("GET /9.bin HTTP/1.1\" 200 {}", bytes_of(9).len()),
        format!("GET http://elsewhere.test/0.bin HTTP/1.1\" 421 {}", refused.len()),
    ];
    until("each answer is in the log", || {
        let text = std::fs::read_to_string(&log).unwrap();
        lines.iter().all(|line| text.lines().any(|logged| logged.ends_with(line.as_str())))
    });
    let text = std::fs::read_to_string(&log).unwrap();
    let hits_and_misses = text.lines().filter(|line| line.contains("/0.bin") && line.contains("\" 200 "));
    assert!(hits_and_misses.clone().all(|line| line.ends_with(&lines[0])), "{text}");
    assert_eq!(hits_and_misses.count() as u64, hits + misses + 1);
}

/// A client that does not take a stored response keeps its file in use while another response replaces it.
fn a_purge_of_a_replaced_response_survives_kill_9(kind: EngineKind) {
    // More than the buffers of a connection.
    let large = |seed: u64| noise(seed, 10_007).repeat(1200);
    let (site, cache) = (old_site(), tempfile::tempdir().unwrap());
    let origin = Server::start(kind, site.path(), &[]);
    let metrics = free_address();
    let proxy = caching_proxy(kind, &origin, cache.path(), &["--metrics", &metrics]);
    let url = proxy.url("/large.bin");
    let change = |seed| {
        let path = site.path().join("large.bin");
        std::fs::write(&path, large(seed)).unwrap();
        make_old(&path);
    };
    let is_hit = || cache_status(&url).starts_with("plimsoll; hit");
    change(1);
    until("the first response is stored", is_hit);
    let mut stalled = std::net::TcpStream::connect(proxy.at()).unwrap();
    stalled.write_all(b"GET /large.bin HTTP/1.1\r\nHost: files.test\r\n\r\n").unwrap();
    stalled.read_exact(&mut [0; 1000]).unwrap();
    change(2);
    let reloaded = curl(&["--header", HOST, "--header", "Cache-Control: no-cache", &url]);
    assert!(reloaded == large(2));
    // The first one is a hit until the second is stored.
    until("the second response is stored", || is_hit() && get(&url) == large(2));
    let purge = format!("http://{metrics}/purge?url=http://files.test/large.bin");
    assert_eq!(curl(&["--request", "POST", &purge]), b"{\"purged\":1}\n");
    change(3);
    proxy.signal(Signal::KILL);
    drop((proxy, stalled));
    let proxy = caching_proxy(kind, &origin, cache.path(), &[]);
    assert!(get(&proxy.url("/large.bin")) == large(3));
}

fn hits_of_many_files_keep_few_of_them_open(kind: EngineKind) {
    // More than the cache keeps open, and each too large for its memory.
    const MANY: usize = 256 + 100;
    const BYTES: usize = 65 * 1024;
    let (site, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for file in 0..MANY {
        let path = site.path().join(file.to_string());
        std::fs::write(&path, noise(file as u64, BYTES)).unwrap();
        make_old(&path);
    }
    let origin = Server::start(kind, site.path(), &[]);
    let proxy = caching_proxy(kind, &origin, cache.path(), &[]);
    let open = || process::open_files_below(proxy.pid(), cache.path());
    let (mut visitor, before) = (proxy.visit(), open().len());
    let mut most = Vec::new();
    for round in 0..2 {
        for file in 0..MANY {
            let reply = visitor.get(&format!("/{file}")).unwrap();
            assert!(reply.status == 200 && reply.body == noise(file as u64, BYTES), "{file}");
            let is_hit = reply.field("Cache-Status").is_some_and(|status| status.contains("; hit"));
            assert!(is_hit || round == 0, "{file}: {}", reply.head);
            most = std::cmp::max_by_key(most, open(), Vec::len);
        }
    }
    // Some more: those in use.
    assert!(most.len() <= before + 256 + 16, "{} after {before}: {most:?}", most.len());
    assert!(most.len() >= before + 256, "{} after {before}: the files are kept open", most.len());
}

#[test]
fn the_engine_that_forks_refuses_a_cache() {
    let folder = tempfile::tempdir().unwrap();
    let mut refused = command();
    refused.args(["proxy", "--engine", "process", "--origin", "http://127.0.0.1:1", "--cache"]);
    let refused = refused.arg(folder.path()).output().unwrap();
    assert_eq!(refused.status.code(), Some(2));
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("the engine process has no cache"), "{text}");
}

on_each_engine!(
    a_killed_proxy_restarts_without_a_wrong_byte,
    a_killed_proxy_has_no_wrong_slice,
    large_responses_are_found_again_after_a_restart,
    purges_are_for_operators_and_remove_for_good,
    a_page_in_a_browser_purges_and_reads_nothing,
    answers_are_counted_by_their_kind_and_logged_with_their_bytes,
    a_purge_of_a_replaced_response_survives_kill_9,
    hits_of_many_files_keep_few_of_them_open,
);
