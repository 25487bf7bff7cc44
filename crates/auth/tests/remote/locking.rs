//! Locks through two fronts of one auth server.

use plimsoll_auth::{Auth, Error, MemoryDirectory, NewLock, Secret};
use plimsoll_io::sim::{Faults, Sim, seeds};

use super::{Front, PASSWORD, SECOND, SECRET, here, serve, settings};

fn run_with_two_fronts(test: impl AsyncFn([Front; 2]) + Copy + 'static) {
    for seed in seeds(10) {
        let sim = Sim::new(seed, Faults::splits());
        let at = serve(&sim, &sim.host("auth"), Auth::local(Box::new(MemoryDirectory::new()), settings()));
        let fronts = ["left", "right"].map(|name| Front::new(&sim, name, &at, SECRET));
        sim.run(&sim.host("people"), async move { test(fronts).await });
        assert_eq!(sim.panics(), Vec::<String>::new());
    }
}

async fn join(front: &Front) -> i64 {
    front.auth.sign_up(&front.io, "alice", &Secret::from(PASSWORD), &here()).await.unwrap();
    let identity = front.auth.by_password(&front.io, b"alice", &Secret::from(PASSWORD), &here()).await;
    identity.unwrap().account.id
}

fn new(account: i64, path: &str) -> NewLock {
    NewLock {
        owner: account,
        holder: account,
        path: path.as_bytes().to_vec(),
        is_shared: false,
        is_deep: true,
        about: String::new(),
        time: 60 * SECOND,
    }
}

#[test]
fn a_confirmed_lock_is_known_to_the_other_front_at_once() {
    run_with_two_fronts(async |[left, right]| {
        let alice = join(&left).await;
        assert!(left.auth.has_locks(&left.io).await && right.auth.has_locks(&right.io).await);
        for _ in 0..3 {
            let before = right.auth.home_locks(&right.io, alice).await.unwrap();
            assert!(before.is_empty());
            let taken = left.auth.lock(&left.io, new(alice, "a")).await.unwrap();
            assert!(!right.auth.has_no_new_lock(&before), "a commit that was checked before is refused");
            let after = right.auth.home_locks(&right.io, alice).await.unwrap();
            assert_eq!(after.held(right.io.wall()).count(), 1);
            let refused = right.auth.lock(&right.io, new(alice, "a/b")).await.unwrap_err();
            assert_eq!(refused, Error::Locked { path: b"a".to_vec(), holder: "alice".to_owned() });
            right.auth.unlock(&right.io, (alice, alice), (b"a", &taken.id)).await.unwrap();
        }
    });
}

#[test]
fn a_front_that_is_cut_off_trusts_no_list_of_locks_after_a_lock_is_confirmed() {
    run_with_two_fronts(async |[left, right]| {
        let alice = join(&left).await;
        right.auth.home_locks(&right.io, alice).await.unwrap();
        right.is_cut.set(true);
        left.auth.lock(&left.io, new(alice, "a")).await.unwrap();
        assert!(right.auth.try_home_locks(&right.io, alice).is_none());
        let known = right.auth.home_locks(&right.io, alice).await;
        assert!(matches!(known, Err(Error::Unavailable | Error::Busy { .. })), "{known:?}");
    });
}
