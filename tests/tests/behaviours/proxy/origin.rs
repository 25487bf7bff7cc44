//! An origin that plays a script: the target of each request selects what it sends.

use std::rc::Rc;
use std::time::Duration;

use plimsoll_io::{Address, Handler, Io, Segment, Stream, Want};
use plimsoll_proto::http::Limits;
use plimsoll_proxy::{OriginTimes, Settings};
use plimsoll_tests::proxy::plain;
use plimsoll_tests::service::Each;
use plimsoll_tests::{Protocol, Scenario};

/// How long an origin of these tests may be silent. The simulator delays each byte by some milliseconds.
const SHORT: Duration = Duration::from_secs(4);

/// As `/once`, as the path of a public link.
pub(super) const ONCE_LINK: &str = "/s/0123456789abcdef0123456789abcdef";

/// The bytes of a large body.
pub(super) const LARGE: usize = 1_000_000;

/// The next step of the origin after a response.
enum Then {
    /// Waits for the next request.
    Keep,
    /// Ends the connection cleanly.
    Close,
    /// Resets the connection.
    Reset,
    /// Sends nothing more, and keeps the connection.
    Stall,
}

/// Returns a scenario with a scripted origin behind a proxy that waits for a short time only.
pub(super) fn scripted_scenario() -> Scenario {
    Scenario { protocol: Protocol::Of(scripted), proxy: Some(impatient), ..Scenario::default() }
}

pub(super) fn impatient(origin: &Address) -> Settings {
    let times = OriginTimes { first_byte: SHORT, between_bytes: SHORT, ..OriginTimes::default() };
    let limits = Limits { receive_time: SHORT, ..Limits::default() };
    Settings { times, limits, ..plain(origin) }
}

pub(super) fn scripted(io: Io) -> Rc<dyn Handler> {
    Rc::new(Each(io, serve))
}

/// The bytes that were received and not consumed.
struct Received {
    stream: Stream,
    bytes: Vec<u8>,
}

impl Received {
    /// Receives more bytes. Returns false at the end, or if the connection broke.
    async fn more(&mut self) -> bool {
        match self.stream.rx.recv(Want::Body).await {
            Ok(Some(lease)) => {
                self.bytes.extend_from_slice(&lease);
                true
            }
            _ => false,
        }
    }

    /// Returns a body of a known length, or `None` if it was cut short.
    async fn body(&mut self, length: usize) -> Option<Vec<u8>> {
        while self.bytes.len() < length {
            if !self.more().await {
                return None;
            }
        }
        Some(self.bytes.drain(..length).collect())
    }

    fn send(&mut self, bytes: impl Into<Vec<u8>>) {
        self.stream.tx.push(Segment::Owned(bytes.into()));
    }
}

/// Receives the next head of a request. Bytes behind it stay in `bytes`. Returns `None` at the end.
pub(super) async fn next_head(stream: &mut Stream, bytes: &mut Vec<u8>) -> Option<String> {
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            return Some(String::from_utf8(bytes.drain(..end + 4).collect()).expect("ASCII"));
        }
        match stream.rx.recv(Want::Body).await {
            Ok(Some(lease)) => bytes.extend_from_slice(&lease),
            _ => return None,
        }
    }
}

/// Plays the script until the proxy ends the connection.
async fn serve(io: Io, stream: Stream) {
    let (mut received, mut requests) = (Received { stream, bytes: Vec::new() }, 0);
    while let Some(head) = next_head(&mut received.stream, &mut received.bytes).await {
        requests += 1;
        let target = head.split(' ').nth(1).expect("a target").to_owned();
        let target = target.split('?').next().expect("a path").to_owned();
        let then = match target.as_str() {
            "/upload" | "/continue" | "/refuse-body" | "/early" => {
                body_wanted(&io, &mut received, &head, &target).await
            }
            "/tunnel-h2c" | "/tunnel-nothing" | "/tunnel-both" => other_tunnel(&mut received, &target),
            "/echo-tunnel" => tunnel(&mut received, &head).await,
            _ => play(&mut received, &head, &target, requests),
        };
        match then {
            Then::Keep => {}
            Then::Close => {
                received.stream.tx.finish();
                let _ = received.stream.tx.drain(0).await;
                // The proxy may be sending.
                while received.more().await {}
                return;
            }
            Then::Reset => {
                // The bytes that were sent before are delivered first.
                let _ = received.stream.tx.drain(0).await;
                io.sleep(Duration::from_millis(20)).await;
                return;
            }
            // Until the end of the test: else the origin's connection would have the whole grace period.
            Then::Stall => return io.stopping().await,
        }
    }
    received.stream.tx.finish();
}

/// Sends the response of a target without a body.
fn play(received: &mut Received, head: &str, target: &str, requests: usize) -> Then {
    let ok = "HTTP/1.1 200 OK\r\n";
    let (response, then) = match target {
        "/head" => (with_length(head), Then::Keep),
        "/count" => (with_length(&requests.to_string()), Then::Keep),
        "/cut-length" => (format!("{ok}Content-Length: 100\r\n\r\nhalf"), Then::Close),
        "/cut-large" => {
            (format!("{ok}Content-Length: {}\r\n\r\n{}", LARGE + 1, "x".repeat(LARGE)), Then::Close)
        }
        "/cut-chunked" => (format!("{ok}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"), Then::Close),
        "/cut-chunk" => (format!("{ok}Transfer-Encoding: chunked\r\n\r\n9\r\nhello"), Then::Close),
        "/cut-head" => ("HTTP/1.1 200 OK\r\nContent-Le".to_owned(), Then::Close),
        "/cut-trailers" => (format!("{ok}Transfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n"), Then::Close),
        "/nothing" => (String::new(), Then::Close),
        "/reset" => (String::new(), Then::Reset),
        "/reset-body" => (format!("{ok}Content-Length: 100\r\n\r\nhalf"), Then::Reset),
        "/stall" => (String::new(), Then::Stall),
        "/stall-head" => ("HTTP/1.1 200 OK\r\nContent-Le".to_owned(), Then::Stall),
        "/stall-body" => (format!("{ok}Content-Length: 100\r\n\r\nhalf"), Then::Stall),
        "/too-much" => (format!("{}{}", with_length("five!"), with_length("evil")), Then::Keep),
        "/no-response" => ("SSH-2.0-OpenSSH_9.6\r\n".to_owned(), Then::Stall),
        "/until-close" => (format!("{ok}\r\nall of it"), Then::Close),
        "/until-reset" => (format!("{ok}\r\nsome of it"), Then::Reset),
        "/http-1.0" => ("HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold".to_owned(), Then::Close),
        "/chunked" => (
            format!(
                "{ok}Transfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n5;a=b\r\nhello\r\n6\r\n world\r\n\
                 0\r\nX-Sum: 11\r\nContent-Length: 4\r\n\r\n"
            ),
            Then::Keep,
        ),
        "/hints" => {
            (format!("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n{}", with_length("hinted")), Then::Keep)
        }
        "/interims" => ("HTTP/1.1 102 Processing\r\n\r\n".repeat(100), Then::Stall),
        "/switch" => (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n".to_owned(),
            Then::Stall,
        ),
        "/fields" => (
            format!(
                "{ok}Connection: X-Own\r\nX-Own: 1\r\nKeep-Alive: timeout=5\r\nProxy-Authenticate: x\r\n\
                 Set-Cookie: a=1\r\nSet-Cookie: b=2\r\nContent-Length: 0\r\n\r\n"
            ),
            Then::Keep,
        ),
        // The connection ends after the response, which does not say so.
        "/stale" => (with_length("stale"), Then::Close),
        // The second request of a connection gets no response.
        "/once" | ONCE_LINK if requests > 1 => (String::new(), Then::Close),
        "/once" | ONCE_LINK => (with_length(&requests.to_string()), Then::Keep),
        _ => ("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n".to_owned(), Then::Keep),
    };
    received.send(response);
    then
}

/// Answers a request with a body, which is chunked or has a length.
async fn body_wanted(io: &Io, received: &mut Received, head: &str, target: &str) -> Then {
    let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
    match target {
        "/refuse-body" => {
            received.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            return Then::Close;
        }
        "/early" => {
            received.send(with_length("early"));
            io.sleep(Duration::from_millis(20)).await;
        }
        "/continue" => {
            assert!(head.contains("Expect: 100-continue\r\n"), "{head}");
            io.sleep(Duration::from_millis(50)).await;
            received.send("HTTP/1.1 100 Continue\r\n\r\n");
        }
        _ => {}
    }
    let body = match length {
        Some(length) => received.body(length.parse().expect("a number")).await,
        None => chunked(received).await,
    };
    match body {
        Some(_) if target == "/early" => Then::Keep,
        Some(body) => {
            received.send(with_length(&String::from_utf8(body).expect("ASCII")));
            Then::Keep
        }
        None => Then::Reset,
    }
}

/// Receives a chunked body as it is, up to its end, which no chunk of these tests contains.
async fn chunked(received: &mut Received) -> Option<Vec<u8>> {
    loop {
        let start = received.bytes.windows(3).position(|three| three == b"0\r\n");
        let end = start.and_then(|start| {
            let rest = &received.bytes[start..];
            rest.windows(4).position(|four| four == b"\r\n\r\n").map(|end| start + end + 4)
        });
        match end {
            Some(end) => return Some(received.bytes.drain(..end).collect()),
            None if received.more().await => {}
            None => return None,
        }
    }
}

/// Changes to a protocol that echoes bytes in capitals.
async fn tunnel(received: &mut Received, head: &str) -> Then {
    assert!(head.contains("Upgrade: websocket\r\n"), "{head}");
    received.send(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: yes\r\n\r\nhello",
    );
    loop {
        let echo = std::mem::take(&mut received.bytes).to_ascii_uppercase();
        received.send(echo);
        if !received.more().await {
            return Then::Close;
        }
    }
}

/// Changes to a protocol that was not requested.
fn other_tunnel(received: &mut Received, target: &str) -> Then {
    let upgrade = match target {
        "/tunnel-h2c" => "Upgrade: h2c\r\n",
        "/tunnel-both" => "Upgrade: websocket, h2c\r\n",
        _ => "",
    };
    received.send(format!("HTTP/1.1 101 Switching Protocols\r\n{upgrade}Connection: Upgrade\r\n\r\nhello"));
    Then::Stall
}

fn with_length(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}
