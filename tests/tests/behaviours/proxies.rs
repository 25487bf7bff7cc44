//! Behind proxies: the client's address in request fields and in headers of the PROXY protocol, and access
//! to metrics and status.

use std::time::Duration;

use plimsoll_auth::{Attempts, Budget, Permissions, Settings};
use plimsoll_io::{Networks, Segment, Want};
use plimsoll_tests::accounts::{PASSWORD, settings};
use plimsoll_tests::{Client, Engine, Ftp, FtpClient, Person, Scenario, Scene, Tree, behaviours};

/// The address of a client, for documentation only (RFC 5737).
const CLIENT: &str = "192.0.2.9";
const OTHER: &str = "192.0.2.10";
/// How long a connection may wait for its header of the PROXY protocol: 5 seconds, and what the simulated
/// network adds.
const HEADER_TIME_MIN: Duration = Duration::from_secs(5);
const HEADER_TIME_MAX: Duration = Duration::from_secs(7);

/// The networks of all clients of a scene: this machine's, and a simulated network's.
fn all() -> Networks {
    Networks::from(vec!["127.0.0.0/8".parse().unwrap(), "10.0.0.0/8".parse().unwrap()])
}

fn direct() -> Scenario {
    let tree = Tree::new().file("a.txt", "hello");
    Scenario { tree, accounts: Some(settings()), ..Scenario::default() }
}

fn behind_a_proxy() -> Scenario {
    let few = Budget { count: 3, forgiven_after: Duration::from_secs(3600) };
    let attempts = Attempts { per_address: few, ..Attempts::default() };
    let settings = Settings { attempts: Some(attempts), ..settings() };
    Scenario { proxies: all(), accounts: Some(settings), ..direct() }
}

fn by_the_proxy_protocol() -> Scenario {
    let (ftp, classic) = (Some(Ftp::default()), Some(plimsoll_proto::classic::Limits::default()));
    Scenario { proxy_protocol: true, ftp, classic, ..direct() }
}

fn by_the_proxy_protocol_of_others() -> Scenario {
    Scenario { proxies: Networks::from(vec!["198.51.100.0/24".parse().unwrap()]), ..by_the_proxy_protocol() }
}

/// Waits for `count` lines of the access log, and returns their hosts.
async fn hosts(scene: &Scene, count: usize) -> Vec<String> {
    scene.until(|| scene.log.text().matches('\n').count() >= count).await;
    scene.log.text().lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect()
}

fn forwarded_for(address: &str) -> String {
    format!("X-Forwarded-For: {address}\r\n")
}

async fn the_client_that_a_trusted_proxy_names_is_in_both_logs(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    for (name, fields) in [
        ("a", forwarded_for(CLIENT)),
        ("b", forwarded_for(&format!("203.0.113.1, {OTHER}"))),
        ("c", format!("Forwarded: for={CLIENT};proto=https, for=\"10.9.9.9:80\"\r\n")),
    ] {
        // On one connection, as proxies keep theirs open.
        assert_eq!(alice.ask("PUT", &format!("/files/{name}"), &fields, "hello").await.status, 201);
    }
    let uploads: Vec<_> =
        scene.accounts().lines().into_iter().filter(|l| l["operation"] == "upload").collect();
    let peers: Vec<_> = uploads.iter().map(|line| line["peer"].as_str().unwrap().to_owned()).collect();
    assert_eq!(peers, [CLIENT, OTHER, CLIENT]);
    let count = usize::try_from(scene.begun()).unwrap();
    let logged = hosts(&scene, count).await;
    assert_eq!(logged[logged.len() - 3..], [CLIENT, OTHER, CLIENT]);
}

async fn fields_of_a_peer_that_is_no_trusted_proxy_are_ignored(scene: Scene) {
    scene.get_with("/a.txt", &forwarded_for(CLIENT)).await;
    scene.get_with("/a.txt", &format!("Forwarded: for={CLIENT}\r\n")).await;
    // Invalid contents of these fields are ignored, too.
    assert_eq!(scene.get_with("/a.txt", "Forwarded: for=\"\r\n").await.status, 200);
    for host in hosts(&scene, 3).await {
        assert!(host == "127.0.0.1" || host == "10.0.0.2", "{host}");
    }
}

async fn fields_that_name_no_client_clearly_are_refused(scene: Scene) {
    let both = format!("Forwarded: for={OTHER}\r\n{}", forwarded_for(CLIENT));
    assert!(scene.get_with("/a.txt", &both).await.problem(400).contains("different clients"));
    scene.get_with("/a.txt", &forwarded_for("not an address")).await.problem(400);
    assert_eq!(scene.get_with("/a.txt", &forwarded_for("unknown")).await.status, 200);
}

async fn wrong_passwords_count_for_the_client_and_not_for_the_proxy(scene: Scene) {
    Person::new(&scene, "alice").await;
    let mut proxy = scene.connect().await;
    let body = r#"{"name":"nobody","password":"a wrong one"}"#;
    let json = "Content-Type: application/json\r\n";
    let mut refused = 0;
    for _ in 0..10 {
        let fields = format!("{json}{}", forwarded_for(CLIENT));
        refused += usize::from(proxy.ask("POST", "/api/sessions", &fields, body).await.status == 429);
    }
    assert!(refused > 0, "guesses from one address are refused at some time");
    let right = format!("{{\"name\":\"alice\",\"password\":\"{PASSWORD}\"}}");
    let fields = format!("{json}{}", forwarded_for(OTHER));
    let other = proxy.ask("POST", "/api/sessions", &fields, right).await;
    assert_eq!(other.status, 201, "another client of the same proxy logs in: {}", other.text());
}

async fn a_destination_is_compared_with_what_the_proxy_was_asked_for(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "hello").await;
    let mut at = "a".to_owned();
    let public = "Destination: https://files.example/files/";
    let public_port = "Destination: https://files.example:8443/files/";
    for (name, fields, status) in [
        // A proxy that sets Host to its upstream's name, the default of nginx.
        ("b", String::new(), 201),
        ("c", "X-Forwarded-Host: files.example\r\n".to_owned(), 201),
        ("d", "Forwarded: for=192.0.2.9;host=\"files.example:443\"\r\n".to_owned(), 201),
        ("e", "X-Forwarded-Host: other.example\r\n".to_owned(), 502),
        ("f", "Forwarded: for=192.0.2.9;host=other.example\r\n".to_owned(), 502),
        // A proxy at another port that reports nginx's $host, which has no port.
        ("g", format!("X-Forwarded-Host: files.example\r\n{public_port}g\r\n"), 201),
        ("h", format!("Forwarded: for=192.0.2.9;host=files.example\r\n{public_port}h\r\n"), 201),
        ("i", format!("X-Forwarded-Host: files.example:8443\r\n{public_port}i\r\n"), 201),
        ("j", format!("X-Forwarded-Host: files.example:9443\r\n{public_port}j\r\n"), 502),
        ("k", format!("X-Forwarded-Host: other.example\r\n{public_port}k\r\n"), 502),
    ] {
        let public = if fields.contains("Destination") { "" } else { &*format!("{public}{name}\r\n") };
        let fields = format!("{public}{fields}");
        let moved = alice.ask("MOVE", &format!("/files/{at}"), &fields, "").await;
        assert_eq!(moved.status, status, "{fields}: {}", moved.text());
        if status == 201 {
            name.clone_into(&mut at);
        }
    }
    assert_eq!(alice.get(&format!("/files/{at}")).await.text(), "hello");
}

async fn without_a_trusted_proxy_a_destination_is_on_the_server_that_host_names(scene: Scene) {
    let mut alice = Person::new(&scene, "alice").await;
    alice.put("/files/a", "hello").await;
    let fields = "X-Forwarded-Host: files.example\r\nDestination: https://files.example/files/b\r\n";
    let refused = alice.ask("MOVE", "/files/a", fields, "").await.problem(502);
    assert!(refused.contains("--trusted-proxy"), "{refused}");
}

/// Returns headers of the PROXY protocol, versions 1 and 2, that name the client.
fn headers() -> [Vec<u8>; 2] {
    let line = format!("PROXY TCP4 {CLIENT} 198.51.100.1 40000 443\r\n").into_bytes();
    let binary = [
        &b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0f"[..],
        &[192, 0, 2, 9, 198, 51, 100, 1, 0x9c, 0x40, 1, 0xbb],
        // An extension (TLV) without bytes.
        &[4, 0, 0],
    ];
    [line, binary.concat()]
}

async fn a_header_of_the_proxy_protocol_names_the_client_of_the_connection(scene: Scene) {
    let request = b"GET /a.txt HTTP/1.1\r\nHost: test\r\n\r\n";
    for header in headers() {
        let whole = [&header[..], request].concat();
        // In one piece with the request, and split at several positions.
        for cut in [whole.len(), 1, header.len() / 2, header.len(), header.len() + 1] {
            let mut client = scene.connect().await;
            client.send(&whole[..cut]).await;
            client.send(&whole[cut..]).await;
            assert_eq!(client.answer().await.text(), "hello");
            // The header applies to the connection: the next request has the same client.
            assert_eq!(client.get("/a.txt").await.text(), "hello");
        }
    }
    assert!(hosts(&scene, 20).await.iter().all(|host| host == CLIENT));
}

async fn a_proxy_may_speak_for_itself(scene: Scene) {
    for header in [&b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0"[..], b"PROXY UNKNOWN\r\n"] {
        let mut client = scene.connect().await;
        client.push(header);
        assert_eq!(client.get("/a.txt").await.text(), "hello");
        // The proxy does not count as a client on this machine either.
        client.push("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
        client.answer().await.problem(403);
    }
    for host in hosts(&scene, 4).await {
        assert!(host == "127.0.0.1" || host == "10.0.0.2", "{host}");
    }
}

async fn a_connection_without_the_header_is_dropped(scene: Scene) {
    for bytes in [&b"GET /a.txt HTTP/1.1\r\nHost: test\r\n\r\n"[..], b"PROXY TCP4 192.0.2.9\r\n"] {
        let mut client = scene.connect().await;
        client.push(bytes);
        assert_eq!(client.expect_abort().await, b"");
    }
    if scene.engine == Engine::Simulator {
        // Waiting costs real time under the other engines.
        let mut silent = scene.connect().await;
        let begun = scene.io.now();
        silent.push("PROXY TCP4 192.0.2.9");
        assert_eq!(silent.expect_abort().await, b"");
        let passed = scene.io.now() - begun;
        assert!((HEADER_TIME_MIN..HEADER_TIME_MAX).contains(&passed), "{passed:?}");
    }
}

async fn a_peer_that_is_not_trusted_is_served_without_a_header(scene: Scene) {
    assert_eq!(scene.get("/a.txt").await.text(), "hello");
    let mut client = scene.connect().await;
    // The end of a head follows, so that a complete head was received.
    client.push([&headers()[0][..], b"\r\n"].concat());
    client.answer().await.problem(400);
    FtpClient::connect(&scene).await;
}

async fn ftp_and_classic_know_the_client_by_the_header(scene: Scene) {
    let account = scene.accounts().auth.clone();
    let password = plimsoll_auth::Secret::from(PASSWORD);
    let (quota, may) = (plimsoll_auth::Quota::default(), Permissions::default());
    account.add(&scene.io, "alice", &password, quota, may).await.unwrap();
    for (at, header) in headers().into_iter().enumerate() {
        let mut ftp = FtpClient::try_connect(&scene).await.unwrap();
        ftp.push(header.clone());
        ftp.reply().await.expect(220);
        ftp.log_in("alice").await;
        ftp.command(format!("MKD folder{at}")).await.expect(257);
        let connected = ftp.command("STAT").await.expect(211).text();
        assert!(connected.contains(&format!("connected from {CLIENT}")), "{connected}");
        let mut classic = scene.io.connect(scene.classic()).await.unwrap();
        let asked = format!("get:alice:{PASSWORD}\na.txt\n");
        classic.tx.push(Segment::Owned([&header[..], asked.as_bytes()].concat()));
        let mut addresses = Vec::new();
        while let Some(lease) = classic.rx.recv(Want::Body).await.unwrap() {
            addresses.extend_from_slice(&lease);
        }
        assert_eq!(addresses, b"ok\nok 5\nhello");
    }
    let lines = scene.accounts().lines();
    let of = |protocol: &str| lines.iter().filter(|line| line["protocol"] == protocol).count();
    assert!(of("ftp") > 0 && of("classic") > 0, "{lines:?}");
    assert!(lines.iter().all(|line| line["peer"] == CLIENT), "{lines:?}");
}

/// Sends a request for metrics with the host name that a client on this machine uses.
async fn metrics(client: &mut Client, target: &str, version: &str, fields: &str) -> u16 {
    client.push(format!("GET {target} HTTP/{version}\r\nHost: localhost:8080\r\n{fields}\r\n"));
    client.answer().await.status
}

async fn metrics_and_status_are_for_this_machine_without_a_proxy(scene: Scene) {
    // In the simulator, client and server are two machines.
    let here = if scene.engine == Engine::Simulator { 403 } else { 200 };
    for target in ["/metrics", "/api/status"] {
        let mut client = scene.connect().await;
        assert_eq!(metrics(&mut client, target, "1.1", "").await, here);
        for field in [
            "Forwarded: for=192.0.2.1\r\n",
            "X-Forwarded-For: 127.0.0.1\r\n",
            "x-forwarded-proto: https\r\n",
            "X-Real-IP: 192.0.2.1\r\n",
            "Via: 1.1 proxy\r\n",
            "CF-Connecting-IP: 192.0.2.1\r\n",
        ] {
            assert_eq!(metrics(&mut client, target, "1.1", field).await, 403, "{field}");
        }
        // A proxy forwards the name that its client used; a foreign page's request has that page's name.
        client.push(format!("GET {target} HTTP/1.1\r\nHost: files.example\r\n\r\n"));
        let refused = client.answer().await.problem(403);
        assert!(refused.contains("--metrics") && refused.contains("+operate"), "{refused}");
        // nginx sends HTTP/1.0 by default.
        assert_eq!(metrics(&mut client, target, "1.0", "").await, 403);
    }
}

async fn a_trusted_proxy_on_this_machine_opens_neither_metrics_nor_status(scene: Scene) {
    for target in ["/metrics", "/api/status"] {
        let mut client = scene.connect().await;
        assert_eq!(metrics(&mut client, target, "1.1", "").await, 403);
        assert_eq!(metrics(&mut client, target, "1.1", &forwarded_for("127.0.0.1")).await, 403);
    }
}

async fn an_account_with_the_right_operate_reads_metrics_and_status(scene: Scene) {
    let (mut alice, mut bob) = (Person::new(&scene, "alice").await, Person::new(&scene, "bob").await);
    let operating = Permissions { operate: true, ..Permissions::default() };
    scene.accounts().auth.set_permissions(&scene.io, "alice", operating).await.unwrap();
    for target in ["/metrics", "/api/status"] {
        assert_eq!(alice.get(target).await.status, 200, "{target}");
        bob.get(target).await.problem(403);
        let wrong = "Authorization: Bearer nonsense\r\n";
        scene.get_with(target, wrong).await.problem(401);
        scene.get(target).await.problem(403);
    }
    assert_eq!(alice.get("/api/whoami").await.json()["permissions"]["operate"], true);
    scene.accounts().auth.set_permissions(&scene.io, "alice", Permissions::default()).await.unwrap();
    alice.get("/metrics").await.problem(403);
}

async fn the_address_of_operators_has_metrics_and_status_for_every_client_and_nothing_else(scene: Scene) {
    let mut client = scene.connect().await;
    let operator = plimsoll_tests::AS_OPERATOR;
    for target in ["/metrics", "/api/status", "/healthz", "/readyz"] {
        assert_eq!(client.get_with(target, operator).await.status, 200, "{target}");
    }
    for target in ["/", "/a.txt", "/files/", "/api/whoami", "/api/openapi.json"] {
        let refused = client.get_with(target, operator).await.problem(404);
        assert!(refused.contains("/metrics"), "{refused}");
    }
}

behaviours!(direct and tls;
    fields_of_a_peer_that_is_no_trusted_proxy_are_ignored,
    without_a_trusted_proxy_a_destination_is_on_the_server_that_host_names,
    metrics_and_status_are_for_this_machine_without_a_proxy,
    an_account_with_the_right_operate_reads_metrics_and_status,
    the_address_of_operators_has_metrics_and_status_for_every_client_and_nothing_else,
);

mod trusted {
    use super::*;

    behaviours!(behind_a_proxy and tls;
        the_client_that_a_trusted_proxy_names_is_in_both_logs,
        fields_that_name_no_client_clearly_are_refused,
        wrong_passwords_count_for_the_client_and_not_for_the_proxy,
        a_destination_is_compared_with_what_the_proxy_was_asked_for,
        a_trusted_proxy_on_this_machine_opens_neither_metrics_nor_status,
    );
}

mod header {
    use super::*;

    behaviours!(by_the_proxy_protocol;
        a_header_of_the_proxy_protocol_names_the_client_of_the_connection,
        a_proxy_may_speak_for_itself,
        a_connection_without_the_header_is_dropped,
        ftp_and_classic_know_the_client_by_the_header,
    );
}

mod header_of_others {
    use super::*;

    behaviours!(by_the_proxy_protocol_of_others;
        a_peer_that_is_not_trusted_is_served_without_a_header,
    );
}
