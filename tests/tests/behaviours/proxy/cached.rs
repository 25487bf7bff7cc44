//! A caching proxy in front of an origin, for the behaviours of the cache.
//!
//! The fields of a request tell the origin how to respond. It numbers its responses, so that a client knows
//! to which of them a body belongs. The field `X-Connection` of a response numbers its connection:
//!
//! | field | effect |
//! | --- | --- |
//! | `X-Fields` | fields of the response, separated by a bar |
//! | `X-Status`, `X-Size` | the status, and the length of the body |
//! | `X-Number` | the number of the response, instead of the next one |
//! | `X-Delay`, `X-Pause` | milliseconds before the head, and in the middle of the body |
//! | `X-Chunked`, `X-Cut` | a chunked body; a body that ends in its middle |
//! | `X-Ranges` | Range, If-Range and If-Match are honoured |
//! | `X-Unmodified` | a request with If-None-Match gets 304, whatever its tag |
//! | `X-Gate` | the response waits until this gate is opened |
//! | `X-Log` | the request is logged under this key |

use std::ops::Range;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plimsoll_io::{Address, Handler, Io, Segment, Stream, Tx};
use plimsoll_proxy::Settings;
use plimsoll_proxy::cache::opening::CacheOpener;
use plimsoll_proxy::cache::response_cache::CacheSizes;
use plimsoll_tests::proxy::plain;
use plimsoll_tests::service::Each;
use plimsoll_tests::{Answer, Client, Protocol, Scenario};

use super::origin::next_head;

/// More than the cache stores in memory, and than the buffers of a connection.
pub(super) const LARGE: usize = 700_000;
pub(super) const FRESH: &str = "X-Fields: Cache-Control: max-age=60\r\n";

static NEXT_RESPONSE: AtomicU64 = AtomicU64::new(0);
static NEXT_CONNECTION: AtomicU64 = AtomicU64::new(0);
static NEXT_FOLDER: AtomicU64 = AtomicU64::new(0);
static OPEN_GATES: Mutex<Vec<String>> = Mutex::new(Vec::new());
static LOG: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

pub(super) fn scenario() -> Scenario {
    Scenario { protocol: Protocol::Of(numbering), proxy: Some(caching), ..Scenario::default() }
}

pub(super) fn caching(origin: &Address) -> Settings {
    let sizes = CacheSizes { disk_bytes_max: 64 << 20, memory_bytes_max: 4 << 20, passed_files_max: 0 };
    with_cache(&new_folder(), sizes, origin)
}

/// Returns a folder that no other cache uses.
pub(super) fn new_folder() -> String {
    let number = NEXT_FOLDER.fetch_add(1, Ordering::Relaxed);
    format!("{}/caching-{}-{number}", env!("CARGO_TARGET_TMPDIR"), std::process::id())
}

pub(super) fn with_cache(folder: &str, sizes: CacheSizes, origin: &Address) -> Settings {
    Settings { cache: Some(CacheOpener::new(folder, sizes)), ..plain(origin) }
}

pub(super) fn numbering(io: Io) -> Rc<dyn Handler> {
    Rc::new(Each(io, serve))
}

/// Returns the requests that were logged under a key: the method, the target and the range of each.
pub(super) fn logged(key: &str) -> Vec<String> {
    let log = LOG.lock().unwrap();
    log.iter().filter(|(other, _)| other == key).map(|(_, line)| line.clone()).collect()
}

/// Opens a gate.
pub(super) fn open_gate(gate: &str) {
    OPEN_GATES.lock().unwrap().push(gate.to_owned());
}

/// Returns a key for the log, or for a gate.
pub(super) fn log_key() -> String {
    format!("key-{}", NEXT_FOLDER.fetch_add(1, Ordering::Relaxed))
}

/// A request, as text.
struct Request(String);

impl Request {
    fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.0.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.field(name).map(|value| value.parse().expect("a number"))
    }

    fn pause(&self, name: &str) -> Duration {
        Duration::from_millis(self.number(name).unwrap_or(0) as u64)
    }

    /// Returns the range to send of a body of `len` bytes.
    fn range(&self, etag: Option<&str>, len: usize) -> Option<Range<usize>> {
        let (first, last) = self.field("Range")?.strip_prefix("bytes=")?.split_once('-')?;
        let is_wanted =
            self.field("X-Ranges").is_some() && self.field("If-Range").is_none_or(|tag| Some(tag) == etag);
        let (start, end) = match (first.parse::<usize>(), last.parse::<usize>()) {
            (Ok(first), Ok(last)) => (first, len.min(last + 1)),
            (Ok(first), Err(_)) => (first, len),
            (Err(_), Ok(count)) => (len.saturating_sub(count), len),
            (Err(_), Err(_)) => return None,
        };
        is_wanted.then_some(start..end)
    }

    fn log(&self) {
        if let Some(key) = self.field("X-Log") {
            let line = self.0.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1");
            let line = format!("{line} {}", self.field("Range").unwrap_or_default());
            LOG.lock().unwrap().push((key.to_owned(), line.trim_end().to_owned()));
        }
    }
}

/// Answers requests until the proxy ends the connection.
async fn serve(io: Io, mut stream: Stream) {
    let (mut bytes, connection) = (Vec::new(), NEXT_CONNECTION.fetch_add(1, Ordering::Relaxed));
    loop {
        let Some(head) = next_head(&mut stream, &mut bytes).await else { return stream.tx.finish() };
        let request = Request(head);
        request.log();
        io.sleep(request.pause("X-Delay")).await;
        while let Some(gate) = request.field("X-Gate")
            && !OPEN_GATES.lock().unwrap().iter().any(|open| open == gate)
        {
            io.sleep(Duration::from_millis(5)).await;
        }
        match answer(&io, &request, connection, &mut stream.tx).await {
            Some(()) => {}
            None => return stream.tx.finish(),
        }
    }
}

/// Answers one request. Returns `None` if it is the last.
async fn answer(io: &Io, request: &Request, connection: u64, tx: &mut Tx) -> Option<()> {
    let fields = request.field("X-Fields").unwrap_or_default().replace(" | ", "\r\n");
    let etag = fields.lines().find_map(|line| line.strip_prefix("ETag: "));
    let next = NEXT_RESPONSE.fetch_add(1, Ordering::Relaxed);
    let condition = request.field("If-None-Match");
    let is_unmodified = condition == etag || request.field("X-Unmodified").is_some();
    if etag.is_some() && condition.is_some() && is_unmodified {
        let not_modified = format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\nX-Validated: 1\r\n\r\n");
        tx.push(Segment::Owned(not_modified.into()));
        return Some(());
    }
    if request.field("X-Ranges").is_some() && request.field("If-Match").is_some_and(|tag| Some(tag) != etag) {
        tx.push(Segment::Static(b"HTTP/1.1 412 Changed\r\nContent-Length: 0\r\n\r\n"));
        return Some(());
    }
    let number = request.number("X-Number").map_or(next, |number| number as u64);
    let mut body = body(number, request.number("X-Size").unwrap_or(20));
    let mut status = request.number("X-Status").unwrap_or(200);
    let mut lines = format!("X-Connection: {connection}\r\n");
    if !fields.is_empty() {
        lines.push_str(&format!("{fields}\r\n"));
    }
    if let Some(range) = request.range(etag, body.len()) {
        if range.is_empty() {
            let head = format!("HTTP/1.1 416 Range\r\nContent-Range: bytes */{}\r\n", body.len());
            tx.push(Segment::Owned(format!("{head}Content-Length: 0\r\n\r\n").into()));
            return Some(());
        }
        status = 206;
        let part = format!("Content-Range: bytes {}-{}/{}\r\n", range.start, range.end - 1, body.len());
        lines.push_str(&part);
        body = body[range].to_vec();
    }
    let start = format!("HTTP/1.1 {status} Some Reason\r\n{lines}");
    let is_chunked = request.field("X-Chunked").is_some();
    let framing = match is_chunked {
        true => "Transfer-Encoding: chunked".to_owned(),
        false => format!("Content-Length: {}", body.len()),
    };
    tx.push(Segment::Owned(format!("{start}{framing}\r\n\r\n").into()));
    if request.0.starts_with("HEAD ") {
        return Some(());
    }
    if request.field("X-Cut").is_some() {
        tx.push(Segment::Owned(body[..body.len() / 2].to_vec()));
        let _ = tx.drain(0).await;
        return None;
    }
    let part_bytes = if is_chunked { 50_000 } else { 100_000 };
    let pause_at = body.len() / 2 / part_bytes;
    for (number, part) in body.chunks(part_bytes).enumerate() {
        if number == pause_at {
            io.sleep(request.pause("X-Pause")).await;
        }
        let size = format!("{:x}\r\n", part.len());
        let framed = if is_chunked { [size.as_bytes(), part, b"\r\n"].concat() } else { part.to_vec() };
        tx.push(Segment::Owned(framed));
        tx.drain(0).await.ok()?;
    }
    if is_chunked {
        tx.push(Segment::Static(b"0\r\n\r\n"));
    }
    Some(())
}

/// Returns a body that differs from those of other responses in each line.
pub(super) fn body(number: u64, len: usize) -> Vec<u8> {
    let line = format!("response {number:08}\n").into_bytes();
    let mut bytes = line.repeat(len.div_ceil(line.len()));
    bytes.truncate(len);
    bytes
}

/// Returns the number of the response that a whole body is from.
pub(super) fn number_of(answer: &Answer) -> u64 {
    let text = answer.text();
    let number = text.get(9..17).and_then(|digits| digits.parse().ok());
    let number = number.unwrap_or_else(|| panic!("{} {text:.40}", answer.status));
    assert!(answer.body == body(number, answer.body.len()), "a mixture of responses");
    number
}

pub(super) fn cache_status(answer: &Answer) -> &str {
    answer.field("Cache-Status").unwrap_or("none")
}

/// Gets `/x` with fields, and returns the response's number and its Cache-Status.
pub(super) async fn get(client: &mut Client, fields: &str) -> (u64, String) {
    let answer = client.get_with("/x", fields).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    (number_of(&answer), cache_status(&answer).to_owned())
}
