//! Shares.

use std::time::{Duration, SystemTime};

use plimsoll_auth::directory::{GivenShare, ShareSelection};
use plimsoll_auth::limits::{NAMES_BELOW_MAX, PATH_BYTES_MAX};
use plimsoll_auth::{Account, Change, Directory, Permission, Share};

use crate::{NOW, add, each};

fn given(id: &str, (owner, with): (&Account, &Account), path: &[u8]) -> GivenShare {
    GivenShare {
        id: id.to_owned(),
        owner: owner.id,
        with: with.id,
        path: path.to_vec(),
        permission: Permission::Read,
        created: NOW,
        expires: None,
    }
}

fn ids(shares: &[Share]) -> Vec<&str> {
    shares.iter().map(|share| share.id.as_str()).collect()
}

fn three(directory: &mut dyn Directory) -> [Account; 3] {
    ["alice", "bob", "carol"].map(|name| add(directory, name))
}

#[test]
fn a_share_is_read_back_as_it_was_given() {
    each(|directory| {
        let [alice, bob, _] = three(directory);
        let path = b"a/\xff\x00'%_".as_slice();
        let new = GivenShare {
            permission: Permission::Write,
            expires: Some(NOW + 5),
            ..given("one", (&alice, &bob), path)
        };
        let kept = directory.add_share(&new, 9).unwrap().unwrap();
        let at = |millis| SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
        let expected = Share {
            id: "one".to_owned(),
            owner: "alice".to_owned(),
            path: path.to_vec(),
            with: "bob".to_owned(),
            permission: Permission::Write,
            created: at(NOW),
            expires: Some(at(NOW + 5)),
        };
        assert_eq!(kept, expected);
        assert_eq!(directory.shares(ShareSelection::By(alice.id), NOW).unwrap(), [expected]);
    });
}

#[test]
fn shares_are_found_by_who_gives_and_by_who_has_them() {
    each(|directory| {
        let [alice, bob, carol] = three(directory);
        for new in [
            given("1", (&alice, &bob), b"z"),
            given("2", (&alice, &carol), b"b"),
            given("3", (&alice, &bob), b"b"),
            given("4", (&carol, &bob), b"a"),
        ] {
            directory.add_share(&new, 9).unwrap().unwrap();
        }
        let mut found = |given| {
            let shares = directory.shares(given, NOW).unwrap();
            ids(&shares).join(" ")
        };
        assert_eq!(found(ShareSelection::By(alice.id)), "3 2 1");
        assert_eq!(found(ShareSelection::With(bob.id)), "3 1 4");
        let mut covering = |owner: &Account, with: &Account| {
            let shares = directory.shares_around(owner.id, with.id, b"", NOW).unwrap();
            ids(&shares).join(" ")
        };
        assert_eq!((covering(&alice, &bob).as_str(), covering(&bob, &alice).as_str()), ("3 1", ""));
    });
}

#[test]
fn a_share_that_has_ended_is_not_found() {
    each(|directory| {
        let [alice, bob, _] = three(directory);
        let new = GivenShare { expires: Some(NOW + 5), ..given("1", (&alice, &bob), b"a") };
        directory.add_share(&new, 9).unwrap().unwrap();
        for given in [ShareSelection::By(alice.id), ShareSelection::With(bob.id)] {
            assert_eq!(directory.shares(given, NOW + 4).unwrap().len(), 1);
            assert_eq!(directory.shares(given, NOW + 5).unwrap(), []);
        }
        for path in [b"".as_slice(), b"a", b"a/b"] {
            assert_eq!(directory.shares_around(alice.id, bob.id, path, NOW + 4).unwrap().len(), 1);
            assert_eq!(directory.shares_around(alice.id, bob.id, path, NOW + 5).unwrap(), []);
        }
        directory.sweep(NOW + 5).unwrap();
        assert_eq!(directory.shares(ShareSelection::By(alice.id), NOW).unwrap(), []);
    });
}

#[test]
fn sharing_a_path_again_changes_the_share_and_keeps_its_id() {
    each(|directory| {
        let [alice, bob, carol] = three(directory);
        directory.add_share(&given("1", (&alice, &bob), b"a"), 9).unwrap().unwrap();
        directory.add_share(&given("2", (&alice, &carol), b"a"), 9).unwrap().unwrap();
        let again = GivenShare {
            permission: Permission::Write,
            expires: Some(NOW + 9),
            created: NOW + 1,
            ..given("3", (&alice, &bob), b"a")
        };
        let kept = directory.add_share(&again, 9).unwrap().unwrap();
        assert_eq!((kept.id.as_str(), kept.permission), ("1", Permission::Write));
        assert!(kept.expires.is_some());
        let all = directory.shares(ShareSelection::By(alice.id), NOW).unwrap();
        assert_eq!((ids(&all), &all[0]), (vec!["1", "2"], &kept));
    });
}

#[test]
fn paths_of_maximum_length_that_differ_in_the_last_byte_are_distinct_and_sorted() {
    each(|directory| {
        let [alice, bob, _] = three(directory);
        // Random bytes, which no index can compress.
        let mut hash = blake3::Hasher::new().finalize_xof();
        let mut path = vec![0; PATH_BYTES_MAX];
        hash.fill(&mut path);
        path.iter_mut().filter(|byte| **byte == b'/').for_each(|byte| *byte = b'x');
        path[0] = b'm';
        let ending = |byte: u8| [&path[..PATH_BYTES_MAX - 1], &[byte]].concat();
        // Ordered neither by path nor by id.
        let long = [("5", 5), ("6", 1), ("1", 4), ("2", 3), ("4", 2), ("3", 6)];
        let long = long.map(|(id, byte)| (id, ending(byte)));
        let short = ["z", "a"].map(|path| (path, path.as_bytes().to_vec()));
        for (id, path) in long.into_iter().chain(short) {
            directory.add_share(&given(id, (&alice, &bob), &path), 9).unwrap().unwrap();
        }
        let all = ["a", "6", "4", "2", "1", "5", "3", "z"];
        assert_eq!(ids(&directory.shares(ShareSelection::By(alice.id), NOW).unwrap()), all);
        let mut covering = |path: &[u8]| {
            let shares = directory.shares_around(alice.id, bob.id, path, NOW).unwrap();
            ids(&shares).join(" ")
        };
        assert_eq!(
            (covering(&ending(1)), covering(&ending(6)), covering(b"")),
            ("6".to_owned(), "3".to_owned(), all.join(" "))
        );
        assert!(directory.end_shares(alice.id, &ending(1)).unwrap());
        assert!(!directory.end_shares(alice.id, &ending(1)).unwrap(), "there is no such share any more");
        assert_eq!(
            ids(&directory.shares(ShareSelection::With(bob.id), NOW).unwrap()),
            ["a", "4", "2", "1", "5", "3", "z"]
        );
    });
}

#[test]
fn an_account_gives_so_many_shares_and_no_more() {
    each(|directory| {
        let [alice, bob, carol] = three(directory);
        let soon = GivenShare { expires: Some(NOW + 5), ..given("1", (&alice, &bob), b"1") };
        directory.add_share(&soon, 2).unwrap().unwrap();
        directory.add_share(&given("2", (&alice, &bob), b"2"), 2).unwrap().unwrap();
        assert_eq!(directory.add_share(&given("3", (&alice, &carol), b"1"), 2).unwrap(), None);
        assert!(directory.add_share(&given("4", (&alice, &bob), b"2"), 2).unwrap().is_some());
        assert!(directory.add_share(&given("5", (&bob, &alice), b"2"), 2).unwrap().is_some());
        let late = GivenShare { created: NOW + 5, ..given("6", (&alice, &carol), b"1") };
        assert!(directory.add_share(&late, 2).unwrap().is_some());
        assert_eq!(ids(&directory.shares(ShareSelection::By(alice.id), NOW + 5).unwrap()), ["6", "2"]);
    });
}

#[test]
fn a_share_is_ended_by_its_owner_only() {
    each(|directory| {
        let [alice, bob, _] = three(directory);
        directory.add_share(&given("1", (&alice, &bob), b"a"), 9).unwrap().unwrap();
        assert!(!directory.end_share(bob.id, "1").unwrap());
        assert!(!directory.end_share(alice.id, "2").unwrap());
        assert!(directory.end_share(alice.id, "1").unwrap());
        assert!(!directory.end_share(alice.id, "1").unwrap());
        assert_eq!(directory.shares(ShareSelection::With(bob.id), NOW).unwrap(), []);
    });
}

#[test]
fn the_shares_of_a_path_end_with_those_below_it_and_no_others() {
    each(|directory| {
        let [alice, bob, _] = three(directory);
        let paths: [&[u8]; 8] = [b"", b"a", b"a/b", b"a/b/c", b"a/bc", b"a.b", b"A/b", b"a/\xff"];
        for (id, path) in paths.iter().enumerate() {
            directory.add_share(&given(&id.to_string(), (&alice, &bob), path), 99).unwrap().unwrap();
        }
        directory.add_share(&given("bob's", (&bob, &alice), b"a/b"), 9).unwrap().unwrap();
        let mut left = |end: &[u8]| {
            directory.end_shares(alice.id, end).unwrap();
            let shares = directory.shares(ShareSelection::By(alice.id), NOW).unwrap();
            shares.into_iter().map(|share| share.path).collect::<Vec<_>>()
        };
        let expected: [&[u8]; 6] = [b"", b"A/b", b"a", b"a.b", b"a/bc", b"a/\xff"];
        assert_eq!(left(b"a/b"), expected);
        assert_eq!(left(b"a"), [b"".as_slice(), b"A/b", b"a.b"]);
        assert!(left(b"").is_empty());
        assert_eq!(directory.shares(ShareSelection::By(bob.id), NOW).unwrap().len(), 1);
    });
}

#[test]
fn shares_go_with_either_account_and_are_not_given_to_one_that_is_gone() {
    each(|directory| {
        let [alice, bob, carol] = three(directory);
        directory.add_share(&given("1", (&alice, &bob), b"a"), 9).unwrap().unwrap();
        directory.add_share(&given("2", (&bob, &carol), b"a"), 9).unwrap().unwrap();
        directory.add_share(&given("3", (&alice, &carol), b"a"), 9).unwrap().unwrap();
        directory.remove_account(bob.id).unwrap();
        assert_eq!(ids(&directory.shares(ShareSelection::With(carol.id), NOW).unwrap()), ["3"]);
        assert_eq!(ids(&directory.shares(ShareSelection::By(alice.id), NOW).unwrap()), ["3"]);
        assert_eq!(directory.add_share(&given("4", (&alice, &bob), b"b"), 9).unwrap(), None);
        assert_eq!(directory.add_share(&given("5", (&bob, &alice), b"b"), 9).unwrap(), None);
    });
}

#[test]
fn shares_of_a_disabled_account_are_not_listed_to_their_recipients() {
    each(|directory| {
        let [alice, bob, _] = three(directory);
        directory.add_share(&given("1", (&alice, &bob), b"a"), 9).unwrap().unwrap();
        directory.change(alice.id, Change::Enabled(false)).unwrap().unwrap();
        assert_eq!(directory.shares(ShareSelection::With(bob.id), NOW).unwrap(), []);
        assert_eq!(directory.shares(ShareSelection::By(alice.id), NOW).unwrap().len(), 1);
        directory.change(alice.id, Change::Enabled(true)).unwrap().unwrap();
        assert_eq!(directory.shares(ShareSelection::With(bob.id), NOW).unwrap().len(), 1);
    });
}

#[test]
fn around_a_path_are_the_shares_that_cover_it_or_else_the_names_below_it() {
    each(|directory| {
        let [alice, bob, _] = three(directory);
        let paths = ["a", "a-b", "a/x", "a/x/y", "a0", "b/1", "b/2/3", "b/2/4", "b/2!", "c/\u{ff}/d", "ab/c"];
        for path in paths {
            directory.add_share(&given(path, (&alice, &bob), path.as_bytes()), 99).unwrap().unwrap();
        }
        let mut covering = |path: &str| {
            let shares = directory.shares_around(alice.id, bob.id, path.as_bytes(), NOW).unwrap();
            ids(&shares).join(" ")
        };
        assert_eq!(covering("a"), "a");
        assert_eq!(covering("a/x/y/z"), "a a/x a/x/y");
        assert_eq!(covering("a-b/c"), "a-b");
        // One for each of the names a, a-b, a0, ab, b and c.
        assert_eq!(covering(""), "a a-b a0 ab/c b/1 c/\u{ff}/d");
        assert_eq!(covering("b"), "b/1 b/2! b/2/3");
        assert_eq!(covering("b/2"), "b/2/3 b/2/4");
        assert_eq!(covering("c"), "c/\u{ff}/d");
        for nothing in ["b/3", "b/", "aa", "d", "c/\u{ff}/d0"] {
            assert_eq!(covering(nothing), "", "{nothing}");
        }
    });
}

#[test]
fn however_many_shares_lie_below_a_path_a_bounded_number_is_found_and_no_name_is_hidden_by_another() {
    each(|directory| {
        let [alice, bob, _] = three(directory);
        let inside = (0..NAMES_BELOW_MAX).map(|number| format!("top/first/{number}"));
        let beside = (0..NAMES_BELOW_MAX).map(|number| format!("top/second{number:04}"));
        for path in inside.chain(beside) {
            directory.add_share(&given(&path, (&alice, &bob), path.as_bytes()), 9999).unwrap().unwrap();
        }
        let found = directory.shares_around(alice.id, bob.id, b"top", NOW).unwrap();
        let found = ids(&found);
        assert_eq!((found.len(), found[0], found[1]), (NAMES_BELOW_MAX, "top/first/0", "top/second0000"));
        assert_eq!(directory.shares_around(alice.id, bob.id, b"", NOW).unwrap().len(), 1);
    });
}
