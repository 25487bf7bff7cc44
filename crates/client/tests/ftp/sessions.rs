//! From the greeting to the goodbye.

use plimsoll_client::ftp::{Asked, Error, When};
use plimsoll_wire::ftp::command::Verb;

use crate::{calm, is_refused, run};

#[test]
fn a_session_logs_in_asks_for_files_as_they_are_and_says_goodbye() {
    run(
        calm(),
        async |mut server| server.logged_in().await.quit().await,
        async |client| client.log_in().await.unwrap().quit().await.unwrap(),
    );
}

#[test]
fn a_session_that_is_dropped_between_commands_ends_cleanly() {
    run(
        calm(),
        async |mut server| server.logged_in().await.ended().await,
        async |client| drop(client.log_in().await.unwrap()),
    );
}

#[test]
fn a_server_that_is_not_ready_yet_is_waited_for() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.accept().await;
            control.say("120-soon\r\n 220 is not said yet\r\n120 very soon");
            control.io.sleep(crate::SECOND).await;
            control.say("220-now\r\n220-we\r\nare\r\n220 ready");
            control.quit().await;
        },
        async |client| client.connect().await.unwrap().quit().await.unwrap(),
    );
}

#[test]
fn a_server_that_is_full_says_so_in_place_of_a_greeting() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.accept().await;
            control.say("421 too many");
            control.ended().await;
        },
        async |client| {
            let error = client.connect().await.err().unwrap();
            let Error::Refused { asked: Asked::Greeting, code: 421, text } = error else { panic!("{error}") };
            assert_eq!(text, b"too many");
        },
    );
}

#[test]
fn a_password_is_sent_only_to_who_asks_for_it() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.accept().await;
            control.say("220 ready");
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
            control.say("220 ready");
            for answer in answers {
                control.line().await;
                control.say(answer);
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
fn a_log_in_that_is_refused_is_an_error_wherever_that_is() {
    log_in(&["530 no"], |error| is_refused(error, Verb::User, 530));
    log_in(&["332 which account?"], |error| is_refused(error, Verb::User, 332));
    log_in(&["331 go on", "530 no"], |error| is_refused(error, Verb::Pass, 530));
    log_in(&["331 go on", "332 which account?"], |error| is_refused(error, Verb::Pass, 332));
    log_in(&["331 go on", "230 well", "504 no"], |error| is_refused(error, Verb::Type, 504));
    log_in(&["150 what?"], |error| matches!(error, Error::Unasked(Asked::Verb(Verb::User))));
    log_in(&["631 encoded"], |error| matches!(error, Error::Unasked(Asked::Verb(Verb::User))));
    log_in(&["331 go on", "230 well", "331 and?"], |error| {
        matches!(error, Error::Unasked(Asked::Verb(Verb::Type)))
    });
    log_in(&["HTTP/1.1 400 Bad Request"], |error| {
        matches!(error, Error::Malformed { asked: Asked::Verb(Verb::User), .. })
    });
}

#[test]
fn an_answer_without_end_is_an_error_and_takes_no_memory_without_end() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.accept().await;
            control.say("220 ready");
            control.line().await;
            let lines = format!("200-{}\r\n", "x".repeat(1_000)).repeat(100);
            while control.stream.tx.drain(0).await.is_ok() {
                control.stream.tx.push(plimsoll_io::Segment::Owned(lines.clone().into_bytes()));
            }
        },
        async |client| {
            let error = client.log_in().await.err().unwrap();
            assert!(matches!(error, Error::Malformed { asked: Asked::Verb(Verb::User), .. }), "{error}");
        },
    );
}

#[test]
fn a_name_is_one_argument_whatever_bytes_it_has() {
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
            control.say("250 gone");
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
fn what_a_server_says_unasked_is_not_taken_for_an_answer() {
    for (said, expected) in [("226 what?", None), ("421 I must go", Some(421)), ("22", None)] {
        run(
            calm(),
            async move |mut server| {
                let mut control = server.logged_in().await;
                control.answer("DELE a", &format!("250 gone\r\n{said}")).await;
                let _ = control.stream.finish().await;
            },
            async move |client| {
                let mut session = client.log_in().await.unwrap();
                session.delete(b"a").await.unwrap();
                let error = session.delete(b"b").await.unwrap_err();
                match expected {
                    Some(code) => assert!(is_refused(&error, Verb::Dele, code), "{error}"),
                    None => assert!(matches!(error, Error::Unasked(_) | Error::Malformed { .. }), "{error}"),
                }
            },
        );
    }
}

#[test]
fn a_server_that_ends_while_nothing_is_asked_has_refused_what_comes_next() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            control.say("421 you were idle");
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
fn a_command_that_was_given_up_leaves_a_session_that_goes_no_further() {
    run(
        calm(),
        async |mut server| {
            let mut control = server.logged_in().await;
            control.hear("SIZE a").await;
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
fn the_length_of_a_file_is_a_number_or_an_error() {
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
                assert!(matches!(session.size(b"a").await.unwrap_err(), Error::Unasked(_)));
            }
            assert!(is_refused(&session.size(b"a").await.unwrap_err(), Verb::Size, 550));
            session.quit().await.unwrap();
        },
    );
}
