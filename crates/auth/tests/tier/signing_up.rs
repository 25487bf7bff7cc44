//! Signing up.

use plimsoll_auth::{Error, Permissions, Quota, Settings, SignUp};

use crate::{PASSWORD, all, here, run, secret, settings};

#[test]
fn an_account_has_the_folded_name_and_the_quota_of_new_ones() {
    let quota = Quota { bytes: Some(5), files: None };
    run(&Settings { quota, ..settings() }, async |io, auth| {
        let quota = Quota { bytes: Some(5), files: None };
        let account = auth.sign_up(&io, "Alice", &secret(PASSWORD), &here()).await.unwrap();
        assert_eq!((account.name.as_str(), account.quota, account.enabled), ("alice", quota, true));
        assert_eq!(account.permissions, Permissions::default());
        let taken = auth.sign_up(&io, "aLICE", &secret(PASSWORD), &here()).await;
        assert_eq!(taken, Err(Error::NameTaken));
    });
}

#[test]
fn of_many_that_want_one_name_at_once_one_gets_it() {
    run(&settings(), async |io, auth| {
        let password = secret(PASSWORD);
        let peer = here();
        let wish = || auth.sign_up(&io, "alice", &password, &peer);
        let answers = all((0..20).map(|_| wish())).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
        assert_eq!(answers.iter().filter(|answer| **answer == Err(Error::NameTaken)).count(), 19);
    });
}

#[test]
fn a_bad_name_or_password_is_refused_with_the_rule_and_without_a_hash() {
    run(&settings(), async |io, auth| {
        let name = auth.sign_up(&io, "a/b", &secret(PASSWORD), &here()).await.unwrap_err();
        assert!(matches!(&name, Error::BadName(rule) if rule.contains("64")), "{name}");
        for bad in ["seven b", &"x".repeat(1025)] {
            let password = auth.sign_up(&io, "alice", &secret(bad), &here()).await.unwrap_err();
            assert!(
                matches!(&password, Error::BadPassword(rule) if rule.contains("8 to 1024")),
                "{password}"
            );
        }
        assert_eq!(auth.hashes(), 0);
    });
}

#[test]
fn a_closed_sign_up_does_not_reveal_which_names_are_taken() {
    run(&settings(), async |io, auth| {
        auth.sign_up(&io, "alice", &secret(PASSWORD), &here()).await.unwrap();
        auth.set(Settings { sign_up: SignUp::Closed, ..settings() });
        for name in ["alice", "bob", "a/b"] {
            let closed = auth.sign_up(&io, name, &secret(PASSWORD), &here()).await;
            assert_eq!(closed, Err(Error::SignUpClosed));
        }
    });
}
