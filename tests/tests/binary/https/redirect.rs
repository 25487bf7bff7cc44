//! The redirect from HTTP to HTTPS, and the order to go on using HTTPS.

use plimsoll_tests::binary::{EngineKind, Reply, free_port};
use plimsoll_tests::on_each_engine;

use super::Secure;

fn clients_of_http_are_redirected_under_the_names_of_the_certificate(kind: EngineKind) {
    let port = free_port();
    let at = format!("127.0.0.1:{port}");
    let secure = Secure::start_at(kind, &at, &["--http-redirect", "--trusted-proxy", "127.0.0.1"]);
    let get = |target: &str, host: &str, fields: &str| -> Reply {
        let mut visitor = secure.server.visit();
        visitor.send(&format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n")).unwrap();
        visitor.reply().unwrap()
    };
    for (target, host, fields, status, location) in [
        ("/a%20b?c", "files.example.org", "", 308, Some("https://files.example.org:PORT/a%20b?c")),
        ("/", "FILES.example.org:8080", "", 308, Some("https://FILES.example.org:PORT/")),
        ("/", "127.0.0.1:1", "X-Forwarded-For: 203.0.113.5\r\n", 308, Some("https://127.0.0.1:PORT/")),
        ("/", "[::1]", "X-Forwarded-For: 203.0.113.5\r\n", 308, Some("https://[::1]:PORT/")),
        (
            "http://files.example.org/x",
            "files.example.org",
            "",
            308,
            Some("https://files.example.org:PORT/x"),
        ),
        ("/", "elsewhere.example.com", "", 421, None),
        ("/healthz", "elsewhere.example.com", "", 200, None),
        ("/.well-known/acme-challenge/x", "files.example.org", "", 404, None),
        (
            "/.well-known/acme-challenges",
            "files.example.org",
            "",
            308,
            Some("https://files.example.org:PORT/.well-known/acme-challenges"),
        ),
        (
            "/files/",
            "files.example.org",
            "X-Forwarded-For: 203.0.113.5\r\nX-Forwarded-Proto: https\r\n",
            401,
            None,
        ),
    ] {
        let reply = get(target, host, fields);
        let expected = location.map(|location| location.replace("PORT", &port.to_string()));
        let found = (reply.status, reply.field("Location").map(str::to_owned));
        assert_eq!(found, (status, expected), "{target} of {host}: {}", reply.text());
    }
    // curl follows it.
    let (http, name) = (secure.server.at().port(), "files.example.org");
    let [plain, encrypted] = [http, port].map(|port| format!("{name}:{port}:127.0.0.1"));
    let (url, to) = (format!("http://{name}:{http}/x"), ["--resolve", &plain, "--resolve", &encrypted]);
    // Not from the trusted proxy's address: without X-Forwarded-Proto, its requests over HTTPS are
    // redirected, too.
    let followed = secure.curl(
        &[&to[..], &["--interface", "127.0.0.9", "-L", "-o", "/dev/null", "-w", "%{url_effective}", &url]]
            .concat(),
    );
    assert_eq!(followed.well().text(), format!("https://{name}:{port}/x"));
}

fn the_order_to_use_nothing_but_https_is_sent_over_https_alone(kind: EngineKind) {
    let secure = Secure::start(kind, &["--hsts", "2d"]);
    let head = |url: &str| {
        let to = format!("localhost:{}:127.0.0.1", secure.at().port());
        secure.curl(&["--resolve", &to, "-I", url]).well().text()
    };
    let order = "Strict-Transport-Security: max-age=172800\r\n";
    let by_name = head(&format!("https://localhost:{}/healthz", secure.at().port()));
    assert!(by_name.contains(order), "{by_name}");
    let by_address = head(&secure.url("/healthz"));
    assert!(by_address.contains("200 OK") && !by_address.contains("Strict"), "{by_address}");
    let plain = head(&secure.server.url("/healthz"));
    assert!(plain.contains("200 OK") && !plain.contains("Strict"), "{plain}");
}

on_each_engine!(forks:
    clients_of_http_are_redirected_under_the_names_of_the_certificate,
    the_order_to_use_nothing_but_https_is_sent_over_https_alone,
);
