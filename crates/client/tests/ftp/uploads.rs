//! Uploads of files.

use plimsoll_client::ftp::{Asked, Error, When};
use plimsoll_client::{Piece, Source, Whole};
use plimsoll_io::{Segment, Want};
use plimsoll_wire::ftp::command::Verb;

use crate::{Pieces, SECOND, calm, is_refused, run, take};

/// A source that has no end.
struct Endless;

impl Source for Endless {
    fn next(&mut self) -> Piece<'_> {
        Box::pin(async { Ok(Some(Segment::Owned(vec![b'x'; 10_000]))) })
    }
}

#[test]
fn a_file_is_sent_whole_and_then_confirmed() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            for expected in [b"hello".to_vec(), Vec::new(), vec![b'x'; 1_000_000]] {
                let mut listener = control.passive().await;
                control.answer("STOR a b", "150 send it").await;
                assert!(take(&mut listener).await.unwrap() == expected);
                control.io.sleep(SECOND).await;
                control.say("226 I have it");
            }
            control.quit().await;
        },
        async |client| {
            let mut session = client.log_in().await.unwrap();
            assert_eq!(session.store(b"a b", &mut Pieces::of(&[b"hel", b"", b"lo"])).await.unwrap(), 5);
            assert_eq!(session.store(b"a b", &mut Pieces::of(&[])).await.unwrap(), 0);
            let mut whole = Whole::new(Segment::Owned(vec![b'x'; 1_000_000]));
            assert_eq!(session.store(b"a b", &mut whole).await.unwrap(), 1_000_000);
            session.quit().await.unwrap();
        },
    );
}

#[test]
fn a_file_that_is_refused_is_not_sent() {
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
fn a_refusal_in_the_middle_ends_the_sending() {
    for reads_on in [false, true] {
        run(
            calm(),
            async move |mut server| {
                let mut control = server.logged_in().await;
                let mut listener = control.passive().await;
                control.answer("STOR a", "150 send it").await;
                let mut data = listener.accept().await.unwrap();
                data.rx.recv(Want::Body).await.unwrap();
                control.say("452 it is full");
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
fn a_file_that_was_sent_and_then_refused_is_an_error() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            let mut listener = control.passive().await;
            control.answer("STOR a", "150 send it").await;
            assert_eq!(take(&mut listener).await.unwrap(), b"hello");
            control.say("452 it is full");
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
fn a_server_that_confirms_what_it_cannot_have_is_not_believed() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            let mut listener = control.passive().await;
            control.answer("STOR a", "150 send it").await;
            let data = listener.accept().await.unwrap();
            control.say("226 I have it");
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
                assert!(matches!(error, Error::Unasked(Asked::Verb(Verb::Stor))), "{error}");
            }
            session.quit().await.unwrap();
        },
    );
}

#[test]
fn what_a_source_cannot_give_never_looks_whole_and_the_session_goes_on() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            let mut listener = control.passive().await;
            control.answer("STOR a", "150 send it").await;
            assert!(take(&mut listener).await.is_err(), "it breaks off");
            control.say("426 where is the rest?");
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
fn a_data_connection_that_breaks_is_an_error_even_if_nothing_is_said_of_it() {
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
