//! Downloads of files and listings.

use plimsoll_client::ftp::{Command, Error, When};
use plimsoll_io::{Segment, Want};
use plimsoll_wire::ftp::command::Verb;

use crate::{SECOND, calm, fetch, give, is_refused, run};

#[test]
fn two_files_arrive_one_after_the_other_on_one_session() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            for _ in 0..3 {
                let mut listener = control.passive().await;
                control.answer("RETR a b", "150 here it comes").await;
                give(&mut listener, &[b'x'; 100_000]).await;
                control.send_line("226 all of it");
            }
            control.quit().await;
        },
        async |client| {
            let mut session = client.log_in().await.unwrap();
            for _ in 0..2 {
                assert!(fetch(&mut session, "a b", 0).await.unwrap() == [b'x'; 100_000]);
            }
            let mut download = session.retrieve(b"a b", 0).await.unwrap();
            assert_eq!(download.discard().await.unwrap(), 100_000);
            assert_eq!(download.discard().await.unwrap(), 100_000, "it stays at its end");
            session.quit().await.unwrap();
        },
    );
}

#[test]
fn a_download_completes_whichever_connection_ends_first() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            // The whole file before the preliminary answer.
            let mut listener = control.passive().await;
            control.expect_line("RETR a").await;
            let mut data = listener.accept().await.unwrap();
            data.tx.push(Segment::Static(b"early"));
            data.tx.finish();
            control.io.sleep(SECOND).await;
            control.send_line("150 it has come");
            control.io.sleep(SECOND).await;
            control.send_line("226 all of it");
            // All answers before the file.
            let mut listener = control.passive().await;
            control.answer("RETR a", "150 it comes\r\n226 all of it").await;
            let mut data = listener.accept().await.unwrap();
            control.io.sleep(SECOND).await;
            data.tx.push(Segment::Static(b"late"));
            data.tx.finish();
            // No preliminary answer at all.
            let mut listener = control.passive().await;
            control.answer("RETR a", "226 all of it").await;
            give(&mut listener, b"unsaid").await;
            control.quit().await;
        },
        async |client| {
            let mut session = client.log_in().await.unwrap();
            for bytes in ["early", "late", "unsaid"] {
                assert_eq!(fetch(&mut session, "a", 0).await.unwrap(), bytes.as_bytes());
            }
            session.quit().await.unwrap();
        },
    );
}

#[test]
fn rest_is_sent_immediately_before_retr() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            let mut listener = control.passive().await;
            control.answer("REST 7", "350 go on").await;
            control.answer("RETR a", "150 it comes").await;
            give(&mut listener, b"the rest").await;
            control.send_line("226 all of it");
            let _listener = control.passive().await;
            control.answer("REST 9", "502 never heard of it").await;
            control.quit().await;
        },
        async |client| {
            let mut session = client.log_in().await.unwrap();
            assert_eq!(fetch(&mut session, "a", 7).await.unwrap(), b"the rest");
            let error = fetch(&mut session, "a", 9).await.unwrap_err();
            assert!(is_refused(&error, Verb::Rest, 502), "{error}");
            session.quit().await.unwrap();
        },
    );
}

#[test]
fn a_client_falls_back_to_pasv_and_does_not_try_epsv_again() {
    for code in [500, 501, 502, 504, 522] {
        run(
            calm(),
            async move |mut server| {
                let mut control = server.logged_in().await;
                control.answer("EPSV", &format!("{code} what?")).await;
                for _ in 0..2 {
                    let (mut listener, port) = control.listen();
                    // A foreign address: the client connects to the server's own.
                    let text = format!("227 =10,9,9,9,{},{}", port >> 8, port & 255);
                    control.answer("PASV", &text).await;
                    control.answer("RETR a", "150 it comes").await;
                    give(&mut listener, b"file").await;
                    control.send_line("250 all of it");
                }
                control.quit().await;
            },
            async |client| {
                let mut session = client.log_in().await.unwrap();
                for _ in 0..2 {
                    assert_eq!(fetch(&mut session, "a", 0).await.unwrap(), b"file");
                }
                session.quit().await.unwrap();
            },
        );
    }
}

#[test]
fn a_passive_reply_without_an_address_is_an_error() {
    for (epsv, expected) in [
        ("229 no place", None),
        ("229 (|||0|)", None),
        ("229 (|||65536|)", None),
        ("500 what?\r\n", Some("227 no place")),
        ("500 what?\r\n", Some("227 (1,2,3,4,0,0)")),
        ("500 what?\r\n", Some("227 (1,2,3,4,256,0)")),
    ] {
        run(
            calm(),
            async move |mut server| {
                let mut control = server.logged_in().await;
                control.answer("EPSV", epsv.trim_end()).await;
                if let Some(pasv) = expected {
                    control.answer("PASV", pasv).await;
                }
                control.quit().await;
            },
            async |client| {
                let mut session = client.log_in().await.unwrap();
                let error = fetch(&mut session, "a", 0).await.unwrap_err();
                assert!(
                    matches!(error, Error::Unexpected(Command::Verb(Verb::Epsv | Verb::Pasv))),
                    "{error}"
                );
                session.quit().await.unwrap();
            },
        );
    }
}

#[test]
fn a_refusal_at_any_step_is_an_error_and_the_session_stays_usable() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            control.answer("EPSV", "425 no port is free").await;
            let listener = control.passive().await;
            control.answer("RETR a", "550 no such file").await;
            drop(listener);
            // A port without a listener.
            let (listener, port) = control.listen();
            drop(listener);
            control.answer("EPSV", &format!("229 (|||{port}|)")).await;
            control.quit().await;
        },
        async |client| {
            let mut session = client.log_in().await.unwrap();
            let error = fetch(&mut session, "a", 0).await.unwrap_err();
            assert!(is_refused(&error, Verb::Epsv, 425), "{error}");
            let error = fetch(&mut session, "a", 0).await.unwrap_err();
            assert!(is_refused(&error, Verb::Retr, 550), "{error}");
            let error = fetch(&mut session, "a", 0).await.unwrap_err();
            assert!(matches!(error, Error::Connect { .. }), "{error}");
            session.quit().await.unwrap();
        },
    );
}

#[test]
fn a_download_without_a_confirmation_is_an_error() {
    for code in [426, 451] {
        run(
            calm(),
            async move |mut server| {
                let mut control = server.logged_in().await;
                let mut listener = control.passive().await;
                control.answer("RETR a", "150 it comes").await;
                give(&mut listener, b"half of").await;
                control.send_line(&format!("{code} no more"));
                control.quit().await;
            },
            async move |client| {
                let mut session = client.log_in().await.unwrap();
                let mut download = session.retrieve(b"a", 0).await.unwrap();
                assert_eq!(&*download.recv().await.unwrap().unwrap(), b"half of");
                let error = download.recv().await.unwrap_err();
                assert!(is_refused(&error, Verb::Retr, code), "{error}");
                for _ in 0..2 {
                    assert!(download.recv().await.is_err(), "it never looks ended");
                }
                session.quit().await.unwrap();
            },
        );
    }
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            let mut listener = control.passive().await;
            control.answer("RETR a", "150 it comes").await;
            give(&mut listener, b"all of it").await;
            let _ = control.stream.finish().await;
        },
        async |client| {
            let error = fetch(&mut client.log_in().await.unwrap(), "a", 0).await.unwrap_err();
            let waiting = When::Waiting(Command::Verb(Verb::Retr));
            assert!(matches!(error, Error::Broken { when, .. } if when == waiting), "{error}");
        },
    );
}

#[test]
fn a_broken_data_connection_is_explained_by_the_servers_reply() {
    for line in [Some("426 my disk"), Some("226 all of it"), None] {
        run(
            calm(),
            async move |mut server| {
                let mut control = server.logged_in().await;
                let mut listener = control.passive().await;
                control.answer("RETR a", "150 it comes").await;
                let mut data = listener.accept().await.unwrap();
                data.tx.push(Segment::Static(b"half"));
                data.tx.drain(0).await.unwrap();
                drop(data);
                line.into_iter().for_each(|line| control.send_line(line));
                while let Ok(Some(_)) = control.stream.rx.recv(Want::Head).await {}
            },
            async move |client| {
                let mut session = client.log_in().await.unwrap();
                let error = fetch(&mut session, "a", 0).await.unwrap_err();
                match line {
                    Some(line) if line.starts_with('4') => {
                        assert!(is_refused(&error, Verb::Retr, 426), "{error}");
                    }
                    _ => assert!(matches!(error, Error::Broken { when: When::Receiving, .. }), "{error}"),
                }
            },
        );
    }
}

#[test]
fn a_refusal_during_a_stalled_download_ends_it() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            let mut listener = control.passive().await;
            control.answer("RETR a", "150 it comes").await;
            let mut data = listener.accept().await.unwrap();
            data.tx.push(Segment::Static(b"half"));
            control.io.sleep(SECOND).await;
            control.send_line("451 my disk");
            control.quit().await;
            assert!(data.rx.recv(Want::Body).await.is_err(), "the client broke it off");
        },
        async |client| {
            let mut session = client.log_in().await.unwrap();
            let error = fetch(&mut session, "a", 0).await.unwrap_err();
            assert!(is_refused(&error, Verb::Retr, 451), "{error}");
            assert!(client.io.now().since_start() < SECOND * 2);
            session.quit().await.unwrap();
        },
    );
}

#[test]
fn a_dropped_wait_loses_no_bytes() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            let mut listener = control.passive().await;
            control.answer("RETR a", "150 it comes").await;
            let mut data = listener.accept().await.unwrap();
            for byte in [b"f", b"i", b"l", b"e"] {
                data.tx.push(Segment::Static(byte));
                control.io.sleep(SECOND).await;
            }
            data.tx.finish();
            control.io.sleep(SECOND * 4).await;
            control.send_line("226 all of it");
            control.quit().await;
        },
        async |client| {
            let mut session = client.log_in().await.unwrap();
            let mut download = session.retrieve(b"a", 0).await.unwrap();
            let (patience, mut all, mut dropped) = (client.io.deadline(), Vec::new(), 0);
            loop {
                patience.after(SECOND / 3);
                match patience.within(download.recv()).await {
                    Ok(received) => match received.unwrap() {
                        Some(lease) => all.extend_from_slice(&lease),
                        None => break,
                    },
                    Err(_) => dropped += 1,
                }
            }
            assert_eq!(all, b"file");
            assert!(dropped > 10, "{dropped}");
            session.quit().await.unwrap();
        },
    );
}

#[test]
fn a_dropped_download_makes_the_session_unusable() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            let mut listener = control.passive().await;
            control.answer("RETR a", "150 it comes").await;
            let mut data = listener.accept().await.unwrap();
            data.tx.push(Segment::Static(b"half"));
            assert!(data.rx.recv(Want::Body).await.is_err(), "the client broke it off");
            assert!(control.stream.rx.recv(Want::Head).await.is_err());
        },
        async |client| {
            let mut session = client.log_in().await.unwrap();
            let mut download = session.retrieve(b"a", 0).await.unwrap();
            download.recv().await.unwrap().unwrap();
            drop(download);
            assert!(matches!(session.size(b"a").await, Err(Error::OutOfStep)));
        },
    );
}

#[test]
fn a_listing_is_received_like_a_file() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            for line in ["LIST", "LIST a b"] {
                let mut listener = control.passive().await;
                control.answer(line, "150 it comes").await;
                give(&mut listener, b"one\r\ntwo\r\n").await;
                control.send_line("226 all of it");
            }
            control.quit().await;
        },
        async |client| {
            let mut session = client.log_in().await.unwrap();
            for path in [&b""[..], b"a b"] {
                assert_eq!(session.list(path).await.unwrap().discard().await.unwrap(), 10);
            }
            session.quit().await.unwrap();
        },
    );
}

#[test]
fn a_data_connection_that_was_opened_early_serves_the_next_transfer_only() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            let mut listener = control.passive().await;
            let mut data = listener.accept().await.unwrap();
            control.io.sleep(SECOND).await;
            // The first transfer is the next command.
            control.answer("RETR a", "150 it comes").await;
            data.tx.push(Segment::Static(b"early"));
            data.finish().await.unwrap();
            control.send_line("226 all of it");
            let mut listener = control.passive().await;
            control.answer("RETR a", "150 it comes").await;
            give(&mut listener, b"usual").await;
            control.send_line("226 all of it");
            control.quit().await;
        },
        async |client| {
            let mut session = client.log_in().await.unwrap();
            session.open_data().await.unwrap();
            client.io.sleep(10 * SECOND).await;
            for bytes in ["early", "usual"] {
                assert_eq!(fetch(&mut session, "a", 0).await.unwrap(), bytes.as_bytes());
            }
            session.quit().await.unwrap();
        },
    );
}

#[test]
fn a_data_connection_that_the_server_closed_meanwhile_is_opened_again_once() {
    for code in [425, 503] {
        run(
            calm(),
            async move |mut server| {
                let mut control = server.logged_in().await;
                // An idle server resets the connection; both codes say that it has none.
                drop(control.passive().await.accept().await.unwrap());
                control.answer("RETR a", &format!("{code} say EPSV first")).await;
                let mut listener = control.passive().await;
                control.answer("RETR a", "150 it comes").await;
                give(&mut listener, b"file").await;
                control.send_line("226 all of it");
                let _listener = control.passive().await;
                control.answer("RETR b", &format!("{code} say EPSV first")).await;
                control.quit().await;
            },
            async move |client| {
                let mut session = client.log_in().await.unwrap();
                session.open_data().await.unwrap();
                client.io.sleep(SECOND).await;
                assert_eq!(fetch(&mut session, "a", 0).await.unwrap(), b"file");
                let error = fetch(&mut session, "b", 0).await.unwrap_err();
                assert!(is_refused(&error, Verb::Retr, code), "{error}");
                session.quit().await.unwrap();
            },
        );
    }
}

#[test]
fn a_refusal_for_another_reason_does_not_repeat_the_transfer() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            let _listener = control.passive().await;
            control.answer("RETR a", "550 no such file").await;
            control.quit().await;
        },
        async |client| {
            let mut session = client.log_in().await.unwrap();
            session.open_data().await.unwrap();
            let error = fetch(&mut session, "a", 0).await.unwrap_err();
            assert!(is_refused(&error, Verb::Retr, 550), "{error}");
            session.quit().await.unwrap();
        },
    );
}
