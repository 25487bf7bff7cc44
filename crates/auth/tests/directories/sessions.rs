//! Sessions.

use std::time::{Duration, SystemTime};

use crate::{NOW, add, each, session, session_id};

#[test]
fn a_session_is_known_until_its_end_and_no_longer() {
    each(|directory| {
        let alice = add(directory, "alice");
        assert_eq!(directory.add_session(&session(1, &alice, 0), 9).unwrap(), Some(Vec::new()));
        let end = NOW + 1000;
        assert_eq!(directory.session(session_id(1), end - 1).unwrap(), Some((alice, end)));
        assert_eq!(directory.session(session_id(1), end).unwrap(), None);
        assert_eq!(directory.session(session_id(2), NOW).unwrap(), None);
    });
}

#[test]
fn a_log_out_ends_one_session_once() {
    each(|directory| {
        let alice = add(directory, "alice");
        for number in [1, 2] {
            directory.add_session(&session(number, &alice, 0), 9).unwrap().unwrap();
        }
        assert!(directory.end_session(session_id(1)).unwrap());
        assert!(!directory.end_session(session_id(1)).unwrap());
        assert_eq!(directory.session(session_id(1), NOW).unwrap(), None);
        assert!(directory.session(session_id(2), NOW).unwrap().is_some());
    });
}

#[test]
fn the_oldest_session_ends_when_there_are_too_many() {
    each(|directory| {
        let (alice, bob) = (add(directory, "alice"), add(directory, "bob"));
        directory.add_session(&session(9, &bob, 0), 2).unwrap().unwrap();
        for number in [1, 2] {
            directory.add_session(&session(number, &alice, u64::from(number)), 2).unwrap().unwrap();
        }
        let ended = directory.add_session(&session(3, &alice, 3), 2).unwrap();
        assert_eq!(ended, Some(vec![session_id(1)]));
        let is_kept =
            [1, 2, 3, 9].map(|number| directory.session(session_id(number), NOW).unwrap().is_some());
        assert_eq!(is_kept, [false, true, true, true]);
    });
}

#[test]
fn a_session_begins_only_from_the_password_of_now() {
    each(|directory| {
        let alice = add(directory, "alice");
        directory.set_password(alice.id, 1, "second", None).unwrap();
        assert_eq!(directory.add_session(&session(1, &alice, 0), 9).unwrap(), None);
        assert_eq!(directory.session(session_id(1), NOW).unwrap(), None);
    });
}

#[test]
fn sessions_go_with_their_account() {
    each(|directory| {
        let alice = add(directory, "alice");
        directory.add_session(&session(1, &alice, 0), 9).unwrap().unwrap();
        directory.remove_account(alice.id).unwrap();
        assert_eq!(directory.session(session_id(1), NOW).unwrap(), None);
        assert!(!directory.end_session(session_id(1)).unwrap());
        assert_eq!(directory.add_session(&session(2, &alice, 0), 9).unwrap(), None);
    });
}

#[test]
fn a_sweep_takes_what_has_ended_and_leaves_the_rest() {
    each(|directory| {
        let alice = add(directory, "alice");
        directory.add_session(&session(1, &alice, 0), 9).unwrap().unwrap();
        directory.add_session(&session(2, &alice, 1), 9).unwrap().unwrap();
        directory.sweep(NOW + 1000).unwrap();
        assert!(!directory.end_session(session_id(1)).unwrap());
        assert!(directory.end_session(session_id(2)).unwrap());
    });
}

#[test]
fn a_session_that_outlives_every_calendar_is_kept() {
    each(|directory| {
        let alice = add(directory, "alice");
        let mut new = session(1, &alice, 0);
        new.expires = u64::MAX;
        directory.add_session(&new, 9).unwrap().unwrap();
        let (_, end) = directory.session(session_id(1), NOW).unwrap().unwrap();
        assert!(
            SystemTime::UNIX_EPOCH + Duration::from_millis(NOW * 2)
                < SystemTime::UNIX_EPOCH + Duration::from_millis(end)
        );
    });
}
