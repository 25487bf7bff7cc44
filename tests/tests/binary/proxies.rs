//! Behind real proxies, with the recipes of `packaging/`: nginx, Caddy, and HAProxy with the PROXY protocol.

use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use plimsoll_tests::binary::tool::{Done, first_installed, kill};
use plimsoll_tests::binary::{EngineKind, Member, Server, among_others, command, free_port, tool, until};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;
use rustix::process::Signal;

/// The client's address, which differs from the proxy's: all of 127.0.0.0/8 is this machine.
const CLIENT: &str = "127.0.0.9";
/// More than nginx accepts by default.
const LARGE_BYTES: usize = 3_000_000;

fn recipe(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../packaging").join(name);
    std::fs::read_to_string(path).unwrap()
}

/// Replaces the names and addresses that an operator changes in a recipe.
fn changed(recipe: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(recipe.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "the recipe has {from}: {text}");
        text.replace(from, to)
    })
}

/// A proxy that runs until it is dropped.
struct Proxy {
    child: Child,
    port: u16,
    ftp_port: u16,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        kill(&mut self.child);
        let _ = self.child.wait();
    }
}

impl Proxy {
    /// Runs `program` in the foreground, and waits until it listens.
    fn start(folder: &Path, program: &[&str], arguments: &[&str], port: u16, ftp_port: u16) -> Proxy {
        let mut command = tool(&first_installed(program));
        command.args(arguments).current_dir(folder).env("HOME", folder).process_group(0);
        let log = std::fs::File::create(folder.join("proxy.log")).unwrap();
        command.stdout(Stdio::null()).stderr(log);
        let mut child = command.spawn().unwrap();
        until("the proxy listens", || {
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none(), "{}", std::fs::read_to_string(folder.join("proxy.log")).unwrap());
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Proxy { child, port, ftp_port }
    }

    /// Starts nginx with this text inside of `http`.
    fn nginx(folder: &Path, text: &str, port: u16) -> Proxy {
        let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let paths = paths.map(|name| format!("{name}_temp_path {}/{name};\n", folder.display())).concat();
        let whole = format!(
            "daemon off;\npid {0}/nginx.pid;\nerror_log stderr;\nevents {{}}\n\
             http {{\naccess_log off;\n{paths}{text}\n}}\n",
            folder.display()
        );
        std::fs::write(folder.join("nginx.conf"), whole).unwrap();
        let path = folder.join("nginx.conf");
        let prefix = folder.to_str().unwrap();
        let arguments = ["-p", prefix, "-e", "stderr", "-c", path.to_str().unwrap()];
        Proxy::start(folder, &["nginx", "/usr/sbin/nginx"], &arguments, port, 0)
    }

    fn nginx_of_the_recipe(server: &Server, folder: &Path) -> Proxy {
        let (port, at) = (free_port(), server.at().to_string());
        let listen = format!("listen 127.0.0.1:{port};");
        let text = changed(&recipe("nginx.conf"), &[("127.0.0.1:8080", &at), ("listen 80;", &listen)]);
        Proxy::nginx(folder, &text, port)
    }

    fn caddy_of_the_recipe(server: &Server, folder: &Path) -> Proxy {
        let (port, at) = (free_port(), server.at().to_string());
        let site = format!("http://files.example:{port} {{");
        let text = changed(&recipe("Caddyfile"), &[("127.0.0.1:8080", &at), ("files.example {", &site)]);
        std::fs::write(folder.join("Caddyfile"), format!("{{\n\tadmin off\n}}\n{text}")).unwrap();
        let arguments = ["run", "--config", "Caddyfile", "--adapter", "caddyfile"];
        Proxy::start(folder, &["caddy"], &arguments, port, 0)
    }

    fn haproxy_of_the_recipe(server: &Server, folder: &Path) -> Proxy {
        let (port, ftp_port) = (free_port(), free_port());
        let text = changed(
            &recipe("haproxy.cfg"),
            &[
                ("127.0.0.1:8080 send", &format!("{} send", server.at())),
                ("127.0.0.1:2121 send", &format!("{} send", server.ftp_at())),
                ("bind :80", &format!("bind 127.0.0.1:{port}")),
                ("bind :21", &format!("bind 127.0.0.1:{ftp_port}")),
            ],
        );
        std::fs::write(folder.join("haproxy.cfg"), text).unwrap();
        let arguments = ["-db", "-f", "haproxy.cfg"];
        Proxy::start(folder, &["haproxy", "/usr/sbin/haproxy"], &arguments, port, ftp_port)
    }

    /// Requests `target` through the proxy by curl, from another address. Returns status and body.
    fn curl(&self, target: &str, args: &[&str]) -> (u16, String) {
        let resolve = format!("files.example:{}:127.0.0.1", self.port);
        let mut curl = tool("curl");
        curl.args(["--silent", "--show-error", "--max-time", "60", "--write-out", "\n%{http_code}"]);
        curl.args(["--interface", CLIENT, "--resolve", &resolve, "--user", "alice:correct horse"]).args(args);
        let Done { stdout, .. } = tool::run(curl.arg(self.url(target))).well();
        let text = String::from_utf8_lossy(&stdout).into_owned();
        let (body, status) = text.rsplit_once('\n').unwrap();
        (status.parse().unwrap(), body.to_owned())
    }

    fn url(&self, target: &str) -> String {
        format!("http://files.example:{}{target}", self.port)
    }

    /// Uploads a large file, moves it, and downloads it.
    fn has_files(&self, folder: &Path) {
        let large = noise(7, LARGE_BYTES);
        std::fs::write(folder.join("large.bin"), &large).unwrap();
        let file = folder.join("large.bin").to_str().unwrap().to_owned();
        let (status, text) = self.curl("/files/large.bin", &["--upload-file", &file]);
        assert_eq!(status, 201, "{text}");
        let destination = format!("Destination: {}", self.url("/files/moved.bin"));
        let (status, text) = self.curl("/files/large.bin", &["--request", "MOVE", "--header", &destination]);
        assert_eq!(status, 201, "{text}");
        let copy = folder.join("copy.bin");
        let (status, _) = self.curl("/files/moved.bin", &["--output", copy.to_str().unwrap()]);
        assert!(status == 200 && std::fs::read(copy).unwrap() == large, "{status}");
    }
}

/// A server behind proxies on this machine, with alice's account.
struct Workspace {
    folder: tempfile::TempDir,
    server: Server,
}

impl Workspace {
    fn new(kind: EngineKind, more: &[&str]) -> Workspace {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("access.log");
        let log = log.to_str().unwrap();
        let password = folder.path().join("password");
        std::fs::write(&password, "correct horse\n").unwrap();
        let mut add = command();
        add.args(["account", "add", "alice", "--password-file"]).arg(&password);
        tool::run(add.arg("--data").arg(folder.path().join("data"))).well();
        let args = ["--access-log", log, "--signup", "closed", "--lab-fast-passwords", "true"];
        // The recipes are served in clear here, and clients log in with each request.
        let args = [&args[..], &["--plain-passwords", "allow"]].concat();
        let mut serve = command();
        serve.args(["serve", "--http", "127.0.0.1:0", "--engine", &kind.to_string(), "--data"]);
        serve.arg(folder.path().join("data")).args(args).args(more);
        Workspace { server: Server::spawn(serve), folder }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the hosts of the access log, which is complete once the server has ended.
    fn hosts(mut self) -> Vec<String> {
        self.server.signal(Signal::TERM);
        self.server.ends_within(plimsoll_tests::binary::PATIENCE);
        let text = std::fs::read_to_string(self.path().join("access.log")).unwrap();
        text.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    }

    fn transfers(&self) -> PathBuf {
        self.path().join("data/transfers.jsonl")
    }
}

/// Asserts that a proxy configured by a recipe forwards the client, files, and refusals.
fn serves_by_its_recipe(kind: EngineKind, start: fn(&Server, &Path) -> Proxy) {
    let place = Workspace::new(kind, &["--trusted-proxy", "127.0.0.1"]);
    let proxy = start(&place.server, place.path());
    proxy.has_files(place.path());
    // Values that the client itself sends in these fields are ignored.
    let claims = ["--header", "X-Forwarded-For: 203.0.113.1", "--header", "Forwarded: for=203.0.113.1"];
    assert_eq!(proxy.curl("/files/moved.bin", &[&claims[..], &["--range", "0-9"]].concat()).0, 206);
    let other_host = ["--request", "MOVE", "--header", "Destination: http://elsewhere.example/files/x"];
    assert_eq!(proxy.curl("/files/moved.bin", &other_host).0, 502);
    for target in ["/metrics", "/api/status"] {
        assert_eq!(proxy.curl(target, &[]).0, 403, "{target}");
    }
    let account = r#"{"name":"bob","password":"correct horse"}"#;
    assert_eq!(proxy.curl("/api/accounts", &["--json", account]).0, 403, "sign-up is closed");
    drop(proxy);
    let hosts = place.hosts();
    assert!(hosts.len() >= 8 && hosts.iter().all(|host| host == CLIENT), "{hosts:?}");
}

fn nginx_serves_by_its_recipe(kind: EngineKind) {
    serves_by_its_recipe(kind, Proxy::nginx_of_the_recipe);
}

fn caddy_serves_by_its_recipe(kind: EngineKind) {
    serves_by_its_recipe(kind, Proxy::caddy_of_the_recipe);
}

/// `proxy_pass` and nothing else: nginx then sends HTTP/1.0 with its own name in Host, and names no client.
fn a_plain_proxy_pass_moves_files_and_opens_nothing_to_strangers(kind: EngineKind) {
    for (args, moved) in [(&["--trusted-proxy", "127.0.0.1"][..], 201), (&[], 502)] {
        let place = Workspace::new(kind, args);
        let port = free_port();
        let text = format!(
            "server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://{}; }} }}",
            place.server.at()
        );
        let proxy = Proxy::nginx(place.path(), &text, port);
        assert_eq!(proxy.curl("/files/a", &["--request", "PUT", "--data-binary", "hello"]).0, 201);
        let destination = format!("Destination: {}", proxy.url("/files/b"));
        let (status, text) = proxy.curl("/files/a", &["--request", "MOVE", "--header", &destination]);
        assert_eq!(status, moved, "{text}");
        assert!(moved == 201 || text.contains("--trusted-proxy"), "{text}");
        for target in ["/metrics", "/api/status"] {
            assert_eq!(proxy.curl(target, &[]).0, 403, "{target}");
        }
        let account = r#"{"name":"bob","password":"correct horse"}"#;
        assert_eq!(proxy.curl("/api/accounts", &["--json", account]).0, 403, "sign-up is closed");
    }
}

fn haproxy_names_clients_by_the_proxy_protocol(kind: EngineKind) {
    let more = ["--trusted-proxy", "127.0.0.1", "--proxy-protocol=http,ftp", "--ftp", "127.0.0.1:0"];
    let place = Workspace::new(kind, &more);
    let proxy = Proxy::haproxy_of_the_recipe(&place.server, place.path());
    proxy.has_files(place.path());
    assert_eq!(proxy.curl("/metrics", &[]).0, 403);
    let mut curl = tool("curl");
    curl.args(["--silent", "--show-error", "--max-time", "60", "--interface", CLIENT]);
    curl.args(["--user", "alice:correct horse", "--upload-file"]).arg(place.path().join("large.bin"));
    tool::run(curl.arg(format!("ftp://127.0.0.1:{}/by-ftp.bin", proxy.ftp_port))).well();
    let transfers = place.transfers();
    let of_ftp = || {
        let text = std::fs::read_to_string(&transfers).unwrap_or_default();
        let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let of_ftp = lines.filter(|line| line["protocol"] == "ftp" && line["operation"] == "upload");
        of_ftp.map(|line| line["peer"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    until("the upload over FTP is in the log", || !of_ftp().is_empty());
    assert_eq!(of_ftp(), [CLIENT]);
    // Only proxies send a header: other clients are served without one.
    assert_eq!(of_itself(place.server.at()), 200);
    drop(proxy);
    let hosts = place.hosts();
    let of_client = hosts.iter().filter(|host| *host == CLIENT).count();
    assert!(of_client >= 4 && hosts.len() <= of_client + 1, "{hosts:?}");
}

/// Returns the status of a request from an address that is not a proxy's.
fn of_itself(at: SocketAddr) -> u16 {
    let mut curl = tool("curl");
    curl.args([
        "--silent",
        "--output",
        "/dev/null",
        "--write-out",
        "%{http_code}",
        "--interface",
        "127.0.0.8",
    ]);
    tool::run(curl.arg(format!("http://{at}/healthz"))).well().text().parse().unwrap()
}

#[test]
fn an_address_of_operators_has_metrics_and_status_and_nothing_else() {
    let _permit = among_others();
    for kind in [EngineKind::Epoll, EngineKind::Process] {
        let port = free_port();
        let at = format!("127.0.0.1:{port}");
        let place = Workspace::new(kind, &["--metrics", &at, "--trusted-proxy", "127.0.0.1"]);
        assert!(place.server.stdout().contains(&format!("http://{at}/metrics")), "{}", place.server.stdout());
        let get = |at: &str, path: &str| {
            let mut curl = tool("curl");
            curl.args(["--silent", "--write-out", "\n%{http_code}"]);
            let text = tool::run(curl.arg(format!("http://{at}{path}"))).well().text();
            let (body, status) = text.rsplit_once('\n').unwrap();
            (status.parse::<u16>().unwrap(), body.to_owned())
        };
        for path in ["/metrics", "/api/status", "/healthz", "/readyz"] {
            assert_eq!(get(&at, path).0, 200, "{path}");
        }
        assert!(get(&at, "/metrics").1.contains("plimsoll_operation_duration_seconds"));
        for path in ["/", "/files/", "/api/whoami"] {
            assert_eq!(get(&at, path).0, 404, "{path}");
        }
        // The peer is a trusted proxy, so it does not count as a client on this machine.
        let public = place.server.at().to_string();
        assert_eq!((get(&public, "/metrics").0, get(&public, "/healthz").0), (403, 200));
    }
}

#[test]
fn sign_up_is_closed_until_the_operator_opens_it() {
    let _permit = among_others();
    let folder = tempfile::tempdir().unwrap();
    let mut serve = command();
    serve.args(["serve", "--http", "127.0.0.1:0", "--data"]).arg(folder.path());
    let server = Server::spawn(serve);
    let greeting = server.stdout();
    assert!(
        greeting.contains("--signup open") && greeting.contains("plimsoll account add alice"),
        "{greeting}"
    );
    let body = r#"{"name":"alice","password":"correct horse"}"#;
    let asked =
        server.visit().ask("POST", "/api/accounts", "Content-Type: application/json\r\n", body.as_bytes());
    assert_eq!(asked.unwrap().status, 403);
    drop(server);
    Member::new(&Server::on_data(EngineKind::Epoll, folder.path(), &[]), "alice");
}

/// The list of trusted proxies is reloaded with the configuration.
fn a_reload_replaces_the_trusted_proxies(kind: EngineKind) {
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("plimsoll.toml");
    std::fs::write(&settings, "").unwrap();
    let mut serve = command();
    serve
        .args(["serve", "--http", "127.0.0.1:0", "--engine", &kind.to_string(), "--data"])
        .arg(folder.path());
    let server = Server::spawn({
        serve.arg("--config").arg(&settings);
        serve
    });
    let malformed = || server.visit().get_with("/healthz", "X-Forwarded-For: nonsense\r\n").unwrap().status;
    assert_eq!(malformed(), 200, "fields of others are not read");
    std::fs::write(&settings, "trusted_proxy = [\"127.0.0.0/8\"]\n").unwrap();
    server.signal(Signal::HUP);
    until("the proxy is trusted", || malformed() == 400);
}

on_each_engine!(forks:
    nginx_serves_by_its_recipe,
    haproxy_names_clients_by_the_proxy_protocol,
    a_reload_replaces_the_trusted_proxies,
);

mod of_epoll {
    use super::*;

    #[test]
    fn caddy_serves_by_its_recipe() {
        let _permit = among_others();
        super::caddy_serves_by_its_recipe(EngineKind::Epoll);
    }

    #[test]
    fn a_plain_proxy_pass_moves_files_and_opens_nothing_to_strangers() {
        let _permit = among_others();
        super::a_plain_proxy_pass_moves_files_and_opens_nothing_to_strangers(EngineKind::Epoll);
    }
}
