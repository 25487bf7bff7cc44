//! The cache of verified credentials: it saves lookups, and its entries are never trusted for too long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use plimsoll_auth::directory::{
    AccountRow, DirectoryError, GivenShare, LockBounds, NewAccount, NewSession, ShareSelection, StoredLink,
    StoredLock,
};
use plimsoll_auth::{
    Account, Auth, Change, Directory, Error, MemoryDirectory, NetworkHash, Permissions, Quota, SessionId,
    Share,
};
use plimsoll_io::sim::{Faults, Sim, seeds};

use crate::{MINUTE, PASSWORD, SECOND, all, here, join_as, run, run_over, secret, settings, token};

#[test]
fn a_password_with_each_request_costs_one_hash_in_five_minutes() {
    run(&settings(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let before = auth.hashes();
        let password = secret(PASSWORD);
        for _ in 0..99 {
            auth.by_password(&io, b"alice", &password, &here()).await.unwrap();
            io.sleep(3 * SECOND).await;
        }
        assert_eq!(auth.hashes(), before);
        io.sleep(4 * SECOND).await;
        for name in [b"alice", b"ALICE"] {
            auth.by_password(&io, name, &password, &here()).await.unwrap();
        }
        assert_eq!(auth.hashes(), before + 1);
    });
}

#[test]
fn only_the_very_password_is_remembered() {
    run(&settings(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        join_as(&io, &auth, "bob").await;
        for wrong in ["correct hors", "correct horse ", "Correct horse", ""] {
            let shown = auth.by_password(&io, b"alice", &secret(wrong), &here()).await;
            assert_eq!(shown.unwrap_err(), Error::WrongCredentials);
        }
        let bob = auth.by_password(&io, b"bob", &secret(PASSWORD), &here()).await.unwrap();
        assert_eq!(bob.account.name, "bob");
    });
}

#[test]
fn an_operators_change_holds_at_the_next_request_of_token_and_password() {
    run(&settings(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        let token = token(&io, &auth, "alice").await;
        let both = async || {
            let token = auth.by_token(&io, token.as_bytes()).await.unwrap().account;
            let password = auth.by_password(&io, b"alice", &secret(PASSWORD), &here()).await.unwrap().account;
            assert_eq!(token, password);
            token
        };
        assert_eq!(both().await.permissions, Permissions::default());
        let may = Permissions { write: false, ..Permissions::default() };
        auth.set_permissions(&io, "alice", may).await.unwrap();
        assert_eq!(both().await.permissions, may);
        let quota = Quota { bytes: Some(1), files: Some(2) };
        auth.set_quota(&io, "alice", quota).await.unwrap();
        assert_eq!(both().await.quota, quota);
    });
}

#[test]
fn a_disabled_or_removed_account_is_refused_at_the_next_request() {
    run(&settings(), async |io, auth| {
        for end in [false, true] {
            join_as(&io, &auth, "alice").await;
            let token = token(&io, &auth, "alice").await;
            auth.by_token(&io, token.as_bytes()).await.unwrap();
            if end {
                auth.remove(&io, "alice").await.unwrap();
            } else {
                auth.set_enabled(&io, "alice", false).await.unwrap();
            }
            assert_eq!(auth.by_token(&io, token.as_bytes()).await.unwrap_err(), Error::NoSession);
            let shown = auth.by_password(&io, b"alice", &secret(PASSWORD), &here()).await;
            assert_eq!(shown.unwrap_err(), Error::WrongCredentials);
            if !end {
                auth.remove(&io, "alice").await.unwrap();
            }
        }
    });
}

#[test]
fn a_session_that_ends_during_its_check_is_not_cached() {
    run(&settings(), async |io, auth| {
        join_as(&io, &auth, "alice").await;
        for _ in 0..5 {
            let token = token(&io, &auth, "alice").await;
            let caller = auth.by_token(&io, token.as_bytes()).await.unwrap();
            io.sleep(6 * MINUTE).await;
            // This request polls for changes, so that the others need not. The token is no longer cached:
            // all of these read the directory, and one of them ends it.
            auth.by_token(&io, format!("pls_{}", "0".repeat(32)).as_bytes()).await.unwrap_err();
            let asks = all((0..10).map(|_| auth.by_token(&io, token.as_bytes())));
            plimsoll_io::join(asks, auth.log_out(&io, &caller)).await.1.unwrap();
            assert_eq!(auth.by_token(&io, token.as_bytes()).await.unwrap_err(), Error::NoSession);
        }
    });
}

#[test]
fn a_remembered_token_asks_the_directory_four_times_in_a_second_at_most() {
    let counting = Counting::default();
    let (looks, others) = (Arc::clone(&counting.looks), Arc::clone(&counting.others));
    run_over(counting, async move |io, auth| {
        join_as(&io, &auth, "alice").await;
        let token = token(&io, &auth, "alice").await;
        auth.by_token(&io, token.as_bytes()).await.unwrap();
        let before = (looks.load(Ordering::SeqCst), others.load(Ordering::SeqCst));
        for _ in 0..1000 {
            auth.by_token(&io, token.as_bytes()).await.unwrap();
            io.sleep(SECOND / 100).await;
        }
        let looked = looks.load(Ordering::SeqCst) - before.0;
        assert!((9..=40).contains(&looked), "{looked} looks in ten seconds");
        assert_eq!(others.load(Ordering::SeqCst), before.1);
    });
}

#[test]
fn under_steady_requests_no_caller_waits_for_a_slow_directory() {
    for seed in seeds(10) {
        let faults = Faults { offload_delay_max: SECOND * 7 / 10, ..Faults::none() };
        let sim = Sim::new(seed, faults);
        let auth = Auth::local(Box::new(MemoryDirectory::new()), settings());
        let host = sim.host("one");
        let io = host.io();
        sim.run(&host, async move {
            join_as(&io, &auth, "alice").await;
            let token = token(&io, &auth, "alice").await;
            auth.by_token(&io, token.as_bytes()).await.unwrap();
            io.sleep(2 * SECOND).await;
            auth.by_token(&io, token.as_bytes()).await.unwrap();
            for _ in 0..1000 {
                let before = io.now();
                auth.by_token(&io, token.as_bytes()).await.unwrap();
                assert_eq!(io.now(), before);
                io.sleep(SECOND / 50).await;
            }
        });
    }
}

#[test]
fn while_the_directory_is_unreachable_caches_are_trusted_for_at_most_a_second() {
    let counting = Counting::default();
    let is_broken = Arc::clone(&counting.is_broken);
    run_over(counting, async move |io, auth| {
        join_as(&io, &auth, "alice").await;
        let token = token(&io, &auth, "alice").await;
        auth.by_token(&io, token.as_bytes()).await.unwrap();
        is_broken.store(true, Ordering::SeqCst);
        io.sleep(SECOND / 2).await;
        assert!(auth.by_token(&io, token.as_bytes()).await.is_ok());
        io.sleep(SECOND).await;
        assert_eq!(auth.by_token(&io, token.as_bytes()).await.unwrap_err(), Error::Unavailable);
        let joined = auth.sign_up(&io, "bob", &secret(PASSWORD), &here()).await;
        assert_eq!(joined.unwrap_err(), Error::Unavailable);
        is_broken.store(false, Ordering::SeqCst);
        assert!(auth.by_token(&io, token.as_bytes()).await.is_ok());
    });
}

#[test]
fn expired_sessions_are_removed_once_an_hour_and_a_failure_refuses_no_request() {
    let counting = Counting::default();
    let sweeps = Arc::clone(&counting.sweeps);
    run_over(counting, async move |io, auth| {
        for _ in 0..50 {
            auth.by_password(&io, b"alice", &secret(PASSWORD), &here()).await.err();
            io.sleep(MINUTE).await;
        }
        join_as(&io, &auth, "alice").await;
        assert_eq!(sweeps.load(Ordering::SeqCst), 1);
    });
}

/// A directory that counts its calls, and can be set to fail.
#[derive(Default)]
pub(crate) struct Counting {
    inner: MemoryDirectory,
    looks: Arc<AtomicU32>,
    sweeps: Arc<AtomicU32>,
    pub(crate) others: Arc<AtomicU32>,
    is_broken: Arc<AtomicBool>,
}

impl Counting {
    fn count(&mut self) -> &mut MemoryDirectory {
        self.others.fetch_add(1, Ordering::SeqCst);
        &mut self.inner
    }
}

impl Directory for Counting {
    fn has_foreign_changes(&mut self) -> Result<bool, DirectoryError> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        if self.is_broken.load(Ordering::SeqCst) {
            Err(DirectoryError::Failed("broken".to_owned()))
        } else {
            Ok(false)
        }
    }

    fn check_writable(&mut self, now: u64) -> Result<(), DirectoryError> {
        self.inner.check_writable(now)
    }

    fn sweep(&mut self, _: u64) -> Result<(), DirectoryError> {
        self.sweeps.fetch_add(1, Ordering::SeqCst);
        Err(DirectoryError::Failed("no time for that".to_owned()))
    }

    fn add_account(&mut self, new: &NewAccount) -> Result<Option<Account>, DirectoryError> {
        self.count().add_account(new)
    }

    fn accounts(&mut self) -> Result<Vec<AccountRow>, DirectoryError> {
        self.count().accounts()
    }

    fn account(&mut self, name: &str) -> Result<Option<AccountRow>, DirectoryError> {
        self.count().account(name)
    }

    fn account_of(&mut self, id: i64) -> Result<Option<AccountRow>, DirectoryError> {
        self.count().account_of(id)
    }

    fn change(&mut self, id: i64, change: Change) -> Result<Option<Account>, DirectoryError> {
        self.count().change(id, change)
    }

    fn remove_account(&mut self, id: i64) -> Result<bool, DirectoryError> {
        self.count().remove_account(id)
    }

    fn set_password(
        &mut self,
        id: i64,
        at: i64,
        hash: &str,
        but: Option<SessionId>,
    ) -> Result<bool, DirectoryError> {
        self.count().set_password(id, at, hash, but)
    }

    fn set_hash(&mut self, id: i64, version: i64, hash: &str) -> Result<(), DirectoryError> {
        self.count().set_hash(id, version, hash)
    }

    fn add_session(
        &mut self,
        new: &NewSession,
        max: usize,
    ) -> Result<Option<Vec<SessionId>>, DirectoryError> {
        self.count().add_session(new, max)
    }

    fn session(&mut self, id: SessionId, now: u64) -> Result<Option<(Account, u64)>, DirectoryError> {
        self.count().session(id, now)
    }

    fn end_session(&mut self, id: SessionId) -> Result<bool, DirectoryError> {
        self.count().end_session(id)
    }

    fn network_seen(&mut self, account: i64, network: NetworkHash) -> Result<Option<u64>, DirectoryError> {
        self.count().network_seen(account, network)
    }

    fn add_network(
        &mut self,
        account: i64,
        network: NetworkHash,
        seen: u64,
        max: usize,
    ) -> Result<(), DirectoryError> {
        self.count().add_network(account, network, seen, max)
    }

    fn add_share(&mut self, new: &GivenShare, max: usize) -> Result<Option<Share>, DirectoryError> {
        self.count().add_share(new, max)
    }

    fn shares(&mut self, given: ShareSelection, now: u64) -> Result<Vec<Share>, DirectoryError> {
        self.count().shares(given, now)
    }

    fn shares_around(
        &mut self,
        owner: i64,
        with: i64,
        path: &[u8],
        now: u64,
    ) -> Result<Vec<Share>, DirectoryError> {
        self.count().shares_around(owner, with, path, now)
    }

    fn end_share(&mut self, owner: i64, id: &str) -> Result<bool, DirectoryError> {
        self.count().end_share(owner, id)
    }

    fn end_shares(&mut self, owner: i64, path: &[u8]) -> Result<bool, DirectoryError> {
        self.count().end_shares(owner, path)
    }

    fn add_link(&mut self, new: &StoredLink, max: usize) -> Result<bool, DirectoryError> {
        self.count().add_link(new, max)
    }

    fn links(&mut self, owner: i64) -> Result<Vec<StoredLink>, DirectoryError> {
        self.count().links(owner)
    }

    fn link(&mut self, id: &str) -> Result<Option<StoredLink>, DirectoryError> {
        self.count().link(id)
    }

    fn use_link(&mut self, id: &str, bytes: u64, now: u64) -> Result<bool, DirectoryError> {
        self.count().use_link(id, bytes, now)
    }

    fn end_link(&mut self, owner: i64, id: &str) -> Result<bool, DirectoryError> {
        self.count().end_link(owner, id)
    }

    fn add_lock(&mut self, new: &StoredLock, bounds: LockBounds) -> Result<bool, DirectoryError> {
        self.count().add_lock(new, bounds)
    }

    fn locks(&mut self, owner: i64) -> Result<Vec<StoredLock>, DirectoryError> {
        self.count().locks(owner)
    }

    fn refresh_lock(&mut self, owner: i64, id: &str, expires: u64) -> Result<bool, DirectoryError> {
        self.count().refresh_lock(owner, id, expires)
    }

    fn lock(&mut self, owner: i64, id: &str) -> Result<Option<StoredLock>, DirectoryError> {
        self.count().lock(owner, id)
    }

    fn end_locks(&mut self, owner: i64, ids: &[String]) -> Result<bool, DirectoryError> {
        self.count().end_locks(owner, ids)
    }
}
