//! Logging in and out, and changing a password.

use plimsoll_auth::limits::SESSIONS_PER_ACCOUNT_MAX;
use plimsoll_auth::{Argon2Settings, Error, MemoryDirectory, Settings};

use crate::{
    MINUTE, PASSWORD, SECOND, begin_and_drop, here, join_as, run, run_over, secret, settings, token,
};

#[test]
fn a_token_shows_its_account_until_it_expires_and_use_makes_it_no_longer() {
    run(&settings(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let begun = auth.log_in(&io, "Alice", &secret(PASSWORD), &here()).await.unwrap();
        assert!(begun.token.starts_with("pls_") && begun.token.len() == 36);
        let left = begun.expires.duration_since(io.wall()).unwrap();
        assert!(left <= 10 * MINUTE && left > 10 * MINUTE - SECOND, "{left:?}");
        for _ in 0..9 {
            let caller = auth.by_token(&io, begun.token.as_bytes()).await.unwrap();
            assert_eq!(*caller.account, begun.account);
            io.sleep(MINUTE).await;
        }
        io.sleep(begun.expires.duration_since(io.wall()).unwrap()).await;
        assert_eq!(auth.by_token(&io, begun.token.as_bytes()).await.unwrap_err(), Error::NoSession);
    });
}

#[test]
fn a_forged_or_malformed_token_authenticates_no_account() {
    run(&settings(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let good = token(&io, &auth, "alice").await;
        let forged = format!("pls_{}", "0".repeat(32));
        for bad in ["", "alice", &good[..35], &forged, &format!("{good} ")] {
            assert_eq!(auth.by_token(&io, bad.as_bytes()).await.unwrap_err(), Error::NoSession, "{bad}");
        }
    });
}

#[test]
fn unknown_name_wrong_password_and_disabled_account_get_one_answer_and_cost_one_hash() {
    run(&settings(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        join_as(&io, &auth, "bob").await;
        auth.set_enabled(&io, "bob", false).await.unwrap();
        for (name, password) in [("carol", PASSWORD), ("alice", "wrong horse"), ("bob", PASSWORD)] {
            let before = auth.hashes();
            let refused = auth.log_in(&io, name, &secret(password), &here()).await;
            assert_eq!(refused, Err(Error::WrongCredentials), "{name}");
            let refused = auth.by_password(&io, name.as_bytes(), &secret(password), &here()).await;
            assert_eq!(refused.unwrap_err(), Error::WrongCredentials, "{name}");
            assert_eq!(auth.hashes() - before, 2, "{name}");
        }
    });
}

#[test]
fn a_log_out_ends_that_session_at_once_and_no_other() {
    run(&settings(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let (one, other) = (token(&io, &auth, "alice").await, token(&io, &auth, "alice").await);
        let caller = auth.by_token(&io, one.as_bytes()).await.unwrap();
        auth.by_token(&io, other.as_bytes()).await.unwrap();
        auth.log_out(&io, &caller).await.unwrap();
        assert_eq!(auth.by_token(&io, one.as_bytes()).await.unwrap_err(), Error::NoSession);
        assert!(auth.by_token(&io, other.as_bytes()).await.is_ok());
        assert_eq!(auth.log_out(&io, &caller).await, Err(Error::NoSession));
    });
}

#[test]
fn a_log_out_whose_connection_breaks_is_done_all_the_same() {
    run(&settings(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let token = token(&io, &auth, "alice").await;
        let caller = auth.by_token(&io, token.as_bytes()).await.unwrap();
        begin_and_drop(auth.log_out(&io, &caller));
        io.sleep(SECOND / 10).await;
        assert_eq!(auth.by_token(&io, token.as_bytes()).await.unwrap_err(), Error::NoSession);
    });
}

#[test]
fn a_caller_authenticated_by_password_has_no_session_to_end() {
    run(&settings(), async |io, auth| {
        let caller = join_as(&io, &auth, "alice").await;
        assert_eq!(auth.log_out(&io, &caller).await, Err(Error::NoSession));
    });
}

#[test]
fn a_new_password_ends_the_old_one_and_all_sessions_but_the_one_that_set_it() {
    run(&settings(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let (mine, other) = (token(&io, &auth, "alice").await, token(&io, &auth, "alice").await);
        let caller = auth.by_token(&io, mine.as_bytes()).await.unwrap();
        auth.by_token(&io, other.as_bytes()).await.unwrap();
        let (old, new) = (secret(PASSWORD), secret("battery staple"));
        auth.change_password(&io, &caller, &old, &new, &here()).await.unwrap();
        assert!(auth.by_token(&io, mine.as_bytes()).await.is_ok());
        assert_eq!(auth.by_token(&io, other.as_bytes()).await.unwrap_err(), Error::NoSession);
        let shown = auth.by_password(&io, b"alice", &old, &here()).await;
        assert_eq!(shown.unwrap_err(), Error::WrongCredentials);
        assert!(auth.by_password(&io, b"alice", &new, &here()).await.is_ok());
    });
}

#[test]
fn a_password_change_needs_the_old_password_and_a_good_new_one() {
    run(&settings(), async |io, auth| {
        let caller = join_as(&io, &auth, "alice").await;
        let set = async |old: &str, new: &str| {
            auth.change_password(&io, &caller, &secret(old), &secret(new), &here()).await.unwrap_err()
        };
        assert_eq!(set("wrong horse", "battery staple").await, Error::WrongCredentials);
        assert!(matches!(set(PASSWORD, "short").await, Error::BadPassword(_)));
        assert!(auth.by_password(&io, b"alice", &secret(PASSWORD), &here()).await.is_ok());
    });
}

#[test]
fn a_hash_of_another_cost_is_made_anew_by_one_good_log_in() {
    run(&settings(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let argon2 = Argon2Settings { memory_kib: 16, passes: 2, lanes: 1 };
        auth.set(Settings { argon2, ..settings() });
        let stored = async || auth.export(&io).await.unwrap().remove(0).password;
        assert!(stored().await.contains("m=8,t=1,p=1"));
        let wrong = auth.log_in(&io, "alice", &secret("wrong horse"), &here()).await;
        assert_eq!(wrong, Err(Error::WrongCredentials));
        assert!(stored().await.contains("m=8,t=1,p=1"));
        let before = token(&io, &auth, "alice").await;
        let anew = stored().await;
        assert!(anew.contains("m=16,t=2,p=1"), "{anew}");
        token(&io, &auth, "alice").await;
        assert_eq!(stored().await, anew);
        assert!(auth.by_token(&io, before.as_bytes()).await.is_ok());
    });
}

#[test]
fn one_session_too_many_ends_the_oldest_at_once() {
    run_over(MemoryDirectory::new(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let oldest = token(&io, &auth, "alice").await;
        for _ in 1..SESSIONS_PER_ACCOUNT_MAX {
            token(&io, &auth, "alice").await;
        }
        assert!(auth.by_token(&io, oldest.as_bytes()).await.is_ok());
        let newest = token(&io, &auth, "alice").await;
        assert_eq!(auth.by_token(&io, oldest.as_bytes()).await.unwrap_err(), Error::NoSession);
        assert!(auth.by_token(&io, newest.as_bytes()).await.is_ok());
    });
}

#[test]
fn a_session_without_end_is_reported_with_an_end_that_a_calendar_has() {
    let session_time = std::time::Duration::MAX;
    run(&Settings { session_time, ..settings() }, async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let token = token(&io, &auth, "alice").await;
        io.sleep(30 * MINUTE).await;
        assert!(auth.by_token(&io, token.as_bytes()).await.is_ok());
    });
}
