//! Uploads whose connection is cut without the end of TLS (close_notify): in each framing, and through a
//! proxy. None of them makes a file.

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::time::Duration;

use plimsoll_tests::binary::{EngineKind, Member, among_others, tool, until};
use plimsoll_tests::on_each_engine;
use plimsoll_tests::tree::noise;

use super::Secure;
use crate::reverse_proxy::proxy;

const LENGTH: usize = 300_000;
/// Longer than bytes take to arrive, and the server to notice the end.
const ARRIVED: Duration = Duration::from_millis(300);
const LAST_CHUNK: &str = "0\r\n\r\n";
const LAST_BOUNDARY: &str = "\r\n--XX--\r\n";

/// A connection through `openssl`. Killing that cuts it.
struct Sending(Child);

impl Drop for Sending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn send(at: SocketAddr, bytes: &[u8]) -> Sending {
    let mut command = tool("openssl");
    command.args(["s_client", "-quiet", "-connect", &at.to_string()]).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    Sending(child)
}

/// An upload of a file. The last bytes of the request are not sent.
struct Upload {
    path: String,
    request: Vec<u8>,
    missing: usize,
}

impl Upload {
    fn new(alice: &Member, line: &str, path: &str, (fields, body): (&str, &[u8]), missing: usize) -> Upload {
        let head = format!("{line} HTTP/1.1\r\nHost: localhost\r\n{}{fields}\r\n", alice.field());
        Upload { path: path.to_owned(), request: [head.as_bytes(), body].concat(), missing }
    }

    fn send(&self, at: SocketAddr) -> Sending {
        send(at, &self.request[..self.request.len() - self.missing])
    }
}

fn sized(alice: &Member, missing: usize) -> Upload {
    let path = format!("/files/sized-{missing}");
    let fields = format!("Content-Length: {LENGTH}\r\n");
    Upload::new(alice, &format!("PUT {path}"), &path, (&fields, &noise(1, LENGTH)), missing)
}

fn chunked(alice: &Member, missing: usize) -> Upload {
    let path = format!("/files/chunked-{missing}");
    let mut body = Vec::new();
    for chunk in noise(1, LENGTH).chunks(70_000) {
        body.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        body.extend_from_slice(&[chunk, b"\r\n"].concat());
    }
    body.extend_from_slice(LAST_CHUNK.as_bytes());
    let fields = "Transfer-Encoding: chunked\r\n";
    Upload::new(alice, &format!("PUT {path}"), &path, (fields, &body), missing)
}

fn in_a_form(alice: &Member, missing: usize) -> Upload {
    let head =
        format!("--XX\r\nContent-Disposition: form-data; name=\"a\"; filename=\"form-{missing}\"\r\n\r\n");
    let body = [head.as_bytes(), &noise(1, LENGTH), LAST_BOUNDARY.as_bytes()].concat();
    let fields =
        format!("Content-Type: multipart/form-data; boundary=XX\r\nContent-Length: {}\r\n", body.len());
    Upload::new(alice, "POST /files/", &format!("/files/form-{missing}"), (&fields, &body), missing)
}

/// Sends uploads to `at`, and cuts them. The `alice` of the server behind that has no file then.
fn assert_no_file_if_cut(at: SocketAddr, alice: &mut Member) {
    let uploads = [
        sized(alice, LENGTH - 1),
        sized(alice, LENGTH / 2),
        sized(alice, 1),
        chunked(alice, LENGTH / 2),
        chunked(alice, LAST_CHUNK.len()),
        chunked(alice, 2),
        in_a_form(alice, LENGTH / 2),
        in_a_form(alice, LAST_BOUNDARY.len()),
    ];
    let sending: Vec<Sending> = uploads.iter().map(|upload| upload.send(at)).collect();
    std::thread::sleep(ARRIVED);
    drop(sending);
    std::thread::sleep(ARRIVED);
    for Upload { path, missing, .. } in &uploads {
        assert_eq!(alice.get(path).status, 404, "{path}, without {missing} bytes");
    }
    for whole in [sized(alice, 0), chunked(alice, 0), in_a_form(alice, 0)] {
        let _sending = whole.send(at);
        until("the complete upload has arrived", || alice.get(&whole.path).status == 200);
        assert!(alice.get(&whole.path).body == noise(1, LENGTH), "{}", whole.path);
    }
}

/// Sends the half of an upload by tus to `at`, and cuts it. The rest completes the file.
fn assert_resumable_if_cut(at: SocketAddr, alice: &mut Member) {
    // `tus`
    let fields = format!("Tus-Resumable: 1.0.0\r\nUpload-Length: {LENGTH}\r\nUpload-Metadata: path dHVz\r\n");
    let created = alice.ask("POST", "/uploads", &fields, b"");
    assert_eq!(created.status, 201, "{}", created.text());
    let (location, body) = (created.field("Location").unwrap().to_owned(), noise(2, LENGTH));
    let kind = "Content-Type: application/offset+octet-stream\r\n";
    let part = |offset: usize| format!("Tus-Resumable: 1.0.0\r\n{kind}Upload-Offset: {offset}\r\n");
    let fields = format!("{}Content-Length: {LENGTH}\r\n", part(0));
    let upload = Upload::new(alice, &format!("PATCH {location}"), "/files/tus", (&fields, &body), LENGTH / 2);
    let sending = upload.send(at);
    std::thread::sleep(ARRIVED);
    drop(sending);
    let mut received = 0;
    until("the upload is no longer in use", || {
        let head = alice.ask("HEAD", &location, "Tus-Resumable: 1.0.0\r\n", b"");
        received = head.field("Upload-Offset").and_then(|offset| offset.parse().ok()).unwrap_or(LENGTH);
        head.status == 200
    });
    assert!(received <= LENGTH / 2, "{received}");
    assert_eq!(alice.get("/files/tus").status, 404);
    assert_eq!(alice.ask("PATCH", &location, &part(received), &body[received..]).status, 204);
    assert!(alice.get("/files/tus").body == body);
}

fn an_upload_that_is_cut_makes_no_file(kind: EngineKind) {
    let secure = Secure::start(kind, &[]);
    let mut alice = Member::new(&secure.server, "alice");
    assert_no_file_if_cut(secure.at(), &mut alice);
    assert_resumable_if_cut(secure.at(), &mut alice);
}

fn an_upload_that_is_cut_at_a_proxy_makes_no_file_at_the_origin(kind: EngineKind) {
    let secure = Secure::start(EngineKind::Epoll, &[]);
    let mut alice = Member::new(&secure.server, "alice");
    let path = |name: &str| secure.path(name).to_str().unwrap().to_owned();
    let tls = ["--certificate", &path("own.pem"), "--key", &path("own.key"), "--listen-tls", "127.0.0.1:0"];
    let proxy = proxy(kind, &[&tls[..], &["--origin", &secure.server.url("")]].concat());
    assert_no_file_if_cut(proxy.https_at(), &mut alice);
    assert_resumable_if_cut(proxy.https_at(), &mut alice);
}

on_each_engine!(forks:
    an_upload_that_is_cut_makes_no_file,
    an_upload_that_is_cut_at_a_proxy_makes_no_file_at_the_origin,
);

#[test]
fn an_upload_that_is_cut_makes_no_file_under_the_pool() {
    let _permit = among_others();
    an_upload_that_is_cut_makes_no_file(EngineKind::Pool);
}
