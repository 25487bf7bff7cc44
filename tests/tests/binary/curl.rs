//! curl as a client: commands as typed in a terminal or used in scripts.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_tests::binary::{Done, EngineKind, PATIENCE, Server, tool, until};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Tree, on_each_engine};
use rustix::process::Signal;

const LARGE_BYTES: usize = 16 << 20;
/// 2020-09-13 12:26:40 UTC.
const MODIFIED: Duration = Duration::from_secs(1_600_000_000);

fn large() -> Vec<u8> {
    noise(11, LARGE_BYTES)
}

/// Creates the served folder, and one next to it for curl's output.
fn folders() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (site, out) = (folder.path().join("site"), folder.path().join("out"));
    std::fs::create_dir(&out).unwrap();
    let tree = Tree::new().file_of("small.txt", "small\n", MODIFIED).file("large.bin", large());
    tree.plant(&site);
    (folder, site, out)
}

fn curl() -> Command {
    let mut curl = tool("curl");
    curl.args(["-q", "--silent", "--show-error"]);
    curl
}

fn run(args: &[&str]) -> Done {
    tool::run(curl().args(args)).well()
}

fn get_and_head(kind: EngineKind) {
    let (_folder, site, out) = folders();
    let server = Server::start(kind, &site, &[]);
    assert_eq!(run(&[&server.url("/small.txt")]).stdout, b"small\n");
    let into = out.join("large.bin");
    run(&["-o", into.to_str().unwrap(), &server.url("/large.bin")]);
    assert!(std::fs::read(into).unwrap() == large());
    let head = run(&["--head", &server.url("/small.txt")]).text();
    for line in
        ["HTTP/1.1 200 OK\r\n", "Content-Length: 6\r\n", "Last-Modified: Sun, 13 Sep 2020 12:26:40 GMT\r\n"]
    {
        assert!(head.contains(line), "{line:?} is not in: {head}");
    }
    assert!(head.ends_with("\r\n\r\n"), "nothing follows the head: {head}");
    let missing = run(&["-w", "\n%{http_code}", &server.url("/missing")]).text();
    assert!(missing.ends_with("\n404"), "{missing}");
}

fn ranges(kind: EngineKind) {
    let (_folder, site, _) = folders();
    let server = Server::start(kind, &site, &[]);
    let url = server.url("/large.bin");
    for (range, bytes) in [
        ("0-0", 0..1),
        ("1000-1999", 1000..2000),
        ("-500", LARGE_BYTES - 500..LARGE_BYTES),
        ("16777000-", 16_777_000..LARGE_BYTES),
    ] {
        let done = run(&["-r", range, "-w", "%{stderr}%{http_code}", &url]);
        assert_eq!(done.stderr, "206", "{range}");
        assert!(done.stdout == large()[bytes], "{range}");
    }
    let beyond = run(&["-r", "16777216-", "-w", "%{stderr}%{http_code}", &url]);
    assert_eq!(beyond.stderr, "416");
}

fn several_ranges_in_one_answer(kind: EngineKind) {
    let (_folder, site, _) = folders();
    let server = Server::start(kind, &site, &[]);
    let done = run(&[
        "-r",
        "0-9,5000-5999,-3",
        "-w",
        "%{stderr}%{http_code} %{content_type}",
        &server.url("/large.bin"),
    ]);
    let boundary = done.stderr.strip_prefix("206 multipart/byteranges; boundary=").expect("parts");
    let delimiter = format!("--{}", boundary.trim_matches('"')).into_bytes();
    let starts: Vec<usize> =
        (0..done.stdout.len()).filter(|&at| done.stdout[at..].starts_with(&delimiter)).collect();
    assert_eq!(starts.len(), 4, "three parts and the end");
    for (pair, bytes) in starts.windows(2).zip([0..10, 5000..6000, LARGE_BYTES - 3..LARGE_BYTES]) {
        let part = &done.stdout[pair[0]..pair[1]];
        let field = format!("Content-Range: bytes {}-{}/{LARGE_BYTES}\r\n", bytes.start, bytes.end - 1);
        let body = part.windows(4).position(|four| four == b"\r\n\r\n").expect("a part's head") + 4;
        let head = String::from_utf8_lossy(&part[..body]);
        assert!(head.contains(&field), "{field} is not in: {head}");
        assert!(part[body..] == [&large()[bytes], b"\r\n"].concat(), "{field}");
    }
}

/// Starts a download, and kills it after a part was received.
fn cut_off(mut download: Command, part: &Path) {
    let mut child = download.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    until("a part has come", || std::fs::metadata(part).is_ok_and(|part| part.len() > 100_000));
    child.kill().unwrap();
    child.wait().unwrap();
    let came = std::fs::metadata(part).unwrap().len();
    assert!(came < LARGE_BYTES as u64, "it was to be cut off");
}

fn a_download_that_was_cut_off_is_resumed(kind: EngineKind) {
    let (_folder, site, out) = folders();
    let server = Server::start(kind, &site, &[]);
    let into = out.join("large.bin");
    let (path, url) = (into.to_str().unwrap(), server.url("/large.bin"));
    let mut slow = curl();
    slow.args(["--limit-rate", "2M", "-o", path, &url]);
    cut_off(slow, &into);
    let done = run(&["-C", "-", "-o", path, "-w", "%{http_code} %{size_download}", &url]);
    let text = done.text();
    let (code, bytes) = text.split_once(' ').unwrap();
    assert_eq!(code, "206");
    assert!(bytes.parse::<usize>().unwrap() < LARGE_BYTES, "{bytes}: only the rest");
    assert!(std::fs::read(&into).unwrap() == large());
}

fn an_unchanged_file_is_not_sent_again(kind: EngineKind) {
    let (_folder, site, out) = folders();
    let server = Server::start(kind, &site, &[]);
    let (url, into) = (server.url("/small.txt"), out.join("small.txt"));
    let path = into.to_str().unwrap();
    let code = |args: &[&str]| run(&[args, &["-w", "%{http_code}", "-o", path, &url]].concat()).text();
    assert_eq!(code(&["-R"]), "200");
    assert_eq!(code(&["-z", path]), "304", "since the time of the file that -R set");
    assert_eq!(code(&["-z", "Sun, 13 Sep 2020 12:26:39 GMT"]), "200", "changed since");
    assert_eq!(code(&["-z", "-Sun, 13 Sep 2020 12:26:39 GMT"]), "412", "If-Unmodified-Since");
    let tag = out.join("etag");
    let tag = tag.to_str().unwrap();
    assert_eq!(code(&["--etag-save", tag]), "200");
    assert_eq!(code(&["--etag-compare", tag]), "304");
    assert_eq!(std::fs::read(into).unwrap(), b"small\n");
}

fn a_precompressed_sibling_is_sent_and_unpacked(kind: EngineKind) {
    let (_folder, site, _) = folders();
    let text = "the same line again and again\n".repeat(2000);
    std::fs::write(site.join("page.txt"), &text).unwrap();
    let gzip = tool::run(tool("gzip").arg("-kn").arg(site.join("page.txt"))).well();
    assert!(site.join("page.txt.gz").is_file(), "{}", gzip.stderr);
    let server = Server::start(kind, &site, &[]);
    let url = server.url("/page.txt");
    let bytes = |done: &Done| done.stderr.parse::<usize>().unwrap();
    let packed = run(&["--compressed", "-w", "%{stderr}%{size_download}", &url]);
    assert!(packed.text() == text);
    assert!(bytes(&packed) < text.len() / 10, "{} bytes on the wire", bytes(&packed));
    let plain = run(&["-w", "%{stderr}%{size_download}", &url]);
    assert!(plain.text() == text);
    assert_eq!(bytes(&plain), text.len());
}

fn a_connection_is_kept_for_the_next_url(kind: EngineKind) {
    let (_folder, site, _) = folders();
    let server = Server::start(kind, &site, &[]);
    let (small, large) = (server.url("/small.txt"), server.url("/large.bin"));
    let nowhere = ["-o", "/dev/null"].repeat(3);
    let asked = ["-v", "-w", "connects=%{num_connects}\n", &small, &large, &small];
    let done = run(&[&asked[..], &nowhere].concat());
    let output = done.text();
    let connects: Vec<&str> = output.lines().filter_map(|line| line.strip_prefix("connects=")).collect();
    assert_eq!(connects, ["1", "0", "0"], "{}", done.stderr);
    let log = done.stderr.to_lowercase();
    assert!(log.contains("re-using existing") || log.contains("reusing existing"), "{log}");
}

/// HTTP/1.0 without keep-alive: the answer, and then the end.
fn http_1_0_is_served_and_closed(kind: EngineKind) {
    let (_folder, site, _) = folders();
    let server = Server::start(kind, &site, &[]);
    let (small, large_url) = (server.url("/small.txt"), server.url("/large.bin"));
    assert!(run(&["-0", &large_url]).stdout == large());
    let twice = run(&["-0", "-w", "%{stderr}%{num_connects}", &small, &small]);
    assert_eq!((twice.text().as_str(), twice.stderr.as_str()), ("small\nsmall\n", "11"));
}

/// Returns the argument that makes a server listen on a Unix socket, and the path for curl.
fn socket_in(folder: &Path) -> (String, String) {
    let path = folder.join("socket").display().to_string();
    (format!("unix:{path}"), path)
}

fn small_by_socket(path: &str) -> Vec<u8> {
    run(&["--unix-socket", path, "http://plimsoll/small.txt"]).stdout
}

fn a_unix_socket_serves_the_same(kind: EngineKind) {
    let (folder, site, _) = folders();
    let (at, path) = socket_in(folder.path());
    let killed = Server::start(kind, &site, &["--http", &at]);
    assert_eq!(small_by_socket(&path), b"small\n");
    assert!(run(&["--unix-socket", &path, "http://plimsoll/large.bin"]).stdout == large());
    drop(killed);
    assert!(Path::new(&path).exists(), "who is killed leaves the socket behind");
    let mut server = Server::start(kind, &site, &["--http", &at]);
    assert_eq!(small_by_socket(&path), b"small\n");
    server.signal(Signal::TERM);
    assert!(server.ends_within(PATIENCE).success());
    assert!(!Path::new(&path).exists(), "who is asked to end leaves nothing");
}

/// While one server drains, its successor may bind the same path, and keeps it.
fn a_successor_keeps_the_unix_socket(kind: EngineKind) {
    let (folder, site, _) = folders();
    let (at, path) = socket_in(folder.path());
    let mut old = Server::start(kind, &site, &["--http", "127.0.0.1:0", "--http", &at, "--grace", "600s"]);
    let mut reader = old.visit_narrowly();
    reader.send("GET /large.bin HTTP/1.1\r\nHost: test\r\n\r\n").unwrap();
    reader.head().unwrap();
    old.signal(Signal::TERM);
    old.wait_until_refused();
    let _new = Server::start(kind, &site, &["--http", &at]);
    assert_eq!(small_by_socket(&path), b"small\n");
    assert!(old.is_running(), "its download goes on");
    drop(reader);
    assert!(old.ends_within(PATIENCE).success());
    assert_eq!(small_by_socket(&path), b"small\n");
}

fn several_addresses_serve_at_once(kind: EngineKind) {
    let (folder, site, _) = folders();
    let (at, path) = socket_in(folder.path());
    let server = Server::start(kind, &site, &["--http", "127.0.0.1:0", "--http", &at]);
    assert_eq!(run(&[&server.url("/small.txt")]).stdout, b"small\n");
    assert_eq!(small_by_socket(&path), b"small\n");
}

/// Eight concurrent downloads over as many connections, each complete.
fn many_downloads_at_once(kind: EngineKind) {
    let (_folder, site, out) = folders();
    let server = Server::start(kind, &site, &[]);
    let into = out.join("copy-#1.bin");
    let url = server.url("/large.bin?[1-8]");
    run(&["--parallel", "--parallel-immediate", "-o", into.to_str().unwrap(), &url]);
    for number in 1..=8 {
        assert!(std::fs::read(out.join(format!("copy-{number}.bin"))).unwrap() == large(), "copy {number}");
    }
}

/// Sends one of the ten requests, with a session's token if there is one. Returns the status and the body.
fn request(token: &str, args: &[&str]) -> (String, Vec<u8>) {
    let field = format!("Authorization: Bearer {token}");
    let credentials: &[&str] = if token.is_empty() { &[] } else { &["-H", &field] };
    let done = run(&[credentials, &["-w", "%{stderr}%{http_code}"], args].concat());
    (done.stderr, done.stdout)
}

fn as_json(bytes: &[u8]) -> serde_json::Value {
    serde_json::from_slice(bytes)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(bytes)))
}

/// Sends a request with a JSON body.
fn sent(token: &str, url: &str, body: &str) -> (String, serde_json::Value) {
    let (status, came) = request(token, &["--json", body, url]);
    (status, as_json(&came))
}

fn signed_up(server: &Server, name: &str) -> String {
    let body = format!(r#"{{"name":"{name}","password":"correct horse"}}"#);
    let (status, made) = sent("", &server.url("/api/accounts"), &body);
    assert_eq!((&*status, &made["name"]), ("201", &name.into()));
    assert_eq!(sent("", &server.url("/api/accounts"), &body).0, "409", "the name is taken");
    let (status, begun) = sent("", &server.url("/api/sessions"), &body);
    assert_eq!((&*status, &begun["account"]), ("201", &name.into()));
    begun["token"].as_str().expect("a token").to_owned()
}

fn the_ten_requests(kind: EngineKind) {
    let (folder, site, out) = folders();
    let server = Server::on_data(kind, &folder.path().join("data"), &[]);
    let (file, sent_file) = (server.url("/files/large.bin"), site.join("large.bin"));
    // Sign up, log in.
    let (alice, bob) = (signed_up(&server, "alice"), signed_up(&server, "bob"));
    let wrong = r#"{"name":"alice","password":"wrong horse"}"#;
    assert_eq!(sent("", &server.url("/api/sessions"), wrong).0, "401");
    // List, upload, list.
    let listed = |token: &str| {
        let (status, came) = request(token, &[&server.url("/files/?format=json")]);
        assert_eq!(status, "200");
        as_json(&came)["entries"].clone()
    };
    assert_eq!(listed(&alice), serde_json::json!([]));
    assert_eq!(request(&alice, &["-T", sent_file.to_str().unwrap(), &file]).0, "201");
    assert_eq!(request(&alice, &["-T", sent_file.to_str().unwrap(), &file]).0, "204");
    let entry = listed(&alice)[0].clone();
    assert_eq!(
        (&entry["name"], &entry["kind"], &entry["size"]),
        (&"large.bin".into(), &"file".into(), &LARGE_BYTES.into())
    );
    // Download.
    let into = out.join("large.bin");
    assert_eq!(request(&alice, &["-o", into.to_str().unwrap(), &file]).0, "200");
    assert!(std::fs::read(&into).unwrap() == large(), "every byte");
    assert_eq!(request("", &[&file]).0, "401");
    // Share, download the shared file, list the received shares.
    let shared = server.url("/shared/alice/large.bin");
    assert_eq!(request(&bob, &[&shared]).0, "404", "not yet");
    let share = r#"{"path":"/large.bin","with":"bob","permission":"read"}"#;
    let (status, given) = sent(&alice, &server.url("/api/shares"), share);
    assert_eq!((&*status, &given["with"]), ("201", &"bob".into()));
    assert!(request(&bob, &[&shared]) == ("200".to_owned(), large()), "every byte");
    assert_eq!(request(&bob, &["-T", sent_file.to_str().unwrap(), &shared]).0, "403", "to read only");
    let (status, with_me) = request(&bob, &[&server.url("/api/shared")]);
    let first = as_json(&with_me)["shares"][0].clone();
    assert_eq!((&*status, &first["owner"], &first["path"]), ("200", &"alice".into(), &"/large.bin".into()));
    // Delete the file, and thereby the share.
    assert_eq!(request(&alice, &["-X", "DELETE", &file]), ("204".to_owned(), Vec::new()));
    assert_eq!(request(&alice, &[&file]).0, "404");
    assert_eq!(request(&bob, &[&shared]).0, "404");
    // Log out.
    let session = server.url("/api/sessions/current");
    assert_eq!(request(&alice, &["-X", "DELETE", &session]), ("204".to_owned(), Vec::new()));
    assert_eq!(request(&alice, &[&server.url("/files/")]).0, "401", "the token is dead at once");
    assert_eq!(listed(&bob), serde_json::json!([]), "another's is not");
}

/// `curl -F` as typed by hand, and the start page for a new user.
fn a_form_sends_files_and_the_start_page_leads_on(kind: EngineKind) {
    let (folder, site, _out) = folders();
    let server = Server::on_data(kind, &folder.path().join("data"), &[]);
    let alice = signed_up(&server, "alice");
    let (first, second) = (site.join("large.bin"), site.join("a b;c.txt"));
    std::fs::write(&second, "quoted\n").unwrap();
    let form = |path: &Path| format!("file=@\"{}\"", path.display());
    let (status, stored) =
        request(&alice, &["-F", "note=x", "-F", &form(&first), "-F", &form(&second), &server.url("/files/")]);
    assert_eq!(status, "201", "{}", String::from_utf8_lossy(&stored));
    assert_eq!(as_json(&stored)["files"][1]["path"], "/a b;c.txt");
    assert!(request(&alice, &[&server.url("/files/large.bin")]) == ("200".to_owned(), large()), "every byte");
    let (status, page) = request("", &["-H", "Accept: text/html", &server.url("/")]);
    assert_eq!(status, "200");
    assert!(String::from_utf8_lossy(&page).contains("action=\"/app/login\""), "the page for a person");
}

on_each_engine!(forks:
    the_ten_requests,
    a_form_sends_files_and_the_start_page_leads_on,
    get_and_head,
    ranges,
    several_ranges_in_one_answer,
    a_download_that_was_cut_off_is_resumed,
    an_unchanged_file_is_not_sent_again,
    a_precompressed_sibling_is_sent_and_unpacked,
    a_connection_is_kept_for_the_next_url,
    http_1_0_is_served_and_closed,
    a_successor_keeps_the_unix_socket,
    several_addresses_serve_at_once,
    many_downloads_at_once,
);

// A killed server is replaced at once, but connection processes outlive the killed program for a moment.
mod one_process {
    use plimsoll_tests::on_each_engine;

    use super::a_unix_socket_serves_the_same;

    on_each_engine!(a_unix_socket_serves_the_same);
}
