//! Locks.

use plimsoll_auth::directory::{LockBounds, StoredLock};
use plimsoll_auth::{Account, Directory};

use crate::{NOW, add, each};

const CREATED: i64 = NOW.cast_signed();

pub(crate) const WIDE: LockBounds = LockBounds { holder: 99, others: 99, meeting: 99 };

/// An exclusive deep lock of the owner.
pub(crate) fn lock(id: &str, owner: &Account, path: &[u8]) -> StoredLock {
    StoredLock {
        id: id.to_owned(),
        owner: owner.id,
        holder: owner.id,
        path: path.to_vec(),
        shared: false,
        deep: true,
        about: "<D:href>a \"name\" of \u{e9}</D:href>".to_owned(),
        created: CREATED,
        expires: CREATED + 5,
    }
}

fn flat(id: &str, owner: &Account, path: &[u8]) -> StoredLock {
    StoredLock { deep: false, ..lock(id, owner, path) }
}

fn ids(directory: &mut dyn Directory, owner: &Account) -> String {
    let mut locks = directory.locks(owner.id).unwrap();
    locks.sort_by(|one, other| one.id.cmp(&other.id));
    locks.iter().map(|lock| lock.id.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_lock_is_read_back_as_it_was_added() {
    each(|directory| {
        let (alice, bob) = (add(directory, "alice"), add(directory, "bob"));
        let all = [
            lock("1", &alice, b"a/\xff\x00'%_"),
            StoredLock { holder: bob.id, shared: true, ..flat("2", &alice, b"b") },
            StoredLock { about: String::new(), expires: i64::MAX, ..flat("3", &alice, b"") },
        ];
        for new in &all {
            assert!(directory.add_lock(new, WIDE).unwrap());
        }
        let mut found = directory.locks(alice.id).unwrap();
        found.sort_by(|one, other| one.id.cmp(&other.id));
        assert_eq!(found, all);
        assert_eq!(directory.locks(bob.id).unwrap(), []);
    });
}

/// The paths of two locks, each with whether it is deep, and whether they meet.
type MeetingCase<'a> = (&'a [u8], bool, &'a [u8], bool, bool);

#[test]
fn a_lock_is_refused_where_it_meets_another_unless_both_are_shared() {
    // The bytes of 'é' are cut by no comparison, and a wildcard of SQL is a byte like others.
    let cases: [MeetingCase<'_>; 14] = [
        (b"a", false, b"a", false, true),
        (b"a", false, b"b", false, false),
        (b"a", false, b"A", false, false),
        (b"a", false, b"a/b", false, false),
        (b"a", true, b"a/b", false, true),
        (b"a", true, b"a/b/c", true, true),
        (b"a/b", false, b"a", true, true),
        (b"a/b", false, b"a", false, false),
        (b"a", true, b"ab", true, false),
        (b"a_", true, b"ab/c", true, false),
        (b"", true, b"\xc3\xa9", false, true),
        (b"\xc3", true, b"\xc3\xa9", true, false),
        (b"x\xff", true, b"x\xff/\x00", false, true),
        (b"", false, b"a", true, false),
    ];
    each(|directory| {
        let alice = add(directory, "alice");
        for (path, is_deep, other, is_other_deep, is_conflict) in cases {
            for (is_shared, is_other_shared) in [(false, false), (true, false), (false, true), (true, true)] {
                let one = StoredLock { deep: is_deep, shared: is_shared, ..lock("1", &alice, path) };
                let two =
                    StoredLock { deep: is_other_deep, shared: is_other_shared, ..lock("2", &alice, other) };
                assert!(directory.add_lock(&one, WIDE).unwrap());
                let is_refused = is_conflict && !(is_shared && is_other_shared);
                assert_eq!(directory.add_lock(&two, WIDE).unwrap(), !is_refused, "{one:?} {two:?}");
                let ids_of_both = ["1".to_owned(), "2".to_owned()];
                assert!(directory.end_locks(alice.id, &ids_of_both).unwrap());
                assert_eq!(ids(directory, &alice), "");
            }
        }
    });
}

#[test]
fn locks_in_other_homes_and_locks_that_ended_exclude_nothing() {
    each(|directory| {
        let (alice, bob) = (add(directory, "alice"), add(directory, "bob"));
        assert!(directory.add_lock(&lock("1", &alice, b"a"), WIDE).unwrap());
        assert!(directory.add_lock(&lock("2", &bob, b"a"), WIDE).unwrap());
        let late = StoredLock { created: CREATED + 4, ..lock("3", &alice, b"a/b") };
        assert!(!directory.add_lock(&late, WIDE).unwrap());
        let late = StoredLock { created: CREATED + 5, ..late };
        assert!(directory.add_lock(&late, WIDE).unwrap());
        assert_eq!((ids(directory, &alice).as_str(), ids(directory, &bob).as_str()), ("3", "2"));
    });
}

#[test]
fn an_account_holds_so_many_locks_in_a_home_and_others_hold_so_many_together() {
    let bounds = LockBounds { holder: 2, others: 3, meeting: 99 };
    each(|directory| {
        let [alice, bob, carol] = ["alice", "bob", "carol"].map(|name| add(directory, name));
        let of =
            |holder: &Account, id: &str| StoredLock { holder: holder.id, ..flat(id, &alice, id.as_bytes()) };
        assert!(directory.add_lock(&of(&bob, "1"), bounds).unwrap());
        assert!(directory.add_lock(&of(&bob, "2"), bounds).unwrap());
        assert!(!directory.add_lock(&of(&bob, "3"), bounds).unwrap());
        assert!(directory.add_lock(&of(&carol, "4"), bounds).unwrap());
        assert!(!directory.add_lock(&of(&carol, "5"), bounds).unwrap());
        // Neither the owner nor another home has less because of them.
        assert!(directory.add_lock(&of(&alice, "6"), bounds).unwrap());
        assert!(directory.add_lock(&of(&alice, "7"), bounds).unwrap());
        assert!(!directory.add_lock(&of(&alice, "8"), bounds).unwrap());
        assert!(directory.add_lock(&flat("9", &bob, b"9"), bounds).unwrap());
        assert!(directory.end_locks(alice.id, &["1".to_owned()]).unwrap());
        assert!(directory.add_lock(&of(&carol, "5"), bounds).unwrap());
        let gone = Account { id: 7, ..alice.clone() };
        assert!(!directory.add_lock(&flat("a", &gone, b"a"), WIDE).unwrap());
        assert!(!directory.add_lock(&StoredLock { holder: gone.id, ..flat("b", &bob, b"b") }, WIDE).unwrap());
    });
}

#[test]
fn so_many_shared_locks_meet() {
    let bounds = LockBounds { meeting: 2, ..WIDE };
    each(|directory| {
        let alice = add(directory, "alice");
        let shared = |id: &str, path, deep| StoredLock { shared: true, deep, ..lock(id, &alice, path) };
        assert!(directory.add_lock(&shared("1", b"a", true), bounds).unwrap());
        assert!(directory.add_lock(&shared("2", b"a/b", false), bounds).unwrap());
        assert!(!directory.add_lock(&shared("3", b"a/b", false), bounds).unwrap());
        assert!(!directory.add_lock(&shared("4", b"a", true), bounds).unwrap());
        assert!(!directory.add_lock(&shared("5", b"", true), bounds).unwrap());
        assert!(directory.add_lock(&shared("6", b"", false), bounds).unwrap());
        assert!(directory.add_lock(&shared("7", b"a", false), bounds).unwrap());
        assert_eq!(ids(directory, &alice), "1 2 6 7");
    });
}

#[test]
fn a_lock_is_refreshed_and_ended_in_its_own_home_only() {
    each(|directory| {
        let (alice, bob) = (add(directory, "alice"), add(directory, "bob"));
        directory.add_lock(&lock("1", &alice, b"a"), WIDE).unwrap();
        assert!(!directory.refresh_lock(bob.id, "1", NOW + 9).unwrap());
        assert!(!directory.refresh_lock(alice.id, "2", NOW + 9).unwrap());
        // Twice: a time that is the same is no failure.
        assert!(directory.refresh_lock(alice.id, "1", NOW + 9).unwrap());
        assert!(directory.refresh_lock(alice.id, "1", NOW + 9).unwrap());
        let found = directory.lock(alice.id, "1").unwrap();
        assert_eq!(found, Some(StoredLock { expires: CREATED + 9, ..lock("1", &alice, b"a") }));
        assert_eq!(directory.lock(bob.id, "1").unwrap(), None);
        assert_eq!(directory.lock(alice.id, "2").unwrap(), None);
        directory.sweep(NOW + 8).unwrap();
        assert_eq!(ids(directory, &alice), "1");
        directory.add_lock(&lock("2", &alice, b"b"), WIDE).unwrap();
        directory.add_lock(&lock("3", &alice, b"c"), WIDE).unwrap();
        let both = ["1".to_owned(), "3".to_owned()];
        assert!(!directory.end_locks(bob.id, &both).unwrap());
        assert!(!directory.end_locks(alice.id, &[]).unwrap());
        assert!(directory.end_locks(alice.id, &both).unwrap());
        assert!(!directory.end_locks(alice.id, &both).unwrap());
        assert_eq!(ids(directory, &alice), "2");
    });
}

#[test]
fn locks_end_with_their_accounts_and_their_time_and_not_with_shares() {
    each(|directory| {
        let (alice, bob) = (add(directory, "alice"), add(directory, "bob"));
        assert!(directory.add_lock(&flat("1", &alice, b"a"), WIDE).unwrap());
        assert!(!directory.end_shares(alice.id, b"a").unwrap());
        let of_bob = StoredLock { holder: bob.id, expires: CREATED + 9, ..flat("5", &alice, b"a/x") };
        assert!(directory.add_lock(&of_bob, WIDE).unwrap());
        directory.sweep(NOW + 4).unwrap();
        assert_eq!(ids(directory, &alice), "1 5");
        directory.sweep(NOW + 5).unwrap();
        assert_eq!(ids(directory, &alice), "5");
        assert!(directory.remove_account(bob.id).unwrap());
        assert_eq!(ids(directory, &alice), "");
        assert!(directory.add_lock(&flat("6", &alice, b"a"), WIDE).unwrap());
        assert!(directory.remove_account(alice.id).unwrap());
        assert_eq!(ids(directory, &alice), "");
    });
}

#[test]
fn of_two_servers_that_add_conflicting_locks_at_once_one_succeeds() {
    each(|directory| {
        let alice = add(directory, "alice");
        let Some(mut other) = directory.another() else { return };
        for round in 0..20 {
            let path = format!("f{round}");
            let (one, two) = (format!("{round}a"), format!("{round}b"));
            let (first, second) = (lock(&one, &alice, path.as_bytes()), lock(&two, &alice, path.as_bytes()));
            let both = std::thread::scope(|scope| {
                let theirs = scope.spawn(|| other.add_lock(&second, WIDE).unwrap());
                let ours = directory.add_lock(&first, WIDE).unwrap();
                [ours, theirs.join().unwrap()]
            });
            assert_eq!(both.iter().filter(|is_added| **is_added).count(), 1, "{round}: {both:?}");
        }
    });
}
