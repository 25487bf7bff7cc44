//! A directory in memory: for the simulator and for tests.
//!
//! It ends with its process. Invariant: it answers as the others do, and with the same bytes.

use std::collections::BTreeMap;

use super::effective_shares::effective_shares;
use super::values::{signed, unsigned};
use super::{
    AccountRow, Directory, DirectoryError, GivenShare, LockBounds, NewAccount, NewSession, ShareSelection,
    StoredLink, StoredLock,
};
use crate::account::{Account, Change};
use crate::limits::NETWORK_AGE_MAX;
use crate::networks::NetworkHash;
use crate::sessions::SessionId;
use crate::shares::{Share, covers};
use plimsoll_rpc::time::{Millis, millis, time};

/// Accounts, sessions and shares in maps.
#[derive(Default)]
pub struct MemoryDirectory {
    accounts: BTreeMap<i64, AccountRow>,
    sessions: BTreeMap<SessionId, NewSession>,
    shares: Vec<GivenShare>,
    networks: BTreeMap<(i64, NetworkHash), Millis>,
    links: BTreeMap<String, StoredLink>,
    locks: BTreeMap<String, StoredLock>,
}

impl MemoryDirectory {
    /// Creates an empty directory.
    pub fn new() -> MemoryDirectory {
        MemoryDirectory::default()
    }

    fn is_named(&self, name: &str) -> bool {
        self.accounts.values().any(|row| row.account.name == name)
    }

    fn end_sessions(&mut self, account: i64, but: Option<SessionId>) {
        self.sessions.retain(|id, session| session.account != account || Some(*id) == but);
    }

    /// Returns the oldest sessions of an account beyond `max`.
    fn beyond(&self, account: i64, max: usize) -> Vec<SessionId> {
        let of_account = self.sessions.values().filter(|session| session.account == account);
        let mut by_age: Vec<_> = of_account.map(|session| (session.created, session.id)).collect();
        by_age.sort_unstable();
        by_age.truncate(by_age.len().saturating_sub(max));
        by_age.into_iter().map(|(_, id)| id).collect()
    }

    fn effective_share(&self, share: &GivenShare) -> Option<Share> {
        Some(Share {
            id: share.id.clone(),
            owner: self.accounts.get(&share.owner)?.account.name.clone(),
            path: share.path.clone(),
            with: self.accounts.get(&share.with)?.account.name.clone(),
            permission: share.permission,
            created: time(share.created),
            expires: share.expires.map(time),
        })
    }

    fn is_given(&self, share: &GivenShare, given: ShareSelection) -> bool {
        let is_enabled = |id| self.accounts.get(&id).is_some_and(|owner| owner.account.enabled);
        match given {
            ShareSelection::By(owner) => share.owner == owner,
            ShareSelection::With(with) => share.with == with && is_enabled(share.owner),
        }
    }
}

fn holds(expires: Option<Millis>, now: Millis) -> bool {
    expires.is_none_or(|expires| expires > now)
}

impl Directory for MemoryDirectory {
    fn has_foreign_changes(&mut self) -> Result<bool, DirectoryError> {
        Ok(false)
    }

    fn check_writable(&mut self, _: Millis) -> Result<(), DirectoryError> {
        Ok(())
    }

    fn sweep(&mut self, now: Millis) -> Result<(), DirectoryError> {
        self.networks.retain(|_, seen| *seen > now.saturating_sub(millis(NETWORK_AGE_MAX)));
        self.sessions.retain(|_, session| session.expires > now);
        self.shares.retain(|share| holds(share.expires, now));
        self.links.retain(|_, link| link.holds(now));
        self.locks.retain(|_, lock| lock.holds(now));
        Ok(())
    }

    fn add_account(&mut self, new: &NewAccount) -> Result<Option<Account>, DirectoryError> {
        if self.is_named(&new.name) {
            return Ok(None);
        }
        if self.accounts.contains_key(&new.id) {
            return Err(DirectoryError::Failed(format!(
                "there is an account of the number {} already",
                new.id
            )));
        }
        let account = Account {
            id: new.id,
            name: new.name.clone(),
            quota: new.quota,
            permissions: new.permissions,
            enabled: new.enabled,
            created: time(new.created),
        };
        let row = AccountRow { account: account.clone(), hash: new.hash.clone(), version: 1 };
        self.accounts.insert(account.id, row);
        Ok(Some(account))
    }

    fn accounts(&mut self) -> Result<Vec<AccountRow>, DirectoryError> {
        let mut all: Vec<AccountRow> = self.accounts.values().cloned().collect();
        all.sort_by(|one, other| one.account.name.cmp(&other.account.name));
        Ok(all)
    }

    fn account(&mut self, name: &str) -> Result<Option<AccountRow>, DirectoryError> {
        Ok(self.accounts.values().find(|row| row.account.name == name).cloned())
    }

    fn account_of(&mut self, id: i64) -> Result<Option<AccountRow>, DirectoryError> {
        Ok(self.accounts.get(&id).cloned())
    }

    fn change(&mut self, id: i64, change: Change) -> Result<Option<Account>, DirectoryError> {
        let Some(row) = self.accounts.get_mut(&id) else { return Ok(None) };
        match change {
            Change::Quota(quota) => row.account.quota = quota,
            Change::Permissions(permissions) => row.account.permissions = permissions,
            Change::Enabled(enabled) => row.account.enabled = enabled,
        }
        let account = row.account.clone();
        if !account.enabled {
            self.end_sessions(id, None);
        }
        Ok(Some(account))
    }

    fn remove_account(&mut self, id: i64) -> Result<bool, DirectoryError> {
        self.end_sessions(id, None);
        self.shares.retain(|share| share.owner != id && share.with != id);
        self.networks.retain(|(account, _), _| *account != id);
        self.links.retain(|_, link| link.owner != id);
        self.locks.retain(|_, lock| lock.owner != id && lock.holder != id);
        Ok(self.accounts.remove(&id).is_some())
    }

    fn set_password(
        &mut self,
        id: i64,
        version: i64,
        hash: &str,
        but: Option<SessionId>,
    ) -> Result<bool, DirectoryError> {
        let Some(row) = self.accounts.get_mut(&id).filter(|row| row.version == version) else {
            return Ok(false);
        };
        row.version += 1;
        hash.clone_into(&mut row.hash);
        self.end_sessions(id, but);
        Ok(true)
    }

    fn set_hash(&mut self, id: i64, version: i64, hash: &str) -> Result<(), DirectoryError> {
        if let Some(row) = self.accounts.get_mut(&id).filter(|row| row.version == version) {
            hash.clone_into(&mut row.hash);
        }
        Ok(())
    }

    fn add_session(
        &mut self,
        new: &NewSession,
        max: usize,
    ) -> Result<Option<Vec<SessionId>>, DirectoryError> {
        let is_shown = |row: &AccountRow| row.account.enabled && row.version == new.version;
        if !self.accounts.get(&new.account).is_some_and(is_shown) {
            return Ok(None);
        }
        self.sessions.insert(new.id, new.clone());
        let ended = self.beyond(new.account, max);
        for id in &ended {
            self.sessions.remove(id);
        }
        Ok(Some(ended))
    }

    fn session(&mut self, id: SessionId, now: Millis) -> Result<Option<(Account, Millis)>, DirectoryError> {
        let Some(session) = self.sessions.get(&id).filter(|session| session.expires > now) else {
            return Ok(None);
        };
        let owner = self.accounts.get(&session.account).filter(|row| row.account.enabled);
        Ok(owner.map(|row| (row.account.clone(), session.expires)))
    }

    fn end_session(&mut self, id: SessionId) -> Result<bool, DirectoryError> {
        Ok(self.sessions.remove(&id).is_some())
    }

    fn network_seen(&mut self, account: i64, network: NetworkHash) -> Result<Option<Millis>, DirectoryError> {
        Ok(self.networks.get(&(account, network)).copied())
    }

    fn add_network(
        &mut self,
        account: i64,
        network: NetworkHash,
        seen: Millis,
        max: usize,
    ) -> Result<(), DirectoryError> {
        if !self.accounts.contains_key(&account) {
            return Ok(());
        }
        let stored = self.networks.entry((account, network)).or_default();
        *stored = seen.max(*stored);
        let of_account = self.networks.iter().filter(|((id, _), _)| *id == account);
        let mut by_age: Vec<_> = of_account.map(|((_, network), seen)| (*seen, *network)).collect();
        by_age.sort_unstable();
        by_age.truncate(by_age.len().saturating_sub(max));
        for (_, network) in by_age {
            self.networks.remove(&(account, network));
        }
        Ok(())
    }

    fn add_share(&mut self, new: &GivenShare, max: usize) -> Result<Option<Share>, DirectoryError> {
        let is_same =
            |share: &GivenShare| (share.owner, share.with, &share.path) == (new.owner, new.with, &new.path);
        self.shares.retain(|share| share.owner != new.owner || holds(share.expires, new.created));
        let others = self.shares.iter().filter(|share| share.owner == new.owner && !is_same(share));
        let is_full = others.count() >= max;
        let (false, Some(mut seen)) = (is_full, self.effective_share(new)) else { return Ok(None) };
        if let Some(share) = self.shares.iter_mut().find(|share| is_same(share)) {
            (share.permission, share.expires) = (new.permission, new.expires);
            (seen.id, seen.created) = (share.id.clone(), time(share.created));
        } else {
            self.shares.push(new.clone());
        }
        Ok(Some(seen))
    }

    fn shares(&mut self, given: ShareSelection, now: Millis) -> Result<Vec<Share>, DirectoryError> {
        let held =
            self.shares.iter().filter(|share| holds(share.expires, now) && self.is_given(share, given));
        let mut seen: Vec<Share> = held.filter_map(|share| self.effective_share(share)).collect();
        seen.sort_by(|one, other| {
            (&one.owner, &one.path, &one.with).cmp(&(&other.owner, &other.path, &other.with))
        });
        Ok(seen)
    }

    fn shares_around(
        &mut self,
        owner: i64,
        with: i64,
        path: &[u8],
        now: Millis,
    ) -> Result<Vec<Share>, DirectoryError> {
        let between = self.shares.iter().filter(|share| share.owner == owner && share.with == with);
        let mut held: Vec<_> = between.filter(|share| holds(share.expires, now)).collect();
        held.sort_by(|one, other| one.path.cmp(&other.path));
        effective_shares(path, |from| {
            let at = held.partition_point(|share| share.path.as_slice() < from);
            Ok(held.get(at).and_then(|share| self.effective_share(share)))
        })
    }

    fn end_share(&mut self, owner: i64, id: &str) -> Result<bool, DirectoryError> {
        let before = self.shares.len();
        self.shares.retain(|share| share.owner != owner || share.id != id);
        Ok(self.shares.len() < before)
    }

    fn end_shares(&mut self, owner: i64, path: &[u8]) -> Result<bool, DirectoryError> {
        let before = self.shares.len() + self.links.len();
        self.shares.retain(|share| share.owner != owner || !covers(path, &share.path));
        self.links.retain(|_, link| link.owner != owner || !covers(path, &link.path));
        Ok(self.shares.len() + self.links.len() < before)
    }

    fn add_link(&mut self, new: &StoredLink, max: usize) -> Result<bool, DirectoryError> {
        let now = unsigned(new.created);
        self.links.retain(|_, link| link.owner != new.owner || link.holds(now));
        let others = self.links.values().filter(|link| link.owner == new.owner).count();
        let is_added = others < max && self.accounts.contains_key(&new.owner);
        if is_added {
            self.links.insert(new.id.clone(), new.clone());
        }
        Ok(is_added)
    }

    fn links(&mut self, owner: i64) -> Result<Vec<StoredLink>, DirectoryError> {
        Ok(self.links.values().filter(|link| link.owner == owner).cloned().collect())
    }

    fn link(&mut self, id: &str) -> Result<Option<StoredLink>, DirectoryError> {
        Ok(self.links.get(id).cloned())
    }

    fn use_link(&mut self, id: &str, bytes: u64, now: Millis) -> Result<bool, DirectoryError> {
        let bytes = signed(bytes);
        let may_use = |link: &&mut StoredLink| {
            link.holds(now)
                && link.uses_max.is_none_or(|max| link.uses < max)
                && link.bytes_max.is_none_or(|max| link.bytes.saturating_add(bytes) <= max)
        };
        let Some(link) = self.links.get_mut(id).filter(may_use) else { return Ok(false) };
        (link.uses, link.bytes) = (link.uses + 1, link.bytes.saturating_add(bytes));
        Ok(true)
    }

    fn end_link(&mut self, owner: i64, id: &str) -> Result<bool, DirectoryError> {
        let is_owners = self.links.get(id).is_some_and(|link| link.owner == owner);
        Ok(is_owners && self.links.remove(id).is_some())
    }

    fn add_lock(&mut self, new: &StoredLock, bounds: LockBounds) -> Result<bool, DirectoryError> {
        let StoredLock { owner, holder, .. } = *new;
        self.locks.retain(|_, lock| lock.owner != owner || lock.holds(unsigned(new.created)));
        let in_home = || self.locks.values().filter(|lock| lock.owner == owner);
        let own = in_home().filter(|lock| lock.holder == holder).count();
        let of_others = in_home().filter(|lock| lock.holder != owner).count();
        let meeting = in_home().filter(|lock| lock.meets(new)).count();
        let is_room =
            own < bounds.holder && (owner == holder || of_others < bounds.others) && meeting < bounds.meeting;
        let is_known = [owner, holder].iter().all(|id| self.accounts.contains_key(id));
        let is_added = is_room && is_known && !in_home().any(|lock| lock.conflicts(new));
        if is_added {
            self.locks.insert(new.id.clone(), new.clone());
        }
        Ok(is_added)
    }

    fn locks(&mut self, owner: i64) -> Result<Vec<StoredLock>, DirectoryError> {
        Ok(self.locks.values().filter(|lock| lock.owner == owner).cloned().collect())
    }

    fn lock(&mut self, owner: i64, id: &str) -> Result<Option<StoredLock>, DirectoryError> {
        Ok(self.locks.get(id).filter(|lock| lock.owner == owner).cloned())
    }

    fn refresh_lock(&mut self, owner: i64, id: &str, expires: Millis) -> Result<bool, DirectoryError> {
        let lock = self.locks.get_mut(id).filter(|lock| lock.owner == owner);
        Ok(lock.map(|lock| lock.expires = signed(expires)).is_some())
    }

    fn end_locks(&mut self, owner: i64, ids: &[String]) -> Result<bool, DirectoryError> {
        let before = self.locks.len();
        self.locks.retain(|id, lock| lock.owner != owner || !ids.contains(id));
        Ok(self.locks.len() < before)
    }
}
