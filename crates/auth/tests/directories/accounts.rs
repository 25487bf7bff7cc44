//! Accounts.

use std::time::{Duration, SystemTime};

use plimsoll_auth::directory::NewAccount;
use plimsoll_auth::{Change, Permissions, Quota};

use crate::{NOW, add, each, new_account, session, session_id};

#[test]
fn an_account_is_read_back_as_it_was_made() {
    each(|directory| {
        let quota = Quota { bytes: Some(1 << 50), files: Some(0) };
        let permissions = Permissions {
            read: true,
            write: false,
            delete: true,
            share: false,
            operate: true,
            parents: true,
            administer: true,
        };
        let new = NewAccount { quota, permissions, enabled: false, ..new_account("alice") };
        let made = directory.add_account(&new).unwrap().unwrap();
        assert_eq!((made.quota, made.permissions, made.enabled), (quota, permissions, false));
        assert_eq!(made.created, SystemTime::UNIX_EPOCH + Duration::from_millis(NOW));
        let read = directory.account("alice").unwrap().unwrap();
        assert_eq!((&read.account, read.hash.as_str(), read.version), (&made, "hash of alice", 1));
        assert_eq!(directory.account_of(made.id).unwrap().unwrap(), read);
        assert_eq!(directory.account("bob").unwrap(), None);
        assert_eq!(directory.account_of(made.id + 1).unwrap(), None);
    });
}

#[test]
fn a_name_is_given_once() {
    each(|directory| {
        let first = add(directory, "alice");
        assert_eq!(directory.add_account(&new_account("alice")).unwrap(), None);
        assert_eq!(directory.account("alice").unwrap().unwrap().account, first);
    });
}

#[test]
fn accounts_are_listed_by_name() {
    each(|directory| {
        for name in ["carol", "alice", "bob"] {
            add(directory, name);
        }
        let names: Vec<_> = directory.accounts().unwrap().into_iter().map(|it| it.account.name).collect();
        assert_eq!(names, ["alice", "bob", "carol"]);
    });
}

#[test]
fn an_account_has_the_number_that_was_drawn_for_it_alone() {
    each(|directory| {
        let new = new_account("alice");
        assert_eq!(directory.add_account(&new).unwrap().unwrap().id, new.id);
        let twin = NewAccount { id: new.id, ..new_account("bob") };
        let added = directory.add_account(&twin);
        assert!(!matches!(added, Ok(Some(_))), "{added:?}");
        assert_eq!(directory.account("bob").unwrap(), None);
        assert_eq!(directory.account_of(new.id).unwrap().unwrap().account.name, "alice");
        assert!(directory.remove_account(new.id).unwrap());
        assert!(!directory.remove_account(new.id).unwrap());
        assert_ne!(add(directory, "alice").id, new.id);
    });
}

#[test]
fn a_change_changes_what_it_names_and_nothing_else() {
    each(|directory| {
        let (alice, bob) = (add(directory, "alice"), add(directory, "bob"));
        let quota = Quota { bytes: Some(7), files: None };
        let permissions = Permissions { write: false, ..Permissions::default() };
        directory.change(alice.id, Change::Quota(quota)).unwrap().unwrap();
        let changed = directory.change(alice.id, Change::Permissions(permissions)).unwrap().unwrap();
        assert_eq!((changed.quota, changed.permissions, changed.enabled), (quota, permissions, true));
        assert_eq!(directory.account_of(alice.id).unwrap().unwrap().account, changed);
        assert_eq!(directory.account_of(bob.id).unwrap().unwrap().account, bob);
        assert_eq!(directory.change(99, Change::Enabled(false)).unwrap(), None);
    });
}

#[test]
fn a_disabled_account_loses_its_sessions_for_good() {
    each(|directory| {
        let (alice, bob) = (add(directory, "alice"), add(directory, "bob"));
        directory.add_session(&session(1, &alice, 0), 9).unwrap().unwrap();
        directory.add_session(&session(2, &bob, 0), 9).unwrap().unwrap();
        directory.change(alice.id, Change::Enabled(false)).unwrap().unwrap();
        assert_eq!(directory.add_session(&session(3, &alice, 0), 9).unwrap(), None);
        directory.change(alice.id, Change::Enabled(true)).unwrap().unwrap();
        for gone in [1, 3] {
            assert_eq!(directory.session(session_id(gone), NOW).unwrap(), None);
        }
        assert!(directory.session(session_id(2), NOW).unwrap().is_some());
    });
}

#[test]
fn a_password_is_set_in_place_of_the_one_that_was_known() {
    each(|directory| {
        let alice = add(directory, "alice");
        for number in [1, 2] {
            directory.add_session(&session(number, &alice, 0), 9).unwrap().unwrap();
        }
        assert!(directory.set_password(alice.id, 1, "second", Some(session_id(2))).unwrap());
        assert!(!directory.set_password(alice.id, 1, "third", None).unwrap());
        let row = directory.account("alice").unwrap().unwrap();
        assert_eq!((row.hash.as_str(), row.version), ("second", 2));
        assert_eq!(directory.session(session_id(1), NOW).unwrap(), None);
        assert!(directory.session(session_id(2), NOW).unwrap().is_some());
        assert!(directory.set_password(alice.id, 2, "fourth", None).unwrap());
        assert_eq!(directory.session(session_id(2), NOW).unwrap(), None);
    });
}

#[test]
fn a_hash_made_anew_is_stored_only_over_the_same_password() {
    each(|directory| {
        let alice = add(directory, "alice");
        directory.set_hash(alice.id, 1, "anew").unwrap();
        assert_eq!(directory.account("alice").unwrap().unwrap().hash, "anew");
        directory.set_password(alice.id, 1, "second", None).unwrap();
        directory.set_hash(alice.id, 1, "late").unwrap();
        let row = directory.account("alice").unwrap().unwrap();
        assert_eq!((row.hash.as_str(), row.version), ("second", 2));
    });
}
