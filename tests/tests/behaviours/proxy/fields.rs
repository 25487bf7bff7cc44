//! The fields that a proxy removes, replaces and adds, and the forms of targets.

use plimsoll_io::{Address, Networks};
use plimsoll_proxy::Settings;
use plimsoll_tests::proxy::plain;
use plimsoll_tests::{Scenario, Scene, behaviours};

use super::origin::scripted_scenario as scenario;

async fn fields_of_one_connection_are_not_relayed_in_either_direction(scene: Scene) {
    let mut client = scene.connect().await;
    let sent = "Connection: X-Own\r\nX-Own: 1\r\nTE: gzip\r\nKeep-Alive: 5\r\nUpgrade: h2c\r\nX-Other: 2\r\n";
    let seen = client.get_with("/head", sent).await.text();
    for gone in ["X-Own", "TE:", "Keep-Alive", "Upgrade", "Connection"] {
        assert!(!seen.contains(gone), "{gone}: {seen}");
    }
    assert!(seen.contains("X-Other: 2\r\n"), "{seen}");
    let answer = client.get("/fields").await;
    for gone in ["X-Own", "Keep-Alive", "Proxy-Authenticate", "Connection"] {
        assert_eq!(answer.field(gone), None);
    }
    let cookies = answer.fields.iter().filter(|(name, _)| name == "Set-Cookie").map(|(_, value)| &**value);
    assert_eq!(cookies.collect::<Vec<_>>(), ["a=1", "b=2"]);
}

async fn the_proxy_names_itself_and_its_client(scene: Scene) {
    let mut client = scene.connect().await;
    let answer =
        client.get_with("/head", "X-Forwarded-For: 203.0.113.9\r\nForwarded: for=203.0.113.9\r\n").await;
    assert_eq!(answer.field("Via"), Some("1.1 plimsoll-test"));
    assert!(answer.field("Date").is_some());
    let seen = answer.text();
    assert!(seen.starts_with("GET /head HTTP/1.1\r\nHost: test\r\n"), "{seen}");
    assert!(seen.contains("Via: 1.1 plimsoll-test\r\n") && !seen.contains("203.0.113.9"), "{seen}");
    let scheme = scene.scheme();
    assert!(seen.contains(&format!(";proto={scheme};host=\"test\"\r\n")), "{seen}");
    let fields = format!("X-Forwarded-Proto: {scheme}\r\nX-Forwarded-Host: test\r\n");
    assert!(seen.contains(&fields), "{seen}");
}

async fn a_request_that_has_passed_this_proxy_is_refused(scene: Scene) {
    let mut client = scene.connect().await;
    for via in ["1.1 plimsoll-test", "1.0 other, 1.1 PLIMSOLL-TEST (comment)", "HTTP/1.1\tplimsoll-test"] {
        let answer = client.get_with("/count", &format!("Via: 1.1 first\r\nVia: {via}\r\n")).await;
        assert!(!answer.problem(508).is_empty(), "{via}");
    }
    let many = vec!["1.1 a"; 40].join(", ");
    assert!(!client.get_with("/count", &format!("Via: {many}\r\n")).await.problem(508).is_empty());
    assert_eq!(client.get_with("/count", "Via: 1.1 plimsoll-other\r\n").await.status, 200);
}

async fn a_url_with_a_name_of_the_proxy_goes_to_the_origin(scene: Scene) {
    let mut client = scene.connect().await;
    for host in ["localhost", "localhost:99", "127.0.0.1", "proxy.test:8", "[::1]"] {
        let seen = client.get(&format!("http://{}/head?x=1", host.to_uppercase())).await.text();
        assert!(seen.starts_with(&format!("GET /head?x=1 HTTP/1.1\r\nHost: {host}\r\n")), "{seen}");
    }
}

async fn a_url_with_another_name_is_misdirected(scene: Scene) {
    let mut client = scene.connect().await;
    let encrypted = ["https://localhost/head"].into_iter().filter(|_| scene.scheme() == "http");
    for url in
        ["http://other.example/head", "http://192.0.2.1/head", "http://proxy/"].into_iter().chain(encrypted)
    {
        assert!(!client.get(url).await.problem(421).is_empty(), "{url}");
    }
    assert_eq!(client.get("/count").await.status, 200);
}

async fn connect_and_trace_are_refused(scene: Scene) {
    for request in ["CONNECT test:443", "TRACE /head"] {
        let mut client = scene.connect().await;
        client.send(format!("{request} HTTP/1.1\r\nHost: test:443\r\n\r\n")).await;
        let answer = client.answer().await;
        assert!(!answer.problem(405).is_empty(), "{request}");
        assert!(answer.field("Allow").is_some_and(|methods| methods.contains("GET")));
    }
}

async fn bytes_behind_a_refusal_with_doubtful_framing_reach_no_origin(scene: Scene) {
    let hidden = "GET /count HTTP/1.1\r\nHost: test\r\n\r\n";
    for (request, status) in [
        ("CONNECT test:443 HTTP/1.1\r\nHost: test:443\r\n\r\n".to_owned(), 405),
        (
            format!(
                "CONNECT test:443 HTTP/1.1\r\nHost: test:443\r\nContent-Length: {}\r\n\r\n",
                hidden.len()
            ),
            405,
        ),
        (
            "PUT /upload HTTP/1.1\r\nHost: test\r\nContent-Length: 5\r\nExpect: miracles\r\n\r\n".to_owned(),
            417,
        ),
    ] {
        let mut client = scene.connect().await;
        client.push(format!("{request}{hidden}"));
        let answer = client.answer().await;
        assert_eq!((answer.status, answer.field("Connection")), (status, Some("close")), "{request}");
        client.expect_end().await;
    }
}

async fn an_ipv4_address_in_brackets_is_no_host(scene: Scene) {
    let mut client = scene.connect().await;
    for url in ["http://[127.0.0.1]:80/head", "http://[127.0.0.1]/head", "http://[v1.a]/head"] {
        client.send(format!("GET {url} HTTP/1.1\r\nHost: test\r\n\r\n")).await;
        assert!(!client.answer().await.problem(400).is_empty(), "{url}");
        client.expect_end().await;
        client = scene.connect().await;
    }
}

async fn options_end_at_the_proxy_when_their_forwards_are_used_up(scene: Scene) {
    let mut client = scene.connect().await;
    client.send("OPTIONS * HTTP/1.1\r\nHost: test\r\nMax-Forwards: 0\r\n\r\n").await;
    let answer = client.answer().await;
    assert!(answer.status == 204 && answer.field("Allow").is_some(), "{answer:?}");
    client.send("OPTIONS /head HTTP/1.1\r\nHost: test\r\nMax-Forwards: 3\r\n\r\n").await;
    assert!(client.answer().await.text().contains("Max-Forwards: 2\r\n"));
    client.send("OPTIONS http://localhost HTTP/1.1\r\nHost: test\r\n\r\n").await;
    assert_eq!(client.answer().await.status, 404, "the script has no *");
}

async fn an_unknown_expectation_is_refused(scene: Scene) {
    let mut client = scene.connect().await;
    assert!(!client.get_with("/count", "Expect: miracles\r\n").await.problem(417).is_empty());
    assert!(!client.get_with("/head", "Expect: 100-continue\r\n").await.text().contains("Expect"));
}

async fn a_client_of_http_1_0_gets_no_chunks_and_no_interim_response(scene: Scene) {
    for (target, body) in [("/chunked", "hello world"), ("/until-close", "all of it"), ("/hints", "hinted")] {
        let mut client = scene.connect().await;
        client.send(format!("GET {target} HTTP/1.0\r\n\r\n")).await;
        let text = String::from_utf8(client.rest().await.unwrap()).unwrap();
        let (head, received) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && !head.contains("chunked"), "{head}");
        assert!(head.contains("Connection: close"), "{head}");
        assert_eq!(received, body);
    }
}

async fn interim_responses_and_trailers_are_relayed(scene: Scene) {
    let mut client = scene.connect().await;
    let hints = client.get("/hints").await;
    assert_eq!((hints.status, hints.field("Link")), (103, Some("</a>")));
    assert_eq!(client.answer().await.text(), "hinted");
    let answer = client.get_with("/chunked", "TE: trailers\r\n").await;
    assert_eq!((answer.text(), &*answer.trailers), ("hello world".to_owned(), "X-Sum: 11\n"));
    assert_eq!(answer.field("Trailer"), Some("X-Sum"));
    let seen = client.get_with("/head", "TE: trailers\r\n").await.text();
    assert!(seen.contains("TE: trailers\r\nConnection: TE\r\n"), "{seen}");
}

async fn an_old_origin_is_relayed_as_such(scene: Scene) {
    let mut client = scene.connect().await;
    let answer = client.get("/http-1.0").await;
    assert_eq!((answer.text(), answer.field("Via")), ("old".to_owned(), Some("1.0 plimsoll-test")));
    assert_eq!(client.get("/until-close").await.text(), "all of it");
}

behaviours!(scenario and tls;
    fields_of_one_connection_are_not_relayed_in_either_direction,
    the_proxy_names_itself_and_its_client,
    a_request_that_has_passed_this_proxy_is_refused,
    a_url_with_a_name_of_the_proxy_goes_to_the_origin,
    a_url_with_another_name_is_misdirected,
    connect_and_trace_are_refused,
    bytes_behind_a_refusal_with_doubtful_framing_reach_no_origin,
    an_ipv4_address_in_brackets_is_no_host,
    options_end_at_the_proxy_when_their_forwards_are_used_up,
    an_unknown_expectation_is_refused,
    a_client_of_http_1_0_gets_no_chunks_and_no_interim_response,
    interim_responses_and_trailers_are_relayed,
    an_old_origin_is_relayed_as_such,
);

mod trusted {
    use super::{Address, Networks, Scenario, Scene, Settings, behaviours, plain, scenario};

    fn behind_a_proxy() -> Scenario {
        Scenario { proxy: Some(trusting), ..scenario() }
    }

    fn trusting(origin: &Address) -> Settings {
        let all = ["0.0.0.0/0", "::/0"].map(|network| network.parse().unwrap());
        Settings { trusted: Networks::from(all.to_vec()), ..plain(origin) }
    }

    async fn names_of_clients_by_a_trusted_proxy_are_kept(scene: Scene) {
        let mut client = scene.connect().await;
        let sent = "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: https\r\nX-Real-IP: 203.0.113.9\r\n";
        let seen = client.get_with("/head", sent).await.text();
        assert!(seen.contains("X-Forwarded-For: 203.0.113.9, "), "{seen}");
        assert!(seen.contains("X-Forwarded-Proto: https\r\n") && seen.contains("X-Real-IP: "), "{seen}");
        let both = "X-Forwarded-For: 203.0.113.9\r\nForwarded: for=203.0.113.8\r\n";
        assert!(!client.get_with("/head", both).await.problem(400).is_empty());
    }

    behaviours!(behind_a_proxy and tls; names_of_clients_by_a_trusted_proxy_are_kept);
}
