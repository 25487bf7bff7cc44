//! Ambiguous requests through the proxy into nginx, lighttpd and plimsoll.
//!
//! The proxy and its origin must agree about where a request ends. Two ordinary requests follow each
//! ambiguous one: the first on the same connection, the second on a new one, for which the proxy reuses its
//! connection to the origin. Invariants: each of the two gets its own response; the first may get none, if
//! its connection ends. The origin's log has no request that no client sent.

mod table;

use std::path::Path;
use std::time::Duration;

use plimsoll_tests::binary::{EngineKind, Reply, Server, Visitor, among_others};
use rustix::process::Signal;

use self::table::{CHUNKS, EVIL, FIELDS, FORWARDED, HEADS};
use super::reverse_proxy::proxy;
use super::web_servers::{ACCESS_LOG, WebServer};

/// Follows each request in the same write.
const SAME: &str = "GET /same.txt HTTP/1.1\r\nHost: test\r\n\r\n";

/// Returns the requests that are refused.
fn refused() -> Vec<String> {
    let head = |fields: &str| format!("POST /small.txt HTTP/1.1\r\nHost: test\r\n{fields}\r\n");
    let fields = FIELDS.iter().map(|fields| head(fields) + "5\r\nhello\r\n0\r\n\r\n");
    let chunked = head("Transfer-Encoding: chunked\r\n");
    let chunks = CHUNKS.iter().map(|chunks| format!("{chunked}{chunks}"));
    let heads = HEADS.iter().map(|head| (*head).to_owned());
    fields.chain(chunks).chain(heads).map(|request| request + EVIL).collect()
}

/// Returns the requests that are forwarded.
fn forwarded() -> Vec<String> {
    let request = |&(line, fields, body): &(&str, &str, &str)| {
        format!("{line}\r\nHost: test\r\n{fields}\r\n{}", body.replace("{EVIL}", EVIL))
    };
    FORWARDED.iter().map(request).collect()
}

/// Sends a request with another behind it, and returns the final response to the first.
fn first_of_two(visitor: &mut Visitor, request: &str) -> Reply {
    visitor.send(&format!("{request}{SAME}")).unwrap();
    loop {
        let reply = visitor.reply().unwrap_or_else(|broken| panic!("{request:?}: {broken:?}"));
        if reply.status >= 200 {
            return reply;
        }
    }
}

fn assert_own(reply: &Reply, body: &str, request: &str) {
    assert!(reply.status == 200 && reply.text() == body, "{request:?}: {}{}", reply.head, reply.text());
}

/// Sends all requests through a proxy in front of `origin`. Returns the number of those that reach it, with
/// the requests that follow.
fn agrees_with(origin: &str) -> usize {
    let proxy = proxy(EngineKind::Epoll, &["--origin", origin, "--threads", "1"]);
    let (refused, forwarded) = (refused(), forwarded());
    assert!(refused.len() + forwarded.len() >= 150, "{} and {}", refused.len(), forwarded.len());
    let mut reached = 0;
    let mut next = |request: &str| {
        assert_own(&proxy.visit().get("/next.txt").unwrap(), "next\n", request);
        reached += 1;
    };
    for request in &refused {
        let mut visitor = proxy.visit();
        let reply = first_of_two(&mut visitor, request);
        assert!((400..=505).contains(&reply.status) && reply.closes, "{request:?}: {}", reply.head);
        assert!(visitor.reply().is_err(), "{request:?} ends the connection");
        next(request);
    }
    for request in &forwarded {
        let mut visitor = proxy.visit();
        let reply = first_of_two(&mut visitor, request);
        if reply.closes {
            assert!(visitor.reply().is_err(), "{request:?} ends the connection");
        } else {
            assert_own(&visitor.reply().unwrap(), "same\n", request);
        }
        next(request);
    }
    reached + forwarded.len()
}

fn site() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["small", "same", "next", "evil"] {
        std::fs::write(folder.path().join(name).with_extension("txt"), format!("{name}\n")).unwrap();
    }
    folder
}

/// Asserts that a log has the requests that reached an origin, and no other.
fn assert_logged(work: &Path, reached: usize) {
    let log = std::fs::read_to_string(work.join(ACCESS_LOG)).unwrap();
    assert!(log.lines().count() >= reached, "{reached}: {log}");
    assert!(!log.contains("evil"), "{log}");
}

#[test]
fn the_proxy_and_nginx_agree_about_where_a_request_ends() {
    let _permit = among_others();
    let (folder, work) = (site(), tempfile::tempdir().unwrap());
    let nginx = WebServer::nginx_with_files(work.path(), folder.path());
    let reached = agrees_with(&nginx.url(""));
    nginx.end();
    assert_logged(work.path(), reached);
}

#[test]
fn the_proxy_and_lighttpd_agree_about_where_a_request_ends() {
    let _permit = among_others();
    let (folder, work) = (site(), tempfile::tempdir().unwrap());
    let lighttpd = WebServer::lighttpd(work.path(), folder.path());
    let reached = agrees_with(&lighttpd.url(""));
    lighttpd.end();
    assert_logged(work.path(), reached);
}

#[test]
fn the_proxy_and_plimsoll_agree_about_where_a_request_ends() {
    let _permit = among_others();
    let (folder, work) = (site(), tempfile::tempdir().unwrap());
    let log = work.path().join(ACCESS_LOG);
    let mut origin =
        Server::start(EngineKind::Epoll, folder.path(), &["--access-log", log.to_str().unwrap()]);
    let reached = agrees_with(&format!("http://{}", origin.at()));
    origin.signal(Signal::TERM);
    assert!(origin.ends_within(Duration::from_secs(30)).success());
    assert_logged(work.path(), reached);
}
