//! `plimsoll proxy` as a process, between curl and real servers: plimsoll and nginx.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use plimsoll_tests::binary::tool::Done;
use plimsoll_tests::binary::{EngineKind, Server, command, free_address, free_port, tool, until};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, listen, socket_with};
use rustix::process::Signal;

use super::web_servers::{ACCESS_LOG, WebServer, certificate_file, copy_certificate};

/// More than the buffers of all connections.
pub(super) const LARGE_BYTES: usize = 5_000_000;

/// Starts a proxy at a free port.
pub(super) fn proxy(kind: EngineKind, args: &[&str]) -> Server {
    let mut proxy = command();
    proxy.arg("proxy").args(["--listen", "127.0.0.1:0", "--access-log", "off"]);
    proxy.args(["--engine", &kind.to_string()]).args(args).stdin(Stdio::null());
    Server::spawn(proxy)
}

pub(super) fn site() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("small.txt"), "small\n").unwrap();
    std::fs::write(folder.path().join("large.bin"), noise(3, LARGE_BYTES)).unwrap();
    folder
}

/// Runs curl, and returns its standard output.
pub(super) fn curl(args: &[&str]) -> Vec<u8> {
    let mut curl = tool("curl");
    curl.args(["--silent", "--show-error", "--max-time", "60", "--http1.1"]).args(args);
    let Done { stdout, .. } = tool::run(&mut curl).well();
    stdout
}

pub(super) fn status(url: &str) -> String {
    String::from_utf8(curl(&["--output", "/dev/null", "--write-out", "%{http_code}", url])).unwrap()
}

/// Downloads all files of [`site`] several times on one connection, and a range.
fn has_files(proxy: &Server) {
    has_files_at(|path| proxy.url(path));
}

fn has_files_at(url: impl Fn(&str) -> String) {
    for _ in 0..3 {
        let (small, large) = (url("/small.txt"), url("/large.bin"));
        let both = curl(&[&small, &large]);
        assert_eq!(both.len(), 6 + LARGE_BYTES);
        assert!(both.starts_with(b"small\n") && both[6..] == noise(3, LARGE_BYTES)[..]);
        assert_eq!(curl(&["--range", "1000-1999", &large]), &noise(3, LARGE_BYTES)[1000..2000]);
        assert_eq!(status(&url("/missing")), "404");
    }
}

fn files_of_plimsoll_arrive_through_the_proxy(kind: EngineKind) {
    let folder = site();
    let origin = Server::start(kind, folder.path(), &[]);
    let proxy = proxy(kind, &["--origin", &format!("http://{}", origin.at())]);
    has_files(&proxy);
}

fn an_origin_at_a_unix_socket_is_reached(kind: EngineKind) {
    let (folder, sockets) = (site(), tempfile::tempdir().unwrap());
    let at = format!("unix:{}", sockets.path().join("origin").display());
    let _origin = Server::start(kind, folder.path(), &["--http", &at]);
    let proxy = proxy(kind, &["--origin", &at, "--channel", "unix"]);
    has_files(&proxy);
}

/// Starts plimsoll with a channel, and a proxy that connects to it.
pub(super) fn over_a_channel(
    kind: EngineKind,
    folder: &Path,
    socket: &Path,
    channel: &str,
) -> (Server, Server) {
    let origin = Server::start(kind, folder, &["--channel", socket.to_str().unwrap()]);
    let at = format!("unix:{}", socket.display());
    (origin, proxy(kind, &["--origin", &at, "--channel", channel]))
}

fn files_arrive_over_shared_memory_as_descriptors(kind: EngineKind) {
    let (folder, sockets) = (site(), tempfile::tempdir().unwrap());
    let socket = sockets.path().join("channel");
    let (origin, proxy) = over_a_channel(kind, folder.path(), &socket, "shm");
    has_files(&proxy);
    let status = origin.status();
    assert_eq!(status["channel"]["files_passed"], 3, "{status}");
    assert!(status["channel"]["bytes_copied"].as_u64() < Some(16 * 1024), "{status}");
}

fn files_arrive_over_shared_memory_as_copies(kind: EngineKind) {
    let (folder, sockets) = (site(), tempfile::tempdir().unwrap());
    let socket = sockets.path().join("channel");
    let (origin, proxy) = over_a_channel(kind, folder.path(), &socket, "shm-copy");
    has_files(&proxy);
    let status = origin.status();
    assert_eq!(status["channel"]["files_passed"], 0, "{status}");
    assert!(status["channel"]["bytes_copied"].as_u64() > Some(3 * LARGE_BYTES as u64), "{status}");
}

fn an_origin_that_is_killed_behind_a_channel_is_reached_again_when_it_is_back(kind: EngineKind) {
    let (folder, sockets) = (site(), tempfile::tempdir().unwrap());
    let socket = sockets.path().join("channel");
    let (origin, proxy) = over_a_channel(kind, folder.path(), &socket, "shm");
    assert_eq!(status(&proxy.url("/large.bin")), "200");
    origin.signal(Signal::KILL);
    drop(origin);
    assert_eq!(status(&proxy.url("/large.bin")), "502");
    let _origin = Server::start(kind, folder.path(), &["--channel", socket.to_str().unwrap()]);
    until("the origin is reached again", || status(&proxy.url("/small.txt")) == "200");
    has_files(&proxy);
}

fn files_of_nginx_arrive_through_the_proxy(kind: EngineKind) {
    let (folder, work) = (site(), tempfile::tempdir().unwrap());
    let nginx = WebServer::nginx_with_files(work.path(), folder.path());
    let proxy = proxy(kind, &["--origin", &nginx.url("")]);
    has_files(&proxy);
}

/// An untrusted origin gets no request.
fn an_origin_over_tls_is_trusted_by_the_certificate_of_its_authority(kind: EngineKind) {
    let (folder, work) = (site(), tempfile::tempdir().unwrap());
    let nginx = WebServer::nginx_with_files_over_tls(work.path(), folder.path());
    let origin = nginx.url("");
    let trusting = |file: &str| proxy(kind, &["--origin", &origin, "--origin-ca", &certificate_file(file)]);
    has_files(&trusting("ca.pem"));
    has_files(&trusting("server.pem"));
    let requests = || std::fs::read_to_string(work.path().join(ACCESS_LOG)).unwrap().lines().count();
    let before = requests();
    assert_eq!(status(&trusting("other.pem").url("/small.txt")), "502");
    assert_eq!(requests(), before);
}

fn clients_over_tls_are_reported_to_the_origin_as_such(kind: EngineKind) {
    let work = tempfile::tempdir().unwrap();
    let block =
        "default_type text/plain; location / { return 200 \"$http_x_forwarded_proto $http_forwarded\"; }";
    let nginx = WebServer::nginx(work.path(), block);
    let keys = tempfile::tempdir().unwrap();
    copy_certificate("server", keys.path());
    let (certificate, key) = (keys.path().join("tls.pem"), keys.path().join("tls.key"));
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    let port = free_port();
    let proxy = proxy(
        kind,
        &[
            "--origin",
            &nginx.url(""),
            "--listen-tls",
            &format!("127.0.0.1:{port}"),
            "--certificate",
            certificate.to_str().unwrap(),
            "--key",
            key.to_str().unwrap(),
        ],
    );
    let (ca, secure) = (certificate_file("ca.pem"), format!("https://localhost:{port}/"));
    for (url, scheme) in [(proxy.url("/"), "http"), (secure, "https")] {
        let response = String::from_utf8(curl(&["--cacert", &ca, &url])).unwrap();
        assert!(
            response.starts_with(&format!("{scheme} ")) && response.contains(&format!("proto={scheme};")),
            "{response}"
        );
    }
}

fn nginx_in_front_of_the_proxy_names_the_client(kind: EngineKind) {
    let (folder, work, logs) = (site(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let log = logs.path().join("log");
    let trusting = ["--trusted-proxy", "127.0.0.1"];
    let of_origin = [&trusting[..], &["--access-log", log.to_str().unwrap()]].concat();
    let origin = Server::start(kind, folder.path(), &of_origin);
    let url = format!("http://{}", origin.at());
    let proxy = proxy(kind, &[&trusting[..], &["--origin", &url]].concat());
    let pass = format!(
        "location / {{ proxy_pass {}; proxy_http_version 1.1; proxy_set_header Connection \"\"; \
         proxy_set_header X-Forwarded-For $http_x_client; }}",
        proxy.url("")
    );
    let nginx = WebServer::nginx(work.path(), &pass);
    has_files_at(|path| nginx.url(path));
    assert_eq!(curl(&["--header", "X-Client: 192.0.2.7", &nginx.url("/small.txt")]), b"small\n");
    until("the origin has logged the client", || {
        std::fs::read_to_string(&log).unwrap().lines().any(|line| line.starts_with("192.0.2.7 "))
    });
}

fn proxy_and_origin_start_in_either_order(kind: EngineKind) {
    let (folder, port) = (site(), free_port());
    let at = format!("127.0.0.1:{port}");
    let proxy = proxy(kind, &["--origin", &format!("http://{at}")]);
    assert_eq!(status(&proxy.url("/small.txt")), "502");
    let origin = Server::start(kind, folder.path(), &["--http", &at]);
    assert_eq!(curl(&[&proxy.url("/small.txt")]), b"small\n");
    drop(origin);
    assert_eq!(status(&proxy.url("/small.txt")), "502");
    let _again = Server::start(kind, folder.path(), &["--http", &at]);
    assert_eq!(curl(&[&proxy.url("/small.txt")]), b"small\n");
}

fn an_origin_that_accepts_nothing_gets_504(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
    listen(&socket, 0).unwrap();
    let at: SocketAddr = getsockname(&socket).unwrap().try_into().unwrap();
    // The accept queue is full with these: the kernel drops the packets of further connections.
    let connect = || TcpStream::connect_timeout(&at, Duration::from_millis(200));
    let _queued: Vec<TcpStream> = std::iter::from_fn(|| connect().ok()).collect();
    let file = folder.path().join("proxy.toml");
    std::fs::write(&file, format!("[proxy]\norigin = [\"http://{at}\"]\nconnect_time = \"300ms\"\n"))
        .unwrap();
    let proxy = proxy(kind, &["--config", file.to_str().unwrap()]);
    assert_eq!(status(&proxy.url("/small.txt")), "504");
}

fn a_failed_request_is_a_warning_with_its_origin_and_a_remedy(kind: EngineKind) {
    let (folder, socket) = (site(), tempfile::tempdir().unwrap());
    let at = format!("unix:{}", socket.path().join("channel").display());
    let _origin = Server::start(kind, folder.path(), &["--channel", at.strip_prefix("unix:").unwrap()]);
    let proxy = proxy(kind, &["--origin", &at]);
    assert_eq!(status(&proxy.url("/small.txt")), "502");
    until("the warning is written", || {
        let text = proxy.stderr();
        let warning = text.lines().find(|line| line.contains("a request failed"));
        warning.is_some_and(|line| line.contains(&at) && line.contains("add `--channel shm`"))
    });
}

fn a_download_in_progress_is_completed_at_the_order_to_stop(kind: EngineKind) {
    let folder = site();
    let origin = Server::start(kind, folder.path(), &[]);
    let mut proxy = proxy(kind, &["--origin", &format!("http://{}", origin.at())]);
    let url = proxy.url("/large.bin");
    let slow = std::thread::spawn(move || curl(&["--limit-rate", "4M", &url]));
    std::thread::sleep(Duration::from_millis(300));
    proxy.signal(Signal::TERM);
    assert_eq!(slow.join().unwrap().len(), LARGE_BYTES);
    assert!(proxy.ends_within(Duration::from_secs(20)).success());
}

fn a_reload_changes_the_origin_of_new_connections(kind: EngineKind) {
    let (one, other) = (site(), site());
    std::fs::write(other.path().join("small.txt"), "other\n").unwrap();
    let servers = [&one, &other].map(|folder| Server::start(kind, folder.path(), &[]));
    let file = one.path().join("proxy.toml");
    let write = |server: &Server| {
        std::fs::write(&file, format!("[proxy]\norigin = [\"http://{}\"]\n", server.at())).unwrap();
    };
    write(&servers[0]);
    let proxy = proxy(kind, &["--config", file.to_str().unwrap()]);
    let mut visitor = proxy.visit();
    assert_eq!(visitor.get("/small.txt").unwrap().body, b"small\n");
    write(&servers[1]);
    proxy.signal(Signal::HUP);
    until("new connections have the other origin", || curl(&[&proxy.url("/small.txt")]) == b"other\n");
    assert_eq!(visitor.get("/small.txt").unwrap().body, b"small\n", "an open connection keeps its origin");
}

fn operators_see_origins_and_limits(kind: EngineKind) {
    let folder = site();
    let origin = Server::start(kind, folder.path(), &[]);
    let (port, url) = (free_port(), format!("http://{}", origin.at()));
    let metrics = format!("127.0.0.1:{port}");
    let proxy = proxy(kind, &["--origin", &url, "--metrics", &metrics]);
    assert_eq!(status(&proxy.url("/small.txt")), "200");
    let text = String::from_utf8(curl(&[&format!("http://{metrics}/metrics")])).unwrap();
    for line in [
        format!("plimsoll_proxy_origin_up{{origin=\"{url}\"}} 1"),
        format!("plimsoll_proxy_requests_total{{origin=\"{url}\"}} 1"),
        format!("plimsoll_proxy_first_byte_seconds_count{{origin=\"{url}\"}} 1"),
        "plimsoll_proxy_limit{name=\"attempts_max\"} 3".to_owned(),
    ] {
        assert!(text.lines().any(|other| other == line), "{line}: {text}");
    }
    let page = curl(&[&format!("http://{metrics}/api/status")]);
    let page: serde_json::Value = serde_json::from_slice(&page).unwrap();
    assert_eq!(page["proxy"]["origins"][0]["origin"], url.as_str());
    let purge = curl(&["--request", "POST", &format!("http://{metrics}/purge?all=yes")]);
    let purge: serde_json::Value = serde_json::from_slice(&purge).unwrap();
    assert_eq!(purge["status"], 404, "{purge}");
    assert!(purge["detail"].as_str().unwrap().contains("has no cache"), "{purge}");
    assert_eq!(status(&format!("http://{metrics}/readyz")), "200");
    drop(origin);
    until("the proxy is not ready without its origin", || {
        status(&format!("http://{metrics}/readyz")) == "503"
    });
}

/// Returns the value of a metric in the text of a page.
fn metric(text: &str, name: &str) -> String {
    let line = text.lines().find(|line| line.split(' ').next() == Some(name));
    line.unwrap_or_else(|| panic!("{name}: {text}")).split(' ').nth(1).unwrap_or_default().to_owned()
}

fn both_sides_of_a_channel_show_its_limits_and_counts(kind: EngineKind) {
    let (folder, sockets) = (site(), tempfile::tempdir().unwrap());
    let socket = sockets.path().join("channel");
    let path = socket.to_str().unwrap();
    let origin = Server::start(kind, folder.path(), &["--channel", path, "--channel-slots", "3"]);
    let (at, metrics) = (format!("unix:{path}"), free_address());
    let channel = ["--channel", "shm", "--channel-slots", "1", "--metrics", &metrics];
    let proxy = proxy(kind, &[&["--origin", &at], &channel[..]].concat());
    has_files(&proxy);
    // The thread of an ended connection takes its channels along.
    let mut client = proxy.visit();
    assert_eq!(client.get("/small.txt").unwrap().body, b"small\n");
    let text = |url: String| String::from_utf8(curl(&[&url])).unwrap();
    let status_of_proxy = || -> serde_json::Value {
        serde_json::from_slice(&curl(&[&format!("http://{metrics}/api/status")])).unwrap()
    };
    until("both sides have the same channels", || {
        let open = [origin.status(), status_of_proxy()].map(|status| status["channel"]["open"].as_u64());
        open[0] == open[1] && open[0] > Some(0)
    });
    let pages = [
        (text(origin.url("/metrics")), origin.status(), "3", ["3", "0"]),
        (text(format!("http://{metrics}/metrics")), status_of_proxy(), "1", ["0", "3"]),
    ];
    let sides = pages.map(|(metrics, status, slots, counts)| {
        let counted = ["files_passed_total", "files_received_total"];
        for (name, value) in counted.into_iter().zip(counts) {
            assert_eq!(metric(&metrics, &format!("plimsoll_channel_{name}")), value, "{name}");
        }
        assert_eq!(metric(&metrics, "plimsoll_channel_limit{name=\"slots_max\"}"), slots);
        assert_eq!(metric(&metrics, "plimsoll_channel_slot_waiters"), "0");
        assert_eq!(status["channel"]["slots_max"].to_string(), slots);
        assert!(status["channel"]["memory_bytes"].as_u64() > Some(2 * 64 * 1024), "{status}");
        status["channel"].clone()
    });
    assert!(sides[0]["open"].as_u64() > Some(0) && sides[0]["open"] == sides[1]["open"], "{sides:?}");
    // The head of a response and its file are two frames: with one slot, the file waits.
    assert!(sides[0]["slot_waits"].as_u64() > Some(0), "{sides:?}");
    assert_eq!(sides[0]["bytes_passed"], sides[1]["bytes_received"], "{sides:?}");
}

/// A connection to the origin is used again, although wake-ups for it may be late.
fn one_client_needs_one_channel(kind: EngineKind) {
    let (folder, sockets) = (site(), tempfile::tempdir().unwrap());
    let socket = sockets.path().join("channel");
    for channel in ["shm", "shm-copy"] {
        let (origin, proxy) = over_a_channel(kind, folder.path(), &socket, channel);
        let mut client = proxy.visit();
        for _ in 0..300 {
            assert_eq!(client.get("/small.txt").unwrap().body, b"small\n");
        }
        assert_eq!(client.get("/large.bin").unwrap().body.len(), LARGE_BYTES);
        assert_eq!(client.get("/small.txt").unwrap().body, b"small\n");
        let status = origin.status();
        assert_eq!(status["channel"]["opened"], 1, "{channel}: {status}");
    }
}

on_each_engine!(
    forks:
    files_of_plimsoll_arrive_through_the_proxy,
    an_origin_at_a_unix_socket_is_reached,
    proxy_and_origin_start_in_either_order,
    a_download_in_progress_is_completed_at_the_order_to_stop,
    a_reload_changes_the_origin_of_new_connections,
);

/// Tests without the engine that forks.
mod in_one_process {
    use plimsoll_tests::on_each_engine;

    use super::{
        a_failed_request_is_a_warning_with_its_origin_and_a_remedy,
        an_origin_over_tls_is_trusted_by_the_certificate_of_its_authority,
        an_origin_that_accepts_nothing_gets_504,
        an_origin_that_is_killed_behind_a_channel_is_reached_again_when_it_is_back,
        both_sides_of_a_channel_show_its_limits_and_counts,
        clients_over_tls_are_reported_to_the_origin_as_such, files_arrive_over_shared_memory_as_copies,
        files_arrive_over_shared_memory_as_descriptors, files_of_nginx_arrive_through_the_proxy,
        nginx_in_front_of_the_proxy_names_the_client, one_client_needs_one_channel,
        operators_see_origins_and_limits,
    };

    on_each_engine!(
        files_of_nginx_arrive_through_the_proxy,
        an_origin_over_tls_is_trusted_by_the_certificate_of_its_authority,
        clients_over_tls_are_reported_to_the_origin_as_such,
        files_arrive_over_shared_memory_as_descriptors,
        files_arrive_over_shared_memory_as_copies,
        an_origin_that_is_killed_behind_a_channel_is_reached_again_when_it_is_back,
        an_origin_that_accepts_nothing_gets_504,
        a_failed_request_is_a_warning_with_its_origin_and_a_remedy,
        nginx_in_front_of_the_proxy_names_the_client,
        both_sides_of_a_channel_show_its_limits_and_counts,
        one_client_needs_one_channel,
        operators_see_origins_and_limits,
    );
}
