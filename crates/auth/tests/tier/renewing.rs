//! Identities that a connection verifies once: they cost nothing while they are valid, and end when they
//! must.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plimsoll_auth::{
    Argon2Settings, Auth, Error, MemoryDirectory, Permissions, Quota, Settings, SqliteDirectory,
};
use plimsoll_io::Io;

use crate::remembering::Counting;
use crate::{MINUTE, PASSWORD, SECOND, here, join_as, run, run_over, secret, settings, token};

fn open(path: &Path) -> SqliteDirectory {
    SqliteDirectory::open(path).unwrap()
}

/// Runs `test` over a directory in memory and one in a file.
fn each(test: impl AsyncFn(Io, Auth) + Copy + 'static) {
    run_over(MemoryDirectory::new(), test);
    let folder = tempfile::tempdir().unwrap();
    run_over(open(&folder.path().join("d.sqlite")), test);
}

#[test]
fn a_renewed_identity_is_the_account_as_it_is_now() {
    each(async |io, auth| {
        let shown = join_as(&io, &auth, "alice").await;
        let by_token = auth.by_token(&io, token(&io, &auth, "alice").await.as_bytes()).await.unwrap();
        let may = Permissions { write: false, ..Permissions::default() };
        auth.set_permissions(&io, "alice", may).await.unwrap();
        let quota = Quota { bytes: Some(1), files: Some(2) };
        auth.set_quota(&io, "alice", quota).await.unwrap();
        for caller in [shown, by_token] {
            let renewed = auth.renew(&io, &caller).await.unwrap();
            assert_eq!((renewed.account.permissions, renewed.account.quota), (may, quota));
            assert_eq!(renewed.session(), caller.session());
        }
    });
}

#[test]
fn a_renewal_costs_no_hash_and_no_lookup_until_the_account_changes_and_then_one() {
    let counting = Counting::default();
    let others = Arc::clone(&counting.others);
    run_over(counting, async move |io, auth| {
        let mut caller = join_as(&io, &auth, "alice").await;
        let (before, hashes) = (others.load(Ordering::SeqCst), auth.hashes());
        for _ in 0..100 {
            caller = auth.renew(&io, &caller).await.unwrap();
            io.sleep(SECOND).await;
        }
        assert_eq!(others.load(Ordering::SeqCst), before);
        auth.set_permissions(&io, "alice", Permissions::default()).await.unwrap();
        let before = others.load(Ordering::SeqCst);
        for _ in 0..100 {
            caller = auth.renew(&io, &caller).await.unwrap();
        }
        assert_eq!(others.load(Ordering::SeqCst), before + 1);
        // After five minutes the identity is checked again, and the result is cached again.
        for _ in 0..90 {
            caller = auth.renew(&io, &caller).await.unwrap();
            io.sleep(10 * SECOND).await;
        }
        let asked = others.load(Ordering::SeqCst) - before;
        assert!((3..=4).contains(&asked), "{asked}");
        assert_eq!(auth.hashes(), hashes);
    });
}

#[test]
fn a_renewal_fails_for_a_disabled_removed_or_recreated_account() {
    each(async |io, auth| {
        for end in ["disabled", "removed", "new"] {
            let caller = join_as(&io, &auth, "alice").await;
            auth.renew(&io, &caller).await.unwrap();
            if end == "disabled" {
                auth.set_enabled(&io, "alice", false).await.unwrap();
            } else {
                auth.remove(&io, "alice").await.unwrap();
            }
            if end == "new" {
                join_as(&io, &auth, "alice").await;
            }
            assert_eq!(auth.renew(&io, &caller).await.unwrap_err(), Error::NoSession, "{end}");
            if end == "disabled" {
                auth.set_enabled(&io, "alice", true).await.unwrap();
                assert!(auth.renew(&io, &caller).await.is_ok(), "the password is the same");
            }
            if end != "removed" {
                auth.remove(&io, "alice").await.unwrap();
            }
        }
    });
}

#[test]
fn a_password_change_ends_renewals_also_if_the_password_reads_the_same() {
    each(async |io, auth| {
        let caller = join_as(&io, &auth, "alice").await;
        auth.set_password(&io, "alice", &secret(PASSWORD)).await.unwrap();
        assert_eq!(auth.renew(&io, &caller).await.unwrap_err(), Error::NoSession);

        let by_password = auth.by_password(&io, b"alice", &secret(PASSWORD), &here()).await.unwrap();
        let mine = auth.by_token(&io, token(&io, &auth, "alice").await.as_bytes()).await.unwrap();
        let other = auth.by_token(&io, token(&io, &auth, "alice").await.as_bytes()).await.unwrap();
        auth.renew(&io, &by_password).await.unwrap();
        let (old, new) = (secret(PASSWORD), secret("battery staple"));
        auth.change_password(&io, &mine, &old, &new, &here()).await.unwrap();
        for ended in [by_password, other] {
            assert_eq!(auth.renew(&io, &ended).await.unwrap_err(), Error::NoSession);
        }
        assert!(auth.renew(&io, &mine).await.is_ok());
    });
}

#[test]
fn a_login_verifies_the_password_for_later_requests_with_it() {
    each(async |io, auth| {
        auth.sign_up(&io, "alice", &secret(PASSWORD), &here()).await.unwrap();
        token(&io, &auth, "alice").await;
        let hashes = auth.hashes();
        let caller = auth.by_password(&io, b"alice", &secret(PASSWORD), &here()).await.unwrap();
        auth.set_quota(&io, "alice", Quota::default()).await.unwrap();
        assert!(auth.renew(&io, &caller).await.is_ok());
        assert_eq!(auth.hashes(), hashes);
    });
}

#[test]
fn a_hash_made_anew_of_the_same_password_ends_nothing() {
    run(&settings(), async |io, auth| {
        let caller = join_as(&io, &auth, "alice").await;
        let argon2 = Argon2Settings { memory_kib: 16, passes: 1, lanes: 1 };
        auth.set(Settings { argon2, ..settings() });
        io.sleep(6 * MINUTE).await;
        auth.by_password(&io, b"alice", &secret(PASSWORD), &here()).await.unwrap();
        let now = auth.export(&io).await.unwrap().remove(0).password;
        assert!(now.contains("m=16"), "{now}");
        assert!(auth.renew(&io, &caller).await.is_ok());
    });
}

#[test]
fn a_session_that_ended_is_not_renewed() {
    each(async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let (ended, late) = (token(&io, &auth, "alice").await, token(&io, &auth, "alice").await);
        let ended = auth.by_token(&io, ended.as_bytes()).await.unwrap();
        let late = auth.by_token(&io, late.as_bytes()).await.unwrap();
        auth.log_out(&io, &ended).await.unwrap();
        assert_eq!(auth.renew(&io, &ended).await.unwrap_err(), Error::NoSession);
        io.sleep(9 * MINUTE).await;
        let late = auth.renew(&io, &late).await.unwrap();
        io.sleep(MINUTE + SECOND).await;
        assert_eq!(auth.renew(&io, &late).await.unwrap_err(), Error::NoSession);
    });
}

#[test]
fn a_renewal_sees_another_processs_change_within_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.sqlite");
    run_over(open(&path), async move |io, server| {
        let operator = Auth::local(Box::new(open(&path)), settings());
        let caller = join_as(&io, &server, "alice").await;
        let may = Permissions { delete: false, ..Permissions::default() };
        operator.set_permissions(&io, "alice", may).await.unwrap();
        io.sleep(SECOND).await;
        let caller = server.renew(&io, &caller).await.unwrap();
        assert_eq!(caller.account.permissions, may);
        operator.set_password(&io, "alice", &secret("battery staple")).await.unwrap();
        let changed = io.now();
        while server.renew(&io, &caller).await.is_ok() {
            assert!(io.now() - changed <= SECOND);
            io.sleep(SECOND / 50).await;
        }
        assert_eq!(server.renew(&io, &caller).await.unwrap_err(), Error::NoSession);
    });
}
