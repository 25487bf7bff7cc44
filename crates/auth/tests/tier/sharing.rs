//! Shares.

use std::time::Duration;

use plimsoll_auth::limits::SHARE_PARTS_MAX;
use plimsoll_auth::{Auth, Error, Grant, NewShare, Permission, Permissions};
use plimsoll_io::Io;

use crate::{MINUTE, SECOND, join_as, run, settings};

fn read(path: &str, with: &str) -> NewShare {
    NewShare {
        path: path.as_bytes().to_vec(),
        with: with.to_owned(),
        permission: Permission::Read,
        expires: None,
    }
}

fn paths(grant: &Grant) -> Vec<String> {
    grant.shares.iter().map(|share| String::from_utf8(share.path.clone()).unwrap()).collect()
}

#[test]
fn a_share_of_a_folder_grants_what_is_in_it_and_shows_the_way_to_it() {
    run(&settings(), async |io, auth| {
        let (alice, bob) = (join_as(&io, &auth, "alice").await, join_as(&io, &auth, "bob").await);
        auth.share(&io, &alice, read("/docs/2026/", "Bob")).await.unwrap();
        let grant = auth.granted(&io, &bob, "Alice", b"docs/2026/may/a.txt").await.unwrap();
        assert_eq!((grant.owner.id, paths(&grant)), (alice.account.id, vec!["docs/2026".to_owned()]));
        assert_eq!(grant.permission_at(b"docs/2026/may"), Some(Permission::Read));
        for above in ["", "docs", "/docs/"] {
            let grant = auth.granted(&io, &bob, "alice", above.as_bytes()).await.unwrap();
            assert_eq!(grant.permission_at(above.trim_matches('/').as_bytes()), None, "{above}");
        }
        for beside in ["docs/2025", "docs/20260", "doc", "docs/..", "docs//2026"] {
            let refused = auth.granted(&io, &bob, "alice", beside.as_bytes()).await;
            assert_eq!(refused.unwrap_err(), Error::NotFound, "{beside}");
        }
    });
}

#[test]
fn a_whole_home_can_be_shared_and_the_larger_permission_counts() {
    run(&settings(), async |io, auth| {
        let (alice, bob) = (join_as(&io, &auth, "alice").await, join_as(&io, &auth, "bob").await);
        auth.share(&io, &alice, read("/", "bob")).await.unwrap();
        let write = NewShare { permission: Permission::Write, ..read("in", "bob") };
        auth.share(&io, &alice, write).await.unwrap();
        let grant = auth.granted(&io, &bob, "alice", b"in/a").await.unwrap();
        assert_eq!(grant.permission_at(b"in/a"), Some(Permission::Write));
        assert_eq!(grant.permission_at(b"inn"), Some(Permission::Read));
    });
}

#[test]
fn the_deepest_share_that_is_given_covers_what_is_however_deep_below() {
    run(&settings(), async |io, auth| {
        let (alice, bob) = (join_as(&io, &auth, "alice").await, join_as(&io, &auth, "bob").await);
        let deepest = ["a"; SHARE_PARTS_MAX].join("/");
        auth.share(&io, &alice, read(&deepest, "bob")).await.unwrap();
        let below = format!("{deepest}{}", "/a".repeat(1000));
        let grant = auth.granted(&io, &bob, "alice", below.as_bytes()).await.unwrap();
        assert_eq!(grant.permission_at(below.as_bytes()), Some(Permission::Read));
    });
}

#[test]
fn other_accounts_are_granted_nothing_and_unknown_owners_look_the_same() {
    run(&settings(), async |io, auth| {
        let (alice, _) = (join_as(&io, &auth, "alice").await, join_as(&io, &auth, "bob").await);
        let carol = join_as(&io, &auth, "carol").await;
        auth.share(&io, &alice, read("a", "bob")).await.unwrap();
        for owner in ["alice", "bob", "carol", "nobody", "a/b"] {
            assert_eq!(auth.granted(&io, &carol, owner, b"a").await.unwrap_err(), Error::NotFound);
        }
    });
}

#[test]
fn lists_show_what_is_given_and_what_is_had() {
    run(&settings(), async |io, auth| {
        let (alice, bob) = (join_as(&io, &auth, "alice").await, join_as(&io, &auth, "bob").await);
        let share = auth.share(&io, &alice, read("a", "bob")).await.unwrap();
        assert_eq!((share.owner.as_str(), share.with.as_str()), ("alice", "bob"));
        assert_eq!(auth.shares_by(&io, &alice).await.unwrap().as_slice(), std::slice::from_ref(&share));
        assert_eq!(auth.shared_with(&io, &bob).await.unwrap(), [share]);
        assert_eq!(auth.shares_by(&io, &bob).await.unwrap(), []);
        assert_eq!(auth.shared_with(&io, &alice).await.unwrap(), []);
    });
}

#[test]
fn a_share_ends_at_its_time() {
    run(&settings(), async |io, auth| {
        let (alice, bob) = (join_as(&io, &auth, "alice").await, join_as(&io, &auth, "bob").await);
        let end = io.wall() + MINUTE;
        auth.share(&io, &alice, NewShare { expires: Some(end), ..read("a", "bob") }).await.unwrap();
        io.sleep(end.duration_since(io.wall()).unwrap() - SECOND).await;
        assert!(auth.granted(&io, &bob, "alice", b"a").await.is_ok());
        io.sleep(SECOND).await;
        assert_eq!(auth.granted(&io, &bob, "alice", b"a").await.unwrap_err(), Error::NotFound);
        assert_eq!(auth.shared_with(&io, &bob).await.unwrap(), []);
        assert_eq!(auth.shares_by(&io, &alice).await.unwrap(), []);
    });
}

#[test]
fn only_the_owner_of_a_share_can_end_it() {
    run(&settings(), async |io, auth| {
        let (alice, bob) = (join_as(&io, &auth, "alice").await, join_as(&io, &auth, "bob").await);
        let share = auth.share(&io, &alice, read("a", "bob")).await.unwrap();
        assert_eq!(auth.unshare(&io, &bob, &share.id).await, Err(Error::NotFound));
        auth.unshare(&io, &alice, &share.id).await.unwrap();
        assert_eq!(auth.unshare(&io, &alice, &share.id).await, Err(Error::NotFound));
        assert_eq!(auth.granted(&io, &bob, "alice", b"a").await.unwrap_err(), Error::NotFound);
    });
}

#[test]
fn a_removed_path_takes_its_shares_along() {
    run(&settings(), async |io, auth| {
        let (alice, bob) = (join_as(&io, &auth, "alice").await, join_as(&io, &auth, "bob").await);
        for path in ["a", "a/b", "ab"] {
            auth.share(&io, &alice, read(path, "bob")).await.unwrap();
        }
        auth.end_shares(&io, alice.account.id, b"/a/").await.unwrap();
        let left = auth.shared_with(&io, &bob).await.unwrap();
        assert_eq!(left.iter().map(|share| share.path.as_slice()).collect::<Vec<_>>(), [b"ab"]);
    });
}

async fn refusal(io: &Io, auth: &Auth, new: NewShare) -> Error {
    let alice =
        auth.by_password(io, b"alice", &crate::secret(crate::PASSWORD), &crate::here()).await.unwrap();
    auth.share(io, &alice, new).await.unwrap_err()
}

#[test]
fn an_impossible_share_is_refused_with_the_reason() {
    run(&settings(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        join_as(&io, &auth, "bob").await;
        assert_eq!(refusal(&io, &auth, read("a", "nobody")).await, Error::NotFound);
        assert_eq!(refusal(&io, &auth, read("a", "no/name")).await, Error::NotFound);
        let past = io.wall() - Duration::from_millis(1);
        for (new, reason) in [
            (read("a", "ALICE"), "own files"),
            (read("a/../b", "bob"), "path"),
            (read(&["a"; SHARE_PARTS_MAX + 1].join("/"), "bob"), "too deep"),
            (NewShare { expires: Some(past), ..read("a", "bob") }, "time that is to come"),
        ] {
            let refused = refusal(&io, &auth, new).await;
            assert!(matches!(&refused, Error::BadShare(why) if why.contains(reason)), "{refused}");
        }
        auth.set_permissions(&io, "alice", Permissions { share: false, ..Permissions::default() })
            .await
            .unwrap();
        assert_eq!(refusal(&io, &auth, read("a", "bob")).await, Error::NotAllowed);
    });
}

#[test]
fn the_shares_of_a_disabled_owner_rest_until_it_is_enabled() {
    run(&settings(), async |io, auth| {
        let (alice, bob) = (join_as(&io, &auth, "alice").await, join_as(&io, &auth, "bob").await);
        auth.share(&io, &alice, read("a", "bob")).await.unwrap();
        auth.set_enabled(&io, "alice", false).await.unwrap();
        assert_eq!(auth.granted(&io, &bob, "alice", b"a").await.unwrap_err(), Error::NotFound);
        assert_eq!(auth.shared_with(&io, &bob).await.unwrap(), []);
        auth.set_enabled(&io, "alice", true).await.unwrap();
        assert!(auth.granted(&io, &bob, "alice", b"a").await.is_ok());
    });
}

#[test]
fn a_grant_holds_until_a_share_of_its_owner_changes_or_expires() {
    run(&settings(), async |io, auth| {
        let (alice, bob) = (join_as(&io, &auth, "alice").await, join_as(&io, &auth, "bob").await);
        auth.share(&io, &alice, read("a", "bob")).await.unwrap();
        let read_now = async || auth.granted_with_basis(&io, &bob, "alice", b"a").await.unwrap().1;
        let basis = read_now().await;
        assert!(auth.grant_holds(&io, &basis) && auth.is_unchanged(&bob, Some(&basis)));
        auth.end_shares(&io, alice.account.id, b"never-shared").await.unwrap();
        auth.share(&io, &bob, read("b", "alice")).await.unwrap();
        assert!(auth.grant_holds(&io, &basis), "nothing of alice's has changed");
        let expires = Some(io.wall() + SECOND);
        auth.share(&io, &alice, NewShare { expires, ..read("a", "bob") }).await.unwrap();
        assert!(!auth.grant_holds(&io, &basis) && !auth.is_unchanged(&bob, Some(&basis)));
        let basis = read_now().await;
        assert!(auth.grant_holds(&io, &basis));
        io.sleep(SECOND).await;
        assert!(!auth.grant_holds(&io, &basis), "it has expired");
        let share = auth.share(&io, &alice, read("a", "bob")).await.unwrap();
        let basis = read_now().await;
        auth.unshare(&io, &alice, &share.id).await.unwrap();
        assert!(!auth.grant_holds(&io, &basis));
    });
}
