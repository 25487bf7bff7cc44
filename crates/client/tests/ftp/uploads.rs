//! Uploads of files.

use plimsoll_client::ftp::{Command, Error, When};
use plimsoll_client::{NextSegment, SingleSegment, Source};
use plimsoll_io::{Segment, Want};
use plimsoll_wire::ftp::command::Verb;

use crate::{Pieces, SECOND, calm, is_refused, run, take};

/// A source that has no end.
struct Endless;

impl Source for Endless {
    fn next(&mut self) -> NextSegment<'_> {
        Box::pin(async { Ok(Some(Segment::Owned(vec![b'x'; 10_000]))) })
    }
}

#[test]
fn an_upload_sends_the_whole_file_before_the_confirmation() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            for expected in [b"hello".to_vec(), Vec::new(), vec![b'x'; 1_000_000]] {
                let mut listener = control.passive().await;
                control.answer("STOR a b", "150 send it").await;
                assert!(take(&mut listener).await.unwrap() == expected);
                control.io.sleep(SECOND).await;
                control.send_line("226 I have it");
            }
            control.quit().await;
        },
        async |client| {
            let mut session = client.log_in().await.unwrap();
            assert_eq!(session.store(b"a b", &mut Pieces::of(&[b"hel", b"", b"lo"])).await.unwrap(), 5);
            assert_eq!(session.store(b"a b", &mut Pieces::of(&[])).await.unwrap(), 0);
            let mut whole = SingleSegment::new(Segment::Owned(vec![b'x'; 1_000_000]));
            assert_eq!(session.store(b"a b", &mut whole).await.unwrap(), 1_000_000);
            session.quit().await.unwrap();
        },
    );
}

#[test]
fn a_refused_upload_sends_nothing() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            let _listener = control.passive().await;
            control.answer("STOR a", "553 not that name").await;
            control.quit().await;
        },
        async |client| {
            let mut session = client.log_in().await.unwrap();
            let error = session.store(b"a", &mut Endless).await.unwrap_err();
            assert!(is_refused(&error, Verb::Stor, 553), "{error}");
            session.quit().await.unwrap();
        },
    );
}

#[test]
fn a_refusal_during_an_upload_ends_the_sending() {
    for reads_on in [false, true] {
        run(
            calm(),
            async move |mut server| {
                let mut control = server.logged_in().await;
                let mut listener = control.passive().await;
                control.answer("STOR a", "150 send it").await;
                let mut data = listener.accept().await.unwrap();
                data.rx.recv(Want::Body).await.unwrap();
                control.send_line("452 it is full");
                if reads_on {
                    while let Ok(Some(_)) = data.rx.recv(Want::Body).await {}
                } else {
                    drop(data);
                }
                control.quit().await;
            },
            async |client| {
                let mut session = client.log_in().await.unwrap();
                let error = session.store(b"a", &mut Endless).await.unwrap_err();
                assert!(is_refused(&error, Verb::Stor, 452), "{error}");
                session.quit().await.unwrap();
            },
        );
    }
}

#[test]
fn an_upload_refused_after_its_last_byte_is_an_error() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            let mut listener = control.passive().await;
            control.answer("STOR a", "150 send it").await;
            assert_eq!(take(&mut listener).await.unwrap(), b"hello");
            control.send_line("452 it is full");
            control.quit().await;
        },
        async |client| {
            let mut session = client.log_in().await.unwrap();
            let error = session.store(b"a", &mut Pieces::of(&[b"hello"])).await.unwrap_err();
            assert!(is_refused(&error, Verb::Stor, 452), "{error}");
            session.quit().await.unwrap();
        },
    );
}

#[test]
fn a_confirmation_before_the_last_byte_of_an_upload_is_an_error() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            let mut listener = control.passive().await;
            control.answer("STOR a", "150 send it").await;
            let data = listener.accept().await.unwrap();
            control.send_line("226 I have it");
            control.io.sleep(SECOND).await;
            let _listener = control.passive().await;
            control.answer("STOR a", "226 I have it").await;
            drop(data);
            control.quit().await;
        },
        async |client| {
            let mut session = client.log_in().await.unwrap();
            for _ in 0..2 {
                let error = session.store(b"a", &mut Endless).await.unwrap_err();
                assert!(matches!(error, Error::Unexpected(Command::Verb(Verb::Stor))), "{error}");
            }
            session.quit().await.unwrap();
        },
    );
}

#[test]
fn a_failing_source_resets_the_upload_and_keeps_the_session_usable() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            let mut listener = control.passive().await;
            control.answer("STOR a", "150 send it").await;
            assert!(take(&mut listener).await.is_err(), "it breaks off");
            control.send_line("426 where is the rest?");
            control.quit().await;
        },
        async |client| {
            let mut session = client.log_in().await.unwrap();
            let mut source = Pieces::of(&[b"half"]);
            source.1 = Some(std::io::ErrorKind::PermissionDenied);
            let error = session.store(b"a", &mut source).await.unwrap_err();
            assert!(matches!(error, Error::Source(_)), "{error}");
            session.quit().await.unwrap();
        },
    );
}

#[test]
fn a_broken_data_connection_is_an_error_without_a_refusal() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            let mut listener = control.passive().await;
            control.answer("STOR a", "150 send it").await;
            drop(listener.accept().await.unwrap());
            assert!(control.stream.rx.recv(Want::Head).await.is_err());
        },
        async |client| {
            let mut session = client.log_in().await.unwrap();
            let error = session.store(b"a", &mut Endless).await.unwrap_err();
            assert!(matches!(error, Error::Broken { when: When::Sending, .. }), "{error}");
            assert!(matches!(session.size(b"a").await, Err(Error::OutOfStep)));
        },
    );
}
