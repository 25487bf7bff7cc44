//! The contract under a transport like TLS: a transport over a transport, with a handshake, records and no
//! files. The cipher is a toy; the shape is not.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use plimsoll_io::{Address, Io, Lease, Peer, Segment, Stream, Transport, Want};
use plimsoll_tests::tree::noise;
use plimsoll_tests::{
    Answer, Client, Engine, LOOKED_UP_EACH_TIME, Protocol, Scenario, Scene, Tree, behaviours,
};

/// The maximal length of a record's body; its length precedes it in two bytes.
const RECORD_BYTES_MAX: usize = 1000;
const LARGE_BYTES: usize = 40_000;
const HELLO: &[u8; 5] = b"hello";

fn scenario() -> Scenario {
    let tree = Tree::new().file("small.txt", "small\n").file("large.bin", noise(1, LARGE_BYTES));
    let protocol = Protocol::HttpOver(handshake);
    Scenario { tree, protocol, hot: LOOKED_UP_EACH_TIME, ..Scenario::default() }
}

/// Both sides send a hello, and all later bytes are scrambled.
fn handshake(_: Io, stream: Stream) -> Pin<Box<dyn Future<Output = io::Result<Stream>>>> {
    Box::pin(async move {
        let mut stream = stream;
        stream.tx.push(Segment::Static(HELLO));
        let mut heard = Vec::new();
        while heard.len() < HELLO.len() {
            match stream.rx.recv(Want::Head).await? {
                Some(lease) => heard.extend_from_slice(&lease),
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let rest = heard.split_off(HELLO.len());
        if heard != HELLO {
            return Err(io::ErrorKind::InvalidData.into());
        }
        stream.unreceive(Lease::owned(rest));
        stream.layer(|inner, received| {
            let received: Vec<u8> = received.map_or_else(Vec::new, |lease| lease.to_vec());
            Rc::new(Scrambled { inner, received: RefCell::new(received.into()), ended: Cell::new(false) })
        });
        Ok(stream)
    })
}

struct Scrambled {
    inner: Rc<dyn Transport>,
    received: RefCell<VecDeque<u8>>,
    ended: Cell<bool>,
}

impl Scrambled {
    /// Returns a complete record, if one was received; an empty one is the end.
    fn record(&self) -> Option<Lease> {
        let mut received = self.received.borrow_mut();
        let (Some(high), Some(low)) = (received.front(), received.get(1)) else { return None };
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        if received.len() < 2 + len {
            return None;
        }
        received.drain(..2);
        Some(Lease::owned(received.drain(..len).map(|byte| byte ^ 0x5a).collect()))
    }
}

fn sealed(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for part in bytes.chunks(RECORD_BYTES_MAX) {
        out.extend_from_slice(&u16::try_from(part.len()).unwrap().to_be_bytes());
        out.extend(part.iter().map(|byte| byte ^ 0x5a));
    }
    out
}

impl Transport for Scrambled {
    fn poll_recv(&self, cx: &mut Context<'_>, want: Want) -> Poll<io::Result<Option<Lease>>> {
        loop {
            if self.ended.get() {
                return Poll::Ready(Ok(None));
            }
            match self.record() {
                Some(record) if record.is_empty() => self.ended.set(true),
                Some(record) => return Poll::Ready(Ok(Some(record))),
                None => match ready!(self.inner.poll_recv(cx, want))? {
                    Some(lease) => self.received.borrow_mut().extend(lease.iter()),
                    // As with TLS: an end without a closing record may be forged.
                    None => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                },
            }
        }
    }

    fn push(&self, segment: Segment) {
        self.inner.push(Segment::Owned(sealed(segment.bytes())));
    }

    fn poll_drain(&self, cx: &mut Context<'_>, below: u64) -> Poll<io::Result<()>> {
        self.inner.poll_drain(cx, below)
    }

    fn unsent(&self) -> u64 {
        self.inner.unsent()
    }

    fn lost(&self) -> u64 {
        self.inner.lost()
    }

    fn takes_files(&self) -> bool {
        false
    }

    fn finish(&self) {
        self.inner.push(Segment::Static(&[0, 0]));
        self.inner.finish();
    }

    fn peer(&self) -> &Peer {
        self.inner.peer()
    }

    fn local(&self) -> io::Result<Address> {
        self.inner.local()
    }
}

async fn connect(scene: &Scene) -> Client {
    let stream = scene.io.connect(&scene.at).await.unwrap();
    Client::new(&scene.io, handshake(scene.io.clone(), stream).await.expect("a handshake"))
}

/// Asserts an answer with two parts of `large.bin`, in the format of RFC 2046.
fn assert_two_parts(answer: &Answer) {
    let media = answer.field("Content-Type").expect("a type");
    let boundary = media.strip_prefix("multipart/byteranges; boundary=").expect("a multipart type");
    let (file, mut expected) = (noise(1, LARGE_BYTES), Vec::new());
    for range in [10..=20, 30_000..=30_500] {
        let (first, last) = (range.start(), range.end());
        let head = format!(
            "\r\n--{boundary}\r\nContent-Type: application/octet-stream\r\n\
             Content-Range: bytes {first}-{last}/{LARGE_BYTES}\r\n\r\n"
        );
        expected.extend_from_slice(head.as_bytes());
        expected.extend_from_slice(&file[range]);
    }
    expected.extend_from_slice(format!("\r\n--{boundary}--\r\n").as_bytes());
    assert_eq!(answer.status, 206);
    assert!(answer.body == expected, "{}", String::from_utf8_lossy(&answer.body));
}

async fn http_is_spoken_over_it_unchanged(scene: Scene) {
    let mut client = connect(&scene).await;
    assert_eq!(client.get("/small.txt").await.text(), "small\n");
    assert!(client.get("/large.bin").await.body == noise(1, LARGE_BYTES));
    let parts = client.get_with("/large.bin", "Range: bytes=10-20,30000-30500\r\n").await;
    assert_two_parts(&parts);
    let closed = client.get_with("/small.txt", "Connection: close\r\n").await;
    assert_eq!(closed.text(), "small\n");
    client.expect_end().await;
}

async fn a_handshake_that_fails_ends_that_connection_alone(scene: Scene) {
    let mut stranger = scene.connect().await;
    stranger.push("GET / HTTP/1.1\r\n\r\n");
    stranger.expect_abort().await;
    assert_eq!(connect(&scene).await.get("/small.txt").await.status, 200);
}

/// Writes and returns a file larger than the buffers between server and client: the kernel's, or a
/// simulated network's.
fn put_huge(scene: &Scene) -> Vec<u8> {
    let bytes = noise(3, if scene.engine == Engine::Simulator { 400_000 } else { 20_000_000 });
    scene.write("huge.bin", &bytes);
    bytes
}

/// Requests the huge file and reads the answer's head.
async fn begin(scene: &Scene) -> Client {
    let mut client = connect(scene).await;
    client.send("GET /huge.bin HTTP/1.1\r\nHost: test\r\n\r\n").await;
    assert_eq!(client.answer_to_head().await.status, 200);
    client
}

async fn a_file_that_shrinks_breaks_off_over_it_too(scene: Scene) {
    let all = put_huge(&scene);
    let mut client = begin(&scene).await;
    scene.truncate("huge.bin", 8192);
    let came = client.expect_abort().await;
    assert!(came.len() < all.len() && all.starts_with(&came), "{} bytes", came.len());
    assert_eq!(connect(&scene).await.get("/small.txt").await.text(), "small\n");
}

async fn at_the_order_to_stop_what_was_begun_is_finished_over_it_too(scene: Scene) {
    let all = put_huge(&scene);
    let mut begun = begin(&scene).await;
    let mut idle = connect(&scene).await;
    assert_eq!(idle.get("/small.txt").await.text(), "small\n");
    scene.stop.order();
    // The end record of this transport, not only the end of the inner one.
    idle.expect_end().await;
    assert!(begun.body(all.len()).await.expect("all of it") == all);
    begun.expect_end().await;
    drop((idle, begun));
    scene.until(|| scene.open() == 0).await;
}

behaviours!(
    scenario;
    http_is_spoken_over_it_unchanged,
    a_file_that_shrinks_breaks_off_over_it_too,
    at_the_order_to_stop_what_was_begun_is_finished_over_it_too,
    a_handshake_that_fails_ends_that_connection_alone,
);
