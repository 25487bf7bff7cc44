//! Public links.

use plimsoll_auth::directory::StoredLink;
use plimsoll_auth::{Account, Directory};

use crate::{NOW, add, each};

/// A link with a password and every limit.
pub(crate) fn link(id: &str, owner: &Account, path: &[u8]) -> StoredLink {
    StoredLink {
        id: id.to_owned(),
        owner: owner.id,
        path: path.to_vec(),
        uploads: false,
        created: i64::try_from(NOW).unwrap(),
        expires: Some(i64::try_from(NOW).unwrap() + 5),
        password: "a \"hash\"".to_owned(),
        secret: (0..32).collect(),
        uses_max: Some(2),
        uses: 0,
        bytes_max: Some(i64::MAX),
        bytes: 0,
    }
}

/// A link without an end, a password and limits.
fn plain(id: &str, owner: &Account, path: &[u8]) -> StoredLink {
    let password = String::new();
    StoredLink { expires: None, password, uses_max: None, bytes_max: None, ..link(id, owner, path) }
}

fn ids(directory: &mut dyn Directory, owner: &Account) -> String {
    let mut links = directory.links(owner.id).unwrap();
    links.sort_by(|one, other| one.id.cmp(&other.id));
    links.iter().map(|link| link.id.as_str()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_link_is_read_back_as_it_was_added() {
    each(|directory| {
        let alice = add(directory, "alice");
        let all = [
            link("1", &alice, b"a/\xff\x00'%_"),
            plain("2", &alice, b""),
            StoredLink { uploads: true, uses_max: Some(i64::MAX), ..plain("3", &alice, b"b") },
        ];
        for new in &all {
            assert!(directory.add_link(new, 9).unwrap());
            assert_eq!(directory.link(&new.id).unwrap().as_ref(), Some(new));
        }
        let mut found = directory.links(alice.id).unwrap();
        found.sort_by(|one, other| one.id.cmp(&other.id));
        assert_eq!(found, all);
        assert_eq!(directory.link("4").unwrap(), None);
    });
}

#[test]
fn an_account_has_so_many_links_and_no_more() {
    each(|directory| {
        let (alice, bob) = (add(directory, "alice"), add(directory, "bob"));
        assert!(directory.add_link(&link("1", &alice, b"a"), 2).unwrap());
        assert!(directory.add_link(&plain("2", &alice, b"a"), 2).unwrap());
        assert!(!directory.add_link(&plain("3", &alice, b"b"), 2).unwrap());
        assert!(directory.add_link(&plain("4", &bob, b"b"), 2).unwrap());
        // The first has ended.
        let late = StoredLink { created: i64::try_from(NOW).unwrap() + 5, ..plain("5", &alice, b"b") };
        assert!(directory.add_link(&late, 2).unwrap());
        assert_eq!(ids(directory, &alice), "2 5");
        let gone = Account { id: 7, ..alice };
        assert!(!directory.add_link(&plain("6", &gone, b"b"), 9).unwrap());
    });
}

#[test]
fn uses_are_counted_up_to_the_limits_and_none_after_the_end() {
    each(|directory| {
        let alice = add(directory, "alice");
        directory.add_link(&link("1", &alice, b"a"), 9).unwrap();
        directory.add_link(&plain("2", &alice, b"a"), 9).unwrap();
        let bytes = StoredLink { uses_max: None, bytes_max: Some(10), ..link("3", &alice, b"a") };
        directory.add_link(&bytes, 9).unwrap();
        let mut counted = |id: &str, bytes, now| directory.use_link(id, bytes, now).unwrap();
        assert!(!counted("1", 0, NOW + 5) && counted("1", 0, NOW + 4) && counted("1", 0, NOW));
        assert!(!counted("1", 0, NOW));
        assert!(counted("2", 0, NOW) && counted("2", 7, NOW) && counted("2", 0, NOW + 99));
        assert!(!counted("3", 11, NOW) && counted("3", 4, NOW) && !counted("3", 7, NOW));
        assert!(counted("3", 6, NOW) && counted("3", 0, NOW) && !counted("3", 1, NOW));
        assert!(!counted("4", 0, NOW));
        let mut used = |id: &str| {
            let link = directory.link(id).unwrap().unwrap();
            (link.uses, link.bytes)
        };
        assert_eq!((used("1"), used("2"), used("3")), ((2, 0), (3, 7), (3, 10)));
    });
}

#[test]
fn a_link_is_ended_by_its_owner_only() {
    each(|directory| {
        let (alice, bob) = (add(directory, "alice"), add(directory, "bob"));
        directory.add_link(&link("1", &alice, b"a"), 9).unwrap();
        assert!(!directory.end_link(bob.id, "1").unwrap());
        assert!(!directory.end_link(alice.id, "2").unwrap());
        assert!(directory.end_link(alice.id, "1").unwrap());
        assert!(!directory.end_link(alice.id, "1").unwrap());
        assert_eq!(directory.link("1").unwrap(), None);
        assert_eq!(ids(directory, &alice), "");
    });
}

#[test]
fn links_end_with_their_path_as_shares_do() {
    each(|directory| {
        let (alice, bob) = (add(directory, "alice"), add(directory, "bob"));
        for (id, path) in ["", "a", "a/b", "a/b/c", "a/bc", "a.b", "A/b"].iter().enumerate() {
            directory.add_link(&plain(&id.to_string(), &alice, path.as_bytes()), 99).unwrap();
        }
        directory.add_link(&plain("bob's", &bob, b"a/b"), 9).unwrap();
        assert!(directory.end_shares(alice.id, b"a/b").unwrap());
        assert_eq!(ids(directory, &alice), "0 1 4 5 6");
        assert!(!directory.end_shares(alice.id, b"a/b").unwrap());
        assert!(directory.end_shares(alice.id, b"a").unwrap());
        assert_eq!(ids(directory, &alice), "0 5 6");
        assert!(directory.end_shares(alice.id, b"").unwrap());
        assert_eq!((ids(directory, &alice).as_str(), ids(directory, &bob).as_str()), ("", "bob's"));
    });
}

#[test]
fn links_end_with_their_account_and_with_their_time() {
    each(|directory| {
        let (alice, bob) = (add(directory, "alice"), add(directory, "bob"));
        directory.add_link(&link("1", &alice, b"a"), 9).unwrap();
        directory.add_link(&plain("2", &alice, b"a"), 9).unwrap();
        directory.add_link(&plain("3", &bob, b"a"), 9).unwrap();
        directory.sweep(NOW + 4).unwrap();
        assert_eq!(ids(directory, &alice), "1 2");
        directory.sweep(NOW + 5).unwrap();
        assert_eq!(ids(directory, &alice), "2");
        assert!(directory.remove_account(alice.id).unwrap());
        assert_eq!(directory.link("2").unwrap(), None);
        assert_eq!(ids(directory, &bob), "3");
    });
}
