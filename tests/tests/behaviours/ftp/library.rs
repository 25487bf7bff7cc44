//! This project's FTP client: it reports the actual outcome of each transfer.

use plimsoll_client::ftp::{Command, Error, Session, Times};
use plimsoll_client::{NextSegment, SingleSegment, Source};
use plimsoll_io::Segment;
use plimsoll_tests::accounts::PASSWORD;
use plimsoll_tests::tree::noise;
use plimsoll_tests::{Person, Scene, behaviours, together};
use plimsoll_wire::ftp::command::Verb;

use super::{large_bytes, with_accounts};

/// Connects, over TLS if the server has it.
async fn connect(scene: &Scene) -> Session {
    let (io, at, times) = (&scene.io, scene.ftp(), Times::default());
    match scene.ftp_encryption() {
        Some(encryption) => Session::connect_encrypted(io, at, times, &encryption).await.unwrap(),
        None => Session::connect(io, at, times).await.unwrap(),
    }
}

async fn log_in(scene: &Scene) -> Session {
    let mut session = connect(scene).await;
    session.log_in("alice", PASSWORD).await.unwrap();
    session
}

async fn fetch(session: &mut Session, path: &str, offset: u64) -> Result<Vec<u8>, Error> {
    let mut download = session.retrieve(path.as_bytes(), offset).await?;
    let mut all = Vec::new();
    while let Some(lease) = download.recv().await? {
        all.extend_from_slice(&lease);
    }
    Ok(all)
}

async fn store(session: &mut Session, path: &str, bytes: &[u8]) -> Result<u64, Error> {
    session.store(path.as_bytes(), &mut SingleSegment::new(Segment::Owned(bytes.to_vec()))).await
}

#[track_caller]
fn assert_refused<T>(result: Result<T, Error>, verb: Verb, expected: u16) {
    match result.err().expect("a refusal") {
        Error::Refused { command, code, .. } => assert_eq!((command, code), (Command::Verb(verb), expected)),
        error => panic!("{error}"),
    }
}

async fn a_session_does_all_that_it_can(scene: Scene) {
    let mut person = Person::new(&scene, "alice").await;
    let mut session = log_in(&scene).await;
    for len in [0, 1, 70_000] {
        let bytes = noise(len as u64, len);
        assert_eq!(store(&mut session, "a b", &bytes).await.unwrap(), len as u64);
        assert!(person.get("/files/a%20b").await.body == bytes, "it is there when that is said");
        assert_eq!(session.size(b"/a b").await.unwrap(), len as u64);
        assert!(fetch(&mut session, "a b", 0).await.unwrap() == bytes);
        assert!(fetch(&mut session, "a b", len as u64 / 2).await.unwrap() == bytes[len / 2..]);
    }
    let mut listing = session.list(b"").await.unwrap();
    let mut text = Vec::new();
    while let Some(lease) = listing.recv().await.unwrap() {
        text.extend_from_slice(&lease);
    }
    assert!(text.ends_with(b" a b\r\n"), "{}", String::from_utf8_lossy(&text));
    session.delete(b"a b").await.unwrap();
    assert_eq!(session.list(b"/").await.unwrap().discard().await.unwrap(), 0);
    assert!(scene.home("alice").is_empty());
    session.quit().await.unwrap();
    drop(person);
    scene.until(|| scene.open() == 0).await;
}

async fn a_refusal_is_returned_by_its_code_and_the_session_continues(scene: Scene) {
    let _person = Person::new(&scene, "alice").await;
    let mut session = connect(&scene).await;
    assert_refused(session.log_in("alice", "wrong").await, Verb::Pass, 530);
    assert_refused(fetch(&mut session, "a", 0).await, Verb::Epsv, 530);
    session.log_in("alice", PASSWORD).await.unwrap();
    assert_refused(fetch(&mut session, "none", 0).await, Verb::Retr, 550);
    assert_refused(session.size(b"none").await, Verb::Size, 550);
    assert_refused(session.delete(b"none").await, Verb::Dele, 550);
    assert_refused(store(&mut session, "none/a", b"x").await, Verb::Stor, 550);
    store(&mut session, "a", b"well\n").await.unwrap();
    assert_eq!(fetch(&mut session, "a", 0).await.unwrap(), b"well\n");
    session.quit().await.unwrap();
}

async fn a_large_file_is_transferred_in_bounded_memory(scene: Scene) {
    let _person = Person::new(&scene, "alice").await;
    let mut session = log_in(&scene).await;
    let bytes = noise(5, large_bytes(scene.engine));
    store(&mut session, "large", &bytes).await.unwrap();
    assert!(fetch(&mut session, "large", 0).await.unwrap() == bytes);
    session.quit().await.unwrap();
}

async fn many_sessions_at_once_do_not_mix(scene: Scene) {
    let _person = Person::new(&scene, "alice").await;
    together((0..8_u64).map(|at| {
        let scene = &scene;
        async move {
            let mut session = log_in(scene).await;
            let name = at.to_string();
            for round in 0..3 {
                let bytes = noise(at * 10 + round, 3_000);
                store(&mut session, &name, &bytes).await.unwrap();
                assert!(fetch(&mut session, &name, 0).await.unwrap() == bytes);
            }
            session.quit().await.unwrap();
        }
    }))
    .await;
    assert_eq!(scene.home("alice").len(), 8);
}

/// A source that fails after its first piece.
struct Broken(bool);

impl Source for Broken {
    fn next(&mut self) -> NextSegment<'_> {
        let piece = if std::mem::replace(&mut self.0, true) {
            Err(std::io::ErrorKind::PermissionDenied.into())
        } else {
            Ok(Some(Segment::Owned(noise(1, 10_000))))
        };
        Box::pin(std::future::ready(piece))
    }
}

async fn an_upload_from_a_failing_source_replaces_no_file(scene: Scene) {
    let _person = Person::new(&scene, "alice").await;
    let mut session = log_in(&scene).await;
    store(&mut session, "a", b"the old one\n").await.unwrap();
    let error = session.store(b"a", &mut Broken(false)).await.unwrap_err();
    assert!(matches!(error, Error::Source(_)), "{error}");
    drop(session);
    scene.until(|| scene.open() == 1).await;
    assert_eq!(scene.home("alice")["a"].as_deref(), Some(&b"the old one\n"[..]));
    assert_eq!(fetch(&mut log_in(&scene).await, "a", 0).await.unwrap(), b"the old one\n");
}

async fn a_download_that_is_dropped_frees_what_it_held(scene: Scene) {
    let person = Person::new(&scene, "alice").await;
    let mut session = log_in(&scene).await;
    store(&mut session, "large", &noise(6, large_bytes(scene.engine))).await.unwrap();
    let mut download = session.retrieve(b"large", 0).await.unwrap();
    download.recv().await.unwrap().expect("the first bytes");
    drop(download);
    assert!(matches!(session.size(b"large").await, Err(Error::OutOfStep)));
    drop((session, person));
    scene.until(|| scene.open() == 0).await;
}

behaviours!(with_accounts and remote and tls;
    a_session_does_all_that_it_can,
    a_refusal_is_returned_by_its_code_and_the_session_continues,
    a_large_file_is_transferred_in_bounded_memory,
    many_sessions_at_once_do_not_mix,
    an_upload_from_a_failing_source_replaces_no_file,
    a_download_that_is_dropped_frees_what_it_held,
);
