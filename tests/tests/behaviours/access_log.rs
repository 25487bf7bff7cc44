//! The access log: a line for each answer, in the common log format, even for malformed requests.

use plimsoll_tests::tree::noise;
use plimsoll_tests::{Client, Scenario, Scene, Tree, behaviours};

fn scenario() -> Scenario {
    let tree = Tree::new().file("small.txt", "small\n").file("large.bin", noise(3, 100_000));
    Scenario { tree, ..Scenario::default() }
}

/// Waits for `count` lines of the log, and returns the part of each line that follows its date.
async fn lines(scene: &Scene, count: usize) -> Vec<String> {
    scene.until(|| scene.log.text().matches('\n').count() >= count).await;
    let text = scene.log.text();
    assert!(text.ends_with('\n'));
    let lines: Vec<_> = text.lines().map(after_date).collect();
    assert_eq!(lines.len(), count, "{text}");
    lines
}

/// Asserts `host - - [date] ` and returns the rest.
fn after_date(line: &str) -> String {
    let (host, rest) = line.split_once(" - - [").expect("ident and user are not known");
    let ip: std::net::IpAddr = host.parse().expect("the peer's address");
    assert!(ip.is_loopback() || ip.to_string() == "10.0.0.2", "{line}");
    let (date, rest) = rest.split_once("] ").expect("a date");
    let shape: String = date.chars().map(|byte| if byte.is_ascii_digit() { '0' } else { byte }).collect();
    let month = &shape[3..6];
    assert!(month.chars().all(|letter| letter.is_ascii_alphabetic()), "{line}");
    assert_eq!(shape.replacen(month, "Mon", 1), "00/Mon/0000:00:00:00 +0000", "{line}");
    rest.to_owned()
}

/// Sends `request` as the client's last, and returns the length of its answer's body.
async fn sent(client: &mut Client, request: impl Into<Vec<u8>>) -> usize {
    client.push(request);
    client.answer().await.body.len()
}

async fn an_answer_is_logged_with_its_request_status_and_bytes(scene: Scene) {
    let mut client = scene.connect().await;
    client.get("/small.txt").await;
    client.get("/large.bin?query=1").await;
    client.get_with("/large.bin", "Range: bytes=0-9\r\n").await;
    let length = client.get("/nothing").await.body.len();
    let wanted = [
        "\"GET /small.txt HTTP/1.1\" 200 6".to_owned(),
        "\"GET /large.bin?query=1 HTTP/1.1\" 200 100000".to_owned(),
        "\"GET /large.bin HTTP/1.1\" 206 10".to_owned(),
        format!("\"GET /nothing HTTP/1.1\" 404 {length}"),
    ];
    assert_eq!(lines(&scene, 4).await, wanted);
}

async fn an_answer_without_a_body_is_logged_with_no_bytes(scene: Scene) {
    let mut client = scene.connect().await;
    client.head_with("/large.bin", "").await;
    client.head_with("/nothing", "").await;
    client.push("OPTIONS * HTTP/1.1\r\nHost: test\r\n\r\n");
    client.answer().await;
    let wanted = [
        "\"HEAD /large.bin HTTP/1.1\" 200 0",
        "\"HEAD /nothing HTTP/1.1\" 404 0",
        "\"OPTIONS * HTTP/1.1\" 204 0",
    ];
    assert_eq!(lines(&scene, 3).await, wanted);
}

async fn an_unparsable_request_is_logged_without_its_text(scene: Scene) {
    let mut client = scene.connect().await;
    let length = sent(&mut client, "\"; rm -rf /\r\n\r\n").await;
    assert_eq!(lines(&scene, 1).await, [format!("\"-\" 400 {length}")]);
}

async fn a_refused_request_is_logged_with_its_status(scene: Scene) {
    let mut client = scene.connect().await;
    let put = sent(&mut client, "PUT /a HTTP/1.1\r\nHost: test\r\nContent-Length: 1\r\n\r\nx").await;
    let brew = sent(&mut client, "BREW /a HTTP/1.1\r\nHost: test\r\n\r\n").await;
    let dots = sent(&mut client, "GET /../a HTTP/1.1\r\nHost: test\r\n\r\n").await;
    let wanted = [
        format!("\"PUT /a HTTP/1.1\" 405 {put}"),
        format!("\"BREW /a HTTP/1.1\" 501 {brew}"),
        format!("\"GET /../a HTTP/1.1\" 400 {dots}"),
    ];
    assert_eq!(lines(&scene, 3).await, wanted);
}

async fn an_upload_is_logged_once_with_its_last_status(scene: Scene) {
    let mut client = scene.connect().await;
    let fields = "Content-Length: 4\r\nExpect: 100-continue\r\n";
    client.push(format!("PUT /test/echo HTTP/1.1\r\nHost: test\r\n{fields}\r\n"));
    assert_eq!(client.answer().await.status, 100);
    assert_eq!(sent(&mut client, "body").await, 4);
    assert_eq!(lines(&scene, 1).await, ["\"PUT /test/echo HTTP/1.1\" 200 4"]);
}

async fn the_version_of_the_request_is_logged(scene: Scene) {
    let mut client = scene.connect().await;
    sent(&mut client, "GET /small.txt HTTP/1.0\r\n\r\n").await;
    assert_eq!(lines(&scene, 1).await, ["\"GET /small.txt HTTP/1.0\" 200 6"]);
}

async fn nothing_in_a_target_ends_a_line_or_its_quotes(scene: Scene) {
    let mut client = scene.connect().await;
    let one = client.get("/%0a%22").await.body.len();
    let two = sent(&mut client, b"GET /a\"b\\c\xc3\xa4 HTTP/1.1\r\nHost: test\r\n\r\n").await;
    let wanted = [
        format!("\"GET /%0a%22 HTTP/1.1\" 404 {one}"),
        format!("\"GET /a\\x22b\\x5cc\\xc3\\xa4 HTTP/1.1\" 404 {two}"),
    ];
    assert_eq!(lines(&scene, 2).await, wanted);
}

async fn a_long_target_is_cut_in_the_log(scene: Scene) {
    let mut client = scene.connect().await;
    client.get(&format!("/{}", "x".repeat(6000))).await;
    let lines = lines(&scene, 1).await;
    assert!(lines[0].starts_with("\"GET /xxx"), "{lines:?}");
    assert!(lines[0].len() < 2000 && lines[0].contains(" HTTP/1.1\" 404 "), "{lines:?}");
}

async fn pipelined_requests_are_logged_in_their_order(scene: Scene) {
    let mut client = scene.connect().await;
    let requests: String = (0..40).map(|n| format!("GET /{n} HTTP/1.1\r\nHost: test\r\n\r\n")).collect();
    client.push(requests);
    for _ in 0..40 {
        client.answer().await.problem(404);
    }
    for (number, line) in lines(&scene, 40).await.iter().enumerate() {
        assert!(line.starts_with(&format!("\"GET /{number} HTTP/1.1\" 404 ")), "{line}");
    }
}

async fn a_connection_without_a_request_is_not_logged(scene: Scene) {
    let mut silent = scene.connect().await;
    silent.stream.tx.finish();
    silent.expect_end().await;
    let mut begun = scene.connect().await;
    begun.push("GET /sm");
    begun.stream.tx.finish();
    begun.expect_end().await;
    scene.get("/small.txt").await;
    assert_eq!(lines(&scene, 1).await, ["\"GET /small.txt HTTP/1.1\" 200 6"]);
}

behaviours!(scenario and tls;
    an_answer_is_logged_with_its_request_status_and_bytes,
    an_answer_without_a_body_is_logged_with_no_bytes,
    an_unparsable_request_is_logged_without_its_text,
    a_refused_request_is_logged_with_its_status,
    an_upload_is_logged_once_with_its_last_status,
    the_version_of_the_request_is_logged,
    nothing_in_a_target_ends_a_line_or_its_quotes,
    a_long_target_is_cut_in_the_log,
    pipelined_requests_are_logged_in_their_order,
    a_connection_without_a_request_is_not_logged,
);
