//! A kept file that changes while its response is validated.
//!
//! The origin is one of a few lines. It passes the file at the path in `X-File`. Before it answers a
//! conditional request, it changes that file; then it does what `X-Then` says: `304`, `503`, or `end` without
//! a response.

use std::io;
use std::path::PathBuf;
use std::rc::Rc;

use plimsoll_io::{FileRange, Fs, Handler, Io, Segment, Stream, Work};
use plimsoll_tests::service::Each;
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Answer, Protocol, Scenario, Scene, behaviours};

use super::cached::cache_status;
use super::origin::next_head;
use super::passed::{FILE, SIZE, figures, scenario as passing, settle};

fn scenario() -> Scenario {
    Scenario { protocol: Protocol::Of(changing), ..passing() }
}

fn changing(io: Io) -> Rc<dyn Handler> {
    Rc::new(Each(io, serve))
}

async fn serve(io: Io, mut stream: Stream) {
    let mut bytes = Vec::new();
    loop {
        let Some(head) = next_head(&mut stream, &mut bytes).await else { return stream.tx.finish() };
        let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
        let path = PathBuf::from(field("X-File: ").expect("a path"));
        let fields = "ETag: \"a\"\r\nCache-Control: max-age=0, stale-if-error=60";
        if field("If-None-Match: ").is_none() {
            let file = io.files(move |fs| opened(fs, &path)).await.expect("a file");
            let length = file.range.end;
            let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\nContent-Length: {length}\r\n\r\n");
            stream.tx.push(Segment::Owned(head.into_bytes()));
            stream.tx.push(Segment::File(file));
            continue;
        }
        io.offload(Work::Writes, move |fs| changed(fs, &path)).await.expect("it runs").expect("a file");
        let answer = match field("X-Then: ") {
            Some("304") => format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n\r\n"),
            Some("503") => "HTTP/1.1 503 Unavailable\r\nContent-Length: 0\r\n\r\n".to_owned(),
            _ => return stream.tx.finish(),
        };
        stream.tx.push(Segment::Owned(answer.into_bytes()));
    }
}

fn opened(fs: &dyn Fs, path: &std::path::Path) -> io::Result<FileRange> {
    let folder = fs.open_root(path.parent().expect("a folder"))?;
    let file = fs.open_beneath(&folder, path.file_name().expect("a name").as_encoded_bytes())?;
    let size = fs.stat(&file)?.size;
    Ok(FileRange { file, range: 0..size })
}

/// Changes the first byte.
fn changed(fs: &dyn Fs, path: &std::path::Path) -> io::Result<usize> {
    let folder = fs.open_root(path.parent().expect("a folder"))?;
    let file = fs.open_to_write(&folder, path.file_name().expect("a name").as_encoded_bytes())?;
    fs.write_at(&file, b"!", 0)
}

/// Gets the file until it is kept, and once more: that response is validated.
async fn validated(scene: &Scene, then: &str) -> Answer {
    settle(scene, FILE).await;
    let mut client = scene.connect().await;
    let fields = format!("X-File: {}\r\nX-Then: {then}\r\n", scene.root().join(FILE).display());
    let first = client.get_with("/file", &fields).await;
    assert!(first.body == noise(99, SIZE));
    assert_eq!(figures().index.passed_objects, 1, "{}", cache_status(&first));
    let second = client.get_with("/file", &fields).await;
    assert_eq!(figures().changed, 1, "{}", cache_status(&second));
    second
}

fn changed_bytes() -> Vec<u8> {
    let mut bytes = noise(99, SIZE);
    bytes[0] = b'!';
    bytes
}

async fn a_file_that_changes_before_a_304_is_fetched_again(scene: Scene) {
    let answer = validated(&scene, "304").await;
    assert!(answer.status == 200 && answer.body == changed_bytes());
    // A file that has just changed is not stored.
    assert!(cache_status(&answer).starts_with("plimsoll; fwd=uri-miss"), "{}", cache_status(&answer));
}

async fn a_file_that_changes_before_an_error_is_not_sent_for_the_stale_one(scene: Scene) {
    let answer = validated(&scene, "503").await;
    assert!(answer.status == 200 && answer.body == changed_bytes());
}

async fn a_file_that_changes_before_its_origin_fails_is_not_sent(scene: Scene) {
    assert_eq!(validated(&scene, "end").await.status, 502);
}

behaviours!(scenario but process and tls;
    a_file_that_changes_before_a_304_is_fetched_again,
    a_file_that_changes_before_an_error_is_not_sent_for_the_stale_one,
    a_file_that_changes_before_its_origin_fails_is_not_sent,
);
