//! From the greeting to the goodbye.

use plimsoll_client::ftp::{Command, Error, When};
use plimsoll_wire::ftp::command::Verb;

use crate::{calm, is_refused, run};

#[test]
fn a_session_logs_in_selects_binary_transfers_and_quits() {
    run(
        calm(),
        async |mut server| server.logged_in().await.quit().await,
        async |client| client.log_in().await.unwrap().quit().await.unwrap(),
    );
}

#[test]
fn a_session_dropped_between_commands_ends_cleanly() {
    run(
        calm(),
        async |mut server| server.logged_in().await.ended().await,
        async |client| drop(client.log_in().await.unwrap()),
    );
}

#[test]
fn a_greeting_of_120_is_followed_by_a_wait_for_220() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.accept().await;
            control.send_line("120-soon\r\n 220 is not said yet\r\n120 very soon");
            control.io.sleep(crate::SECOND).await;
            control.send_line("220-now\r\n220-we\r\nare\r\n220 ready");
            control.quit().await;
        },
        async |client| client.connect().await.unwrap().quit().await.unwrap(),
    );
}

#[test]
fn a_421_instead_of_a_greeting_is_a_refusal() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.accept().await;
            control.send_line("421 too many");
            control.ended().await;
        },
        async |client| {
            let error = client.connect().await.err().unwrap();
            let Error::Refused { command: Command::Greeting, code: 421, text } = error else {
                panic!("{error}")
            };
            assert_eq!(text, b"too many");
        },
    );
}

#[test]
fn a_password_is_sent_only_if_the_server_requests_it() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.accept().await;
            control.send_line("220 ready");
            control.answer("USER alice", "230 come in").await;
            control.answer("TYPE I", "200 well").await;
            control.ended().await;
        },
        async |client| drop(client.log_in().await.unwrap()),
    );
}

/// Logs in to a server that gives `answers` to the commands, and checks the error.
fn log_in(answers: &'static [&'static str], expected: fn(&Error) -> bool) {
    run(
        calm(),
        async move |mut server| {
            let mut control = server.accept().await;
            control.send_line("220 ready");
            for answer in answers {
                control.line().await;
                control.send_line(answer);
            }
            let _ = control.stream.finish().await;
        },
        async move |client| {
            let error = client.log_in().await.err().expect("it is refused");
            assert!(expected(&error), "{answers:?}: {error}");
        },
    );
}

#[test]
fn a_login_refused_at_any_step_is_an_error() {
    log_in(&["530 no"], |error| is_refused(error, Verb::User, 530));
    log_in(&["332 which account?"], |error| is_refused(error, Verb::User, 332));
    log_in(&["331 go on", "530 no"], |error| is_refused(error, Verb::Pass, 530));
    log_in(&["331 go on", "332 which account?"], |error| is_refused(error, Verb::Pass, 332));
    log_in(&["331 go on", "230 well", "504 no"], |error| is_refused(error, Verb::Type, 504));
    log_in(&["150 what?"], |error| matches!(error, Error::Unexpected(Command::Verb(Verb::User))));
    log_in(&["631 encoded"], |error| matches!(error, Error::Unexpected(Command::Verb(Verb::User))));
    log_in(&["331 go on", "230 well", "331 and?"], |error| {
        matches!(error, Error::Unexpected(Command::Verb(Verb::Type)))
    });
    log_in(&["HTTP/1.1 400 Bad Request"], |error| {
        matches!(error, Error::Malformed { command: Command::Verb(Verb::User), .. })
    });
}

#[test]
fn an_endless_reply_is_an_error_and_its_memory_is_bounded() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.accept().await;
            control.send_line("220 ready");
            control.line().await;
            let lines = format!("200-{}\r\n", "x".repeat(1_000)).repeat(100);
            while control.stream.tx.drain(0).await.is_ok() {
                control.stream.tx.push(plimsoll_io::Segment::Owned(lines.clone().into_bytes()));
            }
        },
        async |client| {
            let error = client.log_in().await.err().unwrap();
            assert!(matches!(error, Error::Malformed { command: Command::Verb(Verb::User), .. }), "{error}");
        },
    );
}

#[test]
fn a_name_of_any_bytes_is_sent_as_one_argument() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            control.answer("DELE  a b ", "250 gone").await;
            while control.received.len() < 9 {
                let lease = control.stream.rx.recv(plimsoll_io::Want::Head).await.unwrap().unwrap();
                control.received.extend_from_slice(&lease);
            }
            assert_eq!(control.received, b"DELE \xff\xff\r\n", "a byte that is Telnet's is doubled");
            control.received.clear();
            control.send_line("250 gone");
            control.quit().await;
        },
        async |client| {
            let mut session = client.log_in().await.unwrap();
            session.delete(b" a b ").await.unwrap();
            for name in [&b"a\r\nDELE b"[..], b"a\n", b"\r", b"a\0b"] {
                let error = session.delete(name).await.unwrap_err();
                assert!(matches!(error, Error::Request(_)), "{error}");
            }
            session.delete(b"\xff").await.unwrap();
            session.quit().await.unwrap();
        },
    );
}

#[test]
fn an_unsolicited_reply_is_not_taken_for_that_of_the_next_command() {
    for (line, expected) in [("226 what?", None), ("421 I must go", Some(421)), ("22", None)] {
        run(
            calm(),
            async move |mut server| {
                let mut control = server.logged_in().await;
                control.answer("DELE a", &format!("250 gone\r\n{line}")).await;
                let _ = control.stream.finish().await;
            },
            async move |client| {
                let mut session = client.log_in().await.unwrap();
                session.delete(b"a").await.unwrap();
                let error = session.delete(b"b").await.unwrap_err();
                match expected {
                    Some(code) => assert!(is_refused(&error, Verb::Dele, code), "{error}"),
                    None => {
                        assert!(matches!(error, Error::Unexpected(_) | Error::Malformed { .. }), "{error}")
                    }
                }
            },
        );
    }
}

#[test]
fn a_421_between_commands_refuses_the_next_command() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            control.send_line("421 you were idle");
            let _ = control.stream.finish().await;
        },
        async |client| {
            let mut session = client.log_in().await.unwrap();
            client.io.sleep(crate::SECOND).await;
            let error = session.size(b"a").await.unwrap_err();
            assert!(is_refused(&error, Verb::Size, 421), "{error}");
            let error = session.size(b"a").await.unwrap_err();
            assert!(matches!(error, Error::Broken { when: When::Waiting(_), .. }), "{error}");
        },
    );
}

#[test]
fn an_abandoned_command_makes_the_session_unusable() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            control.expect_line("SIZE a").await;
            assert!(control.stream.rx.recv(plimsoll_io::Want::Head).await.is_err(), "it breaks");
        },
        async |client| {
            let mut session = client.log_in().await.unwrap();
            let patience = client.io.deadline();
            patience.after(crate::SECOND);
            assert!(patience.within(session.size(b"a")).await.is_err());
            let error = session.size(b"b").await.unwrap_err();
            assert!(matches!(error, Error::OutOfStep), "{error}");
        },
    );
}

#[test]
fn a_size_reply_is_a_number_or_an_error() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            for answer in ["213 0", "213 18446744073709551615", "213 18446744073709551616", "213 ", "550 no"]
            {
                control.answer("SIZE a", answer).await;
            }
            control.quit().await;
        },
        async |client| {
            let mut session = client.log_in().await.unwrap();
            assert_eq!(session.size(b"a").await.unwrap(), 0);
            assert_eq!(session.size(b"a").await.unwrap(), u64::MAX);
            for _ in 0..2 {
                assert!(matches!(session.size(b"a").await.unwrap_err(), Error::Unexpected(_)));
            }
            assert!(is_refused(&session.size(b"a").await.unwrap_err(), Verb::Size, 550));
            session.quit().await.unwrap();
        },
    );
}
