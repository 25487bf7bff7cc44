//! A directory in a file: over a restart, and with two processes on it.

use std::path::Path;

use plimsoll_auth::{Auth, Error, Permissions, SqliteDirectory};

use crate::{PASSWORD, SECOND, here, join_as, run_over, secret, settings, token};

fn open(path: &Path) -> SqliteDirectory {
    SqliteDirectory::open(path).unwrap()
}

#[test]
fn a_session_survives_a_restart_and_a_log_out_does_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.sqlite");
    run_over(open(&path), async move |io, auth| {
        join_as(&io, &auth, "alice").await;
        let (kept, ended) = (token(&io, &auth, "alice").await, token(&io, &auth, "alice").await);
        let caller = auth.by_token(&io, ended.as_bytes()).await.unwrap();
        auth.log_out(&io, &caller).await.unwrap();
        drop(auth);
        let auth = Auth::local(Box::new(open(&path)), settings());
        assert_eq!(auth.by_token(&io, kept.as_bytes()).await.unwrap().account.name, "alice");
        assert_eq!(auth.by_token(&io, ended.as_bytes()).await.unwrap_err(), Error::NoSession);
        assert!(auth.log_in(&io, "alice", &secret(PASSWORD), &here()).await.is_ok());
    });
}

#[test]
fn a_change_by_another_process_takes_effect_within_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.sqlite");
    run_over(open(&path), async move |io, server| {
        let operator = Auth::local(Box::new(open(&path)), settings());
        join_as(&io, &server, "alice").await;
        let token = token(&io, &server, "alice").await;
        server.by_token(&io, token.as_bytes()).await.unwrap();
        let may = Permissions { write: false, ..Permissions::default() };
        operator.set_permissions(&io, "alice", may).await.unwrap();
        io.sleep(SECOND).await;
        assert_eq!(server.by_token(&io, token.as_bytes()).await.unwrap().account.permissions, may);
        operator.set_enabled(&io, "alice", false).await.unwrap();
        io.sleep(SECOND).await;
        assert_eq!(server.by_token(&io, token.as_bytes()).await.unwrap_err(), Error::NoSession);
        let shown = server.by_password(&io, b"alice", &secret(PASSWORD), &here()).await;
        assert_eq!(shown.unwrap_err(), Error::WrongCredentials);
    });
}

#[test]
fn under_steady_requests_another_process_is_seen_within_a_second_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.sqlite");
    run_over(open(&path), async move |io, server| {
        let operator = Auth::local(Box::new(open(&path)), settings());
        join_as(&io, &server, "alice").await;
        let token = token(&io, &server, "alice").await;
        for _ in 0..50 {
            server.by_token(&io, token.as_bytes()).await.unwrap();
            io.sleep(SECOND / 50).await;
        }
        operator.set_password(&io, "alice", &secret("battery staple")).await.unwrap();
        let changed = io.now();
        while server.by_token(&io, token.as_bytes()).await.is_ok() {
            assert!(io.now() - changed <= SECOND);
            io.sleep(SECOND / 50).await;
        }
    });
}
