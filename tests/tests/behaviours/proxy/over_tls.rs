//! TLS on both sides of the proxy: origins with `https` URLs, and clients over TLS.

use std::rc::Rc;
use std::sync::Mutex;

use plimsoll_io::{Address, Handler, Io, Segment, Stream, Want};
use plimsoll_proxy::Settings;
use plimsoll_tests::proxy::{plain, to_https};
use plimsoll_tests::service::Each;
use plimsoll_tests::tls::{accept, connector_of_other, secured_handler};
use plimsoll_tests::{Protocol, Scenario, Scene, behaviours};

use super::cached::{caching, log_key};
use super::origin::{impatient, next_head, scripted};
use super::relaying::{
    a_slow_client_gets_the_whole_response, bodies_arrive_at_the_origin_whole,
    chunked_bodies_arrive_at_the_origin_whole, files_of_all_sizes_arrive_as_they_are,
    many_clients_get_their_own_responses, pipelined_requests_are_answered_in_their_order,
    ranges_and_conditions_are_those_of_the_origin,
};

/// The targets of the requests that a cut origin has received.
static CUT: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn scenario() -> Scenario {
    let proxy: fn(&Address) -> Settings = |origin| to_https(plain(origin), origin);
    let protocol = Protocol::HttpOver(accept);
    Scenario { protocol, proxy: Some(proxy), is_encrypted: true, ..super::relaying::scenario() }
}

behaviours!(scenario but process;
    files_of_all_sizes_arrive_as_they_are,
    ranges_and_conditions_are_those_of_the_origin,
    bodies_arrive_at_the_origin_whole,
    chunked_bodies_arrive_at_the_origin_whole,
    pipelined_requests_are_answered_in_their_order,
    many_clients_get_their_own_responses,
    a_slow_client_gets_the_whole_response,
);

/// Origins over TLS that stall, end early, or send nonsense.
mod failing {
    use super::super::failures::{
        a_body_cut_short_of_its_length_is_an_abort,
        a_body_until_the_end_of_a_connection_that_is_reset_is_an_abort_or_502,
        a_chunked_body_without_its_last_chunk_is_an_abort, a_client_that_leaves_ends_its_request,
        an_origin_that_ends_before_its_response_gets_502, an_origin_that_sends_no_response_gets_504,
        bytes_that_are_no_response_get_502,
    };
    use super::*;

    fn scenario() -> Scenario {
        let proxy: fn(&Address) -> Settings = |origin| to_https(impatient(origin), origin);
        let over_tls = |io: Io| secured_handler(scripted(io.clone()), io);
        Scenario {
            protocol: Protocol::Of(over_tls),
            proxy: Some(proxy),
            is_encrypted: true,
            ..Scenario::default()
        }
    }

    /// The tickets of a session arrive while the connection is idle.
    async fn a_connection_to_an_origin_is_used_again(scene: Scene) {
        let mut client = scene.connect().await;
        for count in 1..5 {
            assert_eq!(client.get("/count").await.text(), count.to_string());
            scene.io.sleep(std::time::Duration::from_millis(100)).await;
        }
    }

    async fn the_use_of_https_is_reported_to_the_origin(scene: Scene) {
        let mut client = scene.connect().await;
        let seen = client.get("https://LOCALHOST:443/head").await.text();
        assert!(seen.starts_with("GET /head HTTP/1.1\r\nHost: localhost\r\n"), "{seen}");
        assert!(seen.contains(";proto=https;host=\"localhost\"\r\n"), "{seen}");
        assert!(seen.contains("X-Forwarded-Proto: https\r\n"), "{seen}");
        assert!(!client.get("https://elsewhere.example/head").await.problem(421).is_empty());
    }

    behaviours!(scenario but process;
        a_connection_to_an_origin_is_used_again,
        the_use_of_https_is_reported_to_the_origin,
        an_origin_that_ends_before_its_response_gets_502,
        an_origin_that_sends_no_response_gets_504,
        bytes_that_are_no_response_get_502,
        a_body_cut_short_of_its_length_is_an_abort,
        a_chunked_body_without_its_last_chunk_is_an_abort,
        a_body_until_the_end_of_a_connection_that_is_reset_is_an_abort_or_502,
        a_client_that_leaves_ends_its_request,
    );
}

/// An origin whose connection is cut in the middle of a body, or before its end, as a machine on the way can
/// do. The target names the framing of the body.
mod cut {
    use super::*;

    fn scenario() -> Scenario {
        let proxy: fn(&Address) -> Settings = |origin| to_https(caching(origin), origin);
        let cutting = |io: Io| Rc::new(Each(io, serve)) as Rc<dyn Handler>;
        Scenario { protocol: Protocol::Of(cutting), proxy: Some(proxy), ..Scenario::default() }
    }

    async fn serve(io: Io, stream: Stream) {
        let below = stream.transport();
        let Ok(mut stream) = accept(io, stream).await else { return };
        let mut bytes = Vec::new();
        let Some(head) = next_head(&mut stream, &mut bytes).await else { return };
        let target = head.split(' ').nth(1).expect("a target").to_owned();
        let is_whole = target.contains("whole");
        let rest = FRAMINGS.iter().find(|(name, _)| target.contains(name)).expect("a framing").1;
        CUT.lock().unwrap().push(target);
        let response = format!("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n{rest}");
        stream.tx.push(Segment::Owned(response.into_bytes()));
        if is_whole {
            stream.tx.finish();
        }
        let _ = stream.tx.drain(0).await;
        if !is_whole {
            below.finish();
        }
        while let Ok(Some(_)) = stream.rx.recv(Want::Body).await {}
    }

    /// The framings of a body, each with the rest of the head and a body that lacks its end.
    const FRAMINGS: [(&str, &str); 4] = [
        ("until-the-end", "\r\nhello"),
        ("sized", "Content-Length: 6\r\n\r\nhello"),
        ("in-a-chunk", "Transfer-Encoding: chunked\r\n\r\n6\r\nhello"),
        ("behind-a-chunk", "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
    ];

    fn requests(target: &str) -> usize {
        CUT.lock().unwrap().iter().filter(|other| *other == target).count()
    }

    async fn a_response_that_was_cut_is_an_abort_and_never_cached(scene: Scene) {
        for (framing, _) in FRAMINGS {
            let target = format!("/{framing}-{}", log_key());
            for number in 1..3 {
                let mut client = scene.connect().await;
                client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n")).await;
                match client.try_answer(true).await {
                    Ok(answer) => assert_eq!(answer.status, 502, "{framing}"),
                    Err(error) => assert_ne!(error.kind(), std::io::ErrorKind::TimedOut, "{framing}"),
                }
                assert_eq!(requests(&target), number, "{framing}");
            }
        }
    }

    async fn a_response_that_ends_with_its_session_is_whole(scene: Scene) {
        let target = format!("/whole-until-the-end-{}", log_key());
        assert_eq!(scene.get(&target).await.text(), "hello");
        assert_eq!(requests(&target), 1);
    }

    behaviours!(scenario but process;
        a_response_that_was_cut_is_an_abort_and_never_cached,
        a_response_that_ends_with_its_session_is_whole,
    );
}

/// An origin with a certificate that is not trusted.
mod untrusted {
    use super::*;

    fn scenario() -> Scenario {
        let proxy: fn(&Address) -> Settings =
            |origin| Settings { tls: Some(connector_of_other()), ..to_https(plain(origin), origin) };
        Scenario { protocol: Protocol::HttpOver(accept), proxy: Some(proxy), ..Scenario::default() }
    }

    async fn an_origin_that_is_not_trusted_gets_no_request(scene: Scene) {
        for _ in 0..2 {
            assert!(scene.get("/small.txt").await.problem(502).contains("not trusted"));
        }
        assert_eq!(scene.begun(), 0);
    }

    behaviours!(scenario but process; an_origin_that_is_not_trusted_gets_no_request);
}
