//! Locks.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use plimsoll_auth::limits::{
    LOCK_OWNER_BYTES_MAX, LOCK_PATH_BYTES_MAX, LOCK_TIME_MAX, LOCKS_MEETING_MAX, LOCKS_OF_OWNER_MAX,
    LOCKS_PER_HOLDER_MAX,
};
use plimsoll_auth::{Auth, Error, Identity, Lock, NewLock, NewShare, Permission, Permissions};
use plimsoll_io::Io;

use crate::remembering::Counting;
use crate::{MINUTE, SECOND, join_as, run, run_over, settings};

/// An exclusive deep lock of the owner.
fn lock(owner: &Identity, path: &str) -> NewLock {
    NewLock {
        owner: owner.account.id,
        holder: owner.account.id,
        path: path.as_bytes().to_vec(),
        is_shared: false,
        is_deep: true,
        about: String::new(),
        time: MINUTE,
    }
}

/// A lock in the home of `owner` that another account takes.
fn lock_of(holder: &Identity, owner: &Identity, path: &str) -> NewLock {
    NewLock { holder: holder.account.id, ..lock(owner, path) }
}

async fn share(io: &Io, auth: &Auth, owner: &Identity, until: Option<Duration>) -> String {
    let new = NewShare {
        path: b"a".to_vec(),
        with: "bob".to_owned(),
        permission: Permission::Write,
        expires: until.map(|until| io.wall() + until),
    };
    auth.share(io, owner, new).await.unwrap().id
}

/// Returns the locks of a home that hold now, in the order of their paths.
async fn held(io: &Io, auth: &Auth, owner: &Identity) -> Vec<Lock> {
    let known = auth.home_locks(io, owner.account.id).await.unwrap();
    let mut locks: Vec<Lock> = known.held(io.wall()).cloned().collect();
    locks.sort_by(|one, other| one.path.cmp(&other.path));
    locks
}

#[test]
fn a_lock_excludes_others_until_it_is_unlocked() {
    run(&settings(), async |io, auth| {
        let alice = join_as(&io, &auth, "alice").await;
        let taken = auth.lock(&io, NewLock { about: "me".to_owned(), ..lock(&alice, "/a/") }).await.unwrap();
        assert_eq!((taken.path.as_slice(), taken.holder_name.as_str()), (b"a".as_slice(), "alice"));
        assert_eq!((taken.about.as_str(), taken.id.len()), ("me", 36));
        assert_eq!(held(&io, &auth, &alice).await, std::slice::from_ref(&taken));
        let excluded = Error::Locked { path: b"a".to_vec(), holder: "alice".to_owned() };
        assert_eq!(auth.lock(&io, lock(&alice, "a/b")).await.unwrap_err(), excluded);
        let shared = NewLock { is_shared: true, ..lock(&alice, "") };
        assert_eq!(auth.lock(&io, shared).await.unwrap_err(), excluded);
        auth.lock(&io, lock(&alice, "ab")).await.unwrap();
        let own = (alice.account.id, alice.account.id);
        assert_eq!(auth.unlock(&io, own, (b"b", &taken.id)).await, Err(Error::NotFound));
        auth.unlock(&io, own, (b"a/below", &taken.id)).await.unwrap();
        assert_eq!(auth.unlock(&io, own, (b"a", &taken.id)).await, Err(Error::NotFound));
        auth.lock(&io, lock(&alice, "a/b")).await.unwrap();
        let long = NewLock { about: "x".repeat(LOCK_OWNER_BYTES_MAX + 1), ..lock(&alice, "c") };
        assert!(matches!(auth.lock(&io, long).await, Err(Error::BadShare(_))));
        let long = lock(&alice, &"x".repeat(LOCK_PATH_BYTES_MAX + 1));
        assert!(matches!(auth.lock(&io, long).await, Err(Error::BadShare(_))));
    });
}

#[test]
fn a_lock_ends_at_its_time_unless_its_holder_refreshes_it() {
    run(&settings(), async |io, auth| {
        let (alice, bob) = (join_as(&io, &auth, "alice").await, join_as(&io, &auth, "bob").await);
        let forever = NewLock { time: Duration::MAX, ..lock(&alice, "b") };
        let forever = auth.lock(&io, forever).await.unwrap();
        let left = forever.expires.duration_since(io.wall()).unwrap();
        assert!(left <= LOCK_TIME_MAX && left > LOCK_TIME_MAX - SECOND, "{left:?}");
        let at_once = auth.lock(&io, NewLock { time: Duration::ZERO, ..lock(&alice, "c") }).await.unwrap();
        assert!(at_once.expires > io.wall(), "it holds for a second");
        let taken = auth.lock(&io, lock(&alice, "a")).await.unwrap();
        io.sleep(MINUTE - SECOND).await;
        let (own, of_bob) = ((alice.account.id, alice.account.id), (alice.account.id, bob.account.id));
        let refreshed = auth.refresh_lock(&io, own, (b"a", &taken.id), MINUTE).await.unwrap();
        assert!(refreshed.expires > taken.expires);
        assert_eq!(auth.refresh_lock(&io, of_bob, (b"a", &taken.id), MINUTE).await, Err(Error::NotFound));
        io.sleep(MINUTE - SECOND).await;
        assert_eq!(held(&io, &auth, &alice).await.len(), 2);
        io.sleep(2 * SECOND).await;
        assert_eq!(held(&io, &auth, &alice).await, [forever]);
        assert_eq!(auth.refresh_lock(&io, own, (b"a", &taken.id), MINUTE).await, Err(Error::NotFound));
        auth.lock(&io, lock(&alice, "a")).await.unwrap();
    });
}

#[test]
fn locks_are_cached_until_one_changes() {
    run(&settings(), async |io, auth| {
        let alice = join_as(&io, &auth, "alice").await;
        let id = alice.account.id;
        assert!(auth.try_home_locks(&io, id).is_none());
        assert!(held(&io, &auth, &alice).await.is_empty());
        let known = auth.try_home_locks(&io, id).unwrap();
        assert!(known.is_empty() && known.are_available() && auth.has_no_new_lock(&known));
        let taken = auth.lock(&io, lock(&alice, "a")).await.unwrap();
        assert!(!auth.has_no_new_lock(&known) && auth.try_home_locks(&io, id).is_none());
        assert_eq!(held(&io, &auth, &alice).await.len(), 1);
        let known = auth.try_home_locks(&io, id).unwrap();
        // Neither a refused lock, nor one that is refreshed or ended, makes a commit start over.
        auth.lock(&io, lock(&alice, "a")).await.unwrap_err();
        assert!(auth.try_home_locks(&io, id).is_some());
        auth.refresh_lock(&io, (id, id), (b"a", &taken.id), 2 * MINUTE).await.unwrap();
        assert!(auth.has_no_new_lock(&known) && auth.try_home_locks(&io, id).is_none());
        assert!(held(&io, &auth, &alice).await[0].expires > taken.expires);
        auth.unlock(&io, (id, id), (b"a", &taken.id)).await.unwrap();
        assert!(auth.has_no_new_lock(&known) && auth.try_home_locks(&io, id).is_none());
        let taken = auth.lock(&io, lock(&alice, "a/b")).await.unwrap();
        assert_eq!(held(&io, &auth, &alice).await, std::slice::from_ref(&taken));
        auth.end_shares(&io, id, b"a").await.unwrap();
        assert_eq!(held(&io, &auth, &alice).await, std::slice::from_ref(&taken));
        auth.end_locks(&io, id, vec![taken.id]).await.unwrap();
        assert!(held(&io, &auth, &alice).await.is_empty());
    });
}

#[test]
fn a_change_in_a_home_without_a_new_lock_costs_no_directory_request() {
    let counting = Counting::default();
    let others = Arc::clone(&counting.others);
    run_over(counting, async move |io, auth| {
        let alice = join_as(&io, &auth, "alice").await;
        auth.lock(&io, lock(&alice, "a")).await.unwrap();
        auth.home_locks(&io, alice.account.id).await.unwrap();
        let before = others.load(Ordering::SeqCst);
        for _ in 0..1000 {
            auth.home_locks(&io, alice.account.id).await.unwrap();
            io.sleep(SECOND / 100).await;
        }
        assert_eq!(others.load(Ordering::SeqCst), before);
    });
}

#[test]
fn an_account_that_takes_all_locks_it_may_leaves_room_for_others() {
    run(&settings(), async |io, auth| {
        let (alice, bob) = (join_as(&io, &auth, "alice").await, join_as(&io, &auth, "bob").await);
        share(&io, &auth, &alice, None).await;
        for number in 0..LOCKS_PER_HOLDER_MAX {
            auth.lock(&io, lock_of(&bob, &alice, &format!("a/{number}"))).await.unwrap();
        }
        assert_eq!(auth.lock(&io, lock_of(&bob, &alice, "a/x")).await.unwrap_err(), Error::TooManyLocks);
        let own = auth.lock(&io, lock(&alice, "a/x")).await.unwrap();
        auth.lock(&io, lock(&bob, "a/x")).await.unwrap();
        auth.unlock(&io, (alice.account.id, alice.account.id), (b"a/x", &own.id)).await.unwrap();
        let shared = NewLock { is_shared: true, ..lock(&alice, "b") };
        for _ in 0..LOCKS_MEETING_MAX {
            auth.lock(&io, shared.clone()).await.unwrap();
        }
        assert_eq!(auth.lock(&io, shared).await.unwrap_err(), Error::TooManyLocks);
    });
}

#[test]
fn an_account_takes_many_locks_in_its_own_home_and_not_one_too_many() {
    run(&settings(), async |io, auth| {
        let alice = join_as(&io, &auth, "alice").await;
        for number in 0..LOCKS_OF_OWNER_MAX {
            auth.lock(&io, lock(&alice, &format!("a/{number}"))).await.unwrap();
        }
        assert_eq!(auth.lock(&io, lock(&alice, "a/x")).await.unwrap_err(), Error::TooManyLocks);
    });
}

#[test]
fn a_lock_in_a_share_is_ended_by_its_holder_or_by_the_owner() {
    run(&settings(), async |io, auth| {
        let (alice, bob) = (join_as(&io, &auth, "alice").await, join_as(&io, &auth, "bob").await);
        share(&io, &auth, &alice, None).await;
        let carol = join_as(&io, &auth, "carol").await;
        for by in [&bob, &alice] {
            let taken = auth.lock(&io, lock_of(&bob, &alice, "a/b")).await.unwrap();
            let excluded = Error::Locked { path: b"a/b".to_vec(), holder: "bob".to_owned() };
            assert_eq!(auth.lock(&io, lock(&alice, "a")).await.unwrap_err(), excluded);
            let by_carol = auth.unlock(&io, (alice.account.id, carol.account.id), (b"a/b", &taken.id)).await;
            assert_eq!(by_carol, Err(Error::LockOfAnother));
            auth.unlock(&io, (alice.account.id, by.account.id), (b"a/b", &taken.id)).await.unwrap();
        }
    });
}

#[test]
fn a_lock_ends_with_its_share_and_with_the_account_of_its_holder() {
    run(&settings(), async |io, auth| {
        let (alice, bob) = (join_as(&io, &auth, "alice").await, join_as(&io, &auth, "bob").await);
        // Without a share, it is none.
        assert_eq!(auth.lock(&io, lock_of(&bob, &alice, "a")).await.unwrap_err(), Error::NotFound);
        let id = share(&io, &auth, &alice, None).await;
        auth.lock(&io, lock_of(&bob, &alice, "a")).await.unwrap();
        assert_eq!(held(&io, &auth, &alice).await.len(), 1);
        auth.unshare(&io, &alice, &id).await.unwrap();
        assert!(held(&io, &auth, &alice).await.is_empty());
        let own = auth.lock(&io, lock(&alice, "a")).await.unwrap();
        auth.unlock(&io, (alice.account.id, alice.account.id), (b"a", &own.id)).await.unwrap();
        share(&io, &auth, &alice, Some(10 * SECOND)).await;
        auth.lock(&io, lock_of(&bob, &alice, "a/b")).await.unwrap();
        io.sleep(9 * SECOND).await;
        assert_eq!(held(&io, &auth, &alice).await.len(), 1);
        io.sleep(2 * SECOND).await;
        assert!(held(&io, &auth, &alice).await.is_empty());
        share(&io, &auth, &alice, None).await;
        auth.lock(&io, lock_of(&bob, &alice, "a/b")).await.unwrap();
        assert_eq!(held(&io, &auth, &alice).await.len(), 1);
        let read_only = Permissions { write: false, ..Permissions::default() };
        auth.set_permissions(&io, "bob", read_only).await.unwrap();
        assert!(held(&io, &auth, &alice).await.is_empty());
        auth.set_permissions(&io, "bob", Permissions::default()).await.unwrap();
        assert!(held(&io, &auth, &alice).await.is_empty(), "it does not come back");
        auth.lock(&io, lock_of(&bob, &alice, "a/b")).await.unwrap();
        auth.set_enabled(&io, "bob", false).await.unwrap();
        // The lapsed one, which is not read before, is in the way of nothing.
        auth.lock(&io, lock(&alice, "a")).await.unwrap();
        assert_eq!(held(&io, &auth, &alice).await.len(), 1);
        auth.remove(&io, "bob").await.unwrap();
        assert_eq!(held(&io, &auth, &alice).await.len(), 1);
    });
}
