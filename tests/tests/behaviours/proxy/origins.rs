//! Several origins, forwarded hosts, and origins that expect a header of the PROXY protocol.

use plimsoll_io::{Address, Networks};
use plimsoll_proxy::{Balance, ForwardHosts, Settings};
use plimsoll_tests::proxy::plain;
use plimsoll_tests::{Scenario, Scene, Tree, behaviours};
use plimsoll_wire::proxy::Version;

use super::origin::scripted_scenario;

/// No listener is bound to it.
const AWAY: &str = "http://127.0.0.1:1";

fn one_away() -> Scenario {
    Scenario { proxy: Some(with_one_away), ..scripted_scenario() }
}

fn with_one_away(origin: &Address) -> Settings {
    let settings = plain(origin);
    let urls = vec![AWAY.parse().unwrap(), settings.origins.origins()[0].url().clone()];
    Settings { origins: Balance::new(urls, None).unwrap(), ..settings }
}

async fn an_origin_that_is_away_costs_no_request(scene: Scene) {
    let mut client = scene.connect().await;
    for _ in 0..10 {
        assert_eq!(client.get("/count").await.status, 200);
        client.send("POST /head HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n").await;
        assert_eq!(client.answer().await.status, 200);
    }
}

behaviours!(one_away and tls; an_origin_that_is_away_costs_no_request);

mod all_away {
    use super::{AWAY, Address, Balance, Scenario, Scene, Settings, behaviours, plain, scripted_scenario};

    fn scenario() -> Scenario {
        Scenario { proxy: Some(with_all_away), ..scripted_scenario() }
    }

    fn with_all_away(origin: &Address) -> Settings {
        let urls = vec![AWAY.parse().unwrap(), "http://127.0.0.1:2".parse().unwrap()];
        Settings { origins: Balance::new(urls, None).unwrap(), ..plain(origin) }
    }

    async fn a_request_without_a_reachable_origin_gets_502_and_the_connection_continues(scene: Scene) {
        let mut client = scene.connect().await;
        for _ in 0..5 {
            assert!(!client.get("/count").await.problem(502).is_empty());
            let refused = client.ask("PUT", "/upload", "", "hello").await;
            assert!(!refused.problem(502).is_empty());
        }
    }

    behaviours!(scenario and tls;
        a_request_without_a_reachable_origin_gets_502_and_the_connection_continues,
    );
}

mod forwarded {
    use super::{
        AWAY, Address, Balance, ForwardHosts, Scenario, Scene, Settings, behaviours, plain, scripted_scenario,
    };

    fn scenario() -> Scenario {
        Scenario { proxy: Some(forwarding), ..scripted_scenario() }
    }

    /// The scripted origin is reached by a forwarded host only.
    fn forwarding(origin: &Address) -> Settings {
        let settings = plain(origin);
        let url = settings.origins.origins()[0].url().clone();
        let mut forward = ForwardHosts::default();
        forward.add("forwarded.test", &url, None);
        let origins = Balance::new(vec![AWAY.parse().unwrap()], None).unwrap();
        Settings { forward, origins, ..settings }
    }

    async fn a_url_with_a_forwarded_host_goes_to_that_host(scene: Scene) {
        let mut client = scene.connect().await;
        let seen = client.get("http://forwarded.test/head").await.text();
        assert!(seen.starts_with("GET /head HTTP/1.1\r\nHost: forwarded.test\r\n"), "{seen}");
        assert_eq!(client.get("http://Forwarded.test:80/count").await.text(), "2");
        for url in ["http://forwarded.test:81/count", "http://www.forwarded.test/count"] {
            assert!(!client.get(url).await.problem(421).is_empty(), "{url}");
        }
        assert!(!client.get("/count").await.problem(502).is_empty());
    }

    behaviours!(scenario and tls; a_url_with_a_forwarded_host_goes_to_that_host);
}

mod headers {
    use super::{Address, Networks, Scenario, Scene, Settings, Tree, Version, behaviours, plain};

    fn binary() -> Scenario {
        scenario(|origin| Settings { header: Some(Version::Binary), ..plain(origin) })
    }

    fn line() -> Scenario {
        scenario(|origin| Settings { header: Some(Version::Line), ..plain(origin) })
    }

    fn scenario(proxy: fn(&Address) -> Settings) -> Scenario {
        let tree = Tree::new().file("small.txt", "small\n");
        // Every peer is expected to send a header.
        let proxies = Networks::default();
        Scenario { tree, proxies, proxy_protocol: true, proxy: Some(proxy), ..Scenario::default() }
    }

    async fn the_origin_learns_the_clients_address_from_the_header(scene: Scene) {
        let (mut one, mut other) = (scene.connect().await, scene.connect().await);
        for _ in 0..3 {
            assert_eq!(one.get("/small.txt").await.text(), "small\n");
            let echo = other.ask("PUT", "/test/echo", "", "hello").await;
            assert_eq!(echo.text(), "hello");
        }
        let Ok(Address::Ip(at)) = one.stream.local() else { panic!("TCP") };
        let line = format!("{} - - ", at.ip());
        scene.until(|| scene.log.text().lines().any(|written| written.starts_with(&line))).await;
        drop((one, other));
        scene.until(|| scene.open() == 0).await;
    }

    behaviours!(binary and tls; the_origin_learns_the_clients_address_from_the_header);

    mod text {
        use super::{behaviours, line, the_origin_learns_the_clients_address_from_the_header};
        behaviours!(line and tls; the_origin_learns_the_clients_address_from_the_header);
    }
}
