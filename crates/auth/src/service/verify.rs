//! Password checks: the only path from a name and a password to an account.
//!
//! It starts no session. Invariants: unknown name, wrong password and disabled account take the same path
//! and the same time. All hashing goes through the engine's bounded queue.
//!
//! Design: docs/design/logins.md.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use plimsoll_io::{Io, Work};

use super::{AccountService, settle};
use crate::attempts::Standing;
use crate::directory::{AccountRow, DirectoryError};
use crate::error::Error;
use crate::hash_queue::{HashPermit, Lane, Request};
use crate::limits::{NETWORK_AGE_MAX, NETWORK_REFRESH_TIME, NETWORKS_PER_ACCOUNT_MAX, PASSWORD_BYTES_MAX};
use crate::names::account_name;
use crate::networks::NetworkHash;
use crate::passwords::{self, Salt, Weighed};
use crate::settings::Argon2Settings;
use plimsoll_rpc::Secret;
use plimsoll_rpc::Source;
use plimsoll_rpc::time::{self, Millis, millis};

impl AccountService {
    /// Returns the account of this name, if the password is right.
    pub(super) async fn verify(
        &self,
        io: &Io,
        name: &str,
        password: Secret,
        (from, standing): (Source, Standing),
    ) -> Result<AccountRow, Error> {
        let name = account_name(name.as_bytes()).map_err(|_| Error::WrongCredentials)?;
        if password.bytes().len() > PASSWORD_BYTES_MAX {
            return Err(Error::WrongCredentials);
        }
        let Some(limits) = self.settings().attempts else {
            return self.weigh(io, name, password, None).await?.ok_or(Error::WrongCredentials);
        };
        let known = self.known_network(io, &name, from).await?;
        let standing = if known.is_some() { standing.in_known_network() } else { standing };
        // Before the queue: a refused attempt must take no place in it.
        self.counts.check(io, limits, (&name, from, standing))?;
        let permit = self.hash_permit(io, Some(&name), (from, self.lane(io, (from, standing)))).await?;
        let attempt = self.counts.begin(io, limits, (&name, from, standing))?;
        let weighed = self.weigh(io, name, password, permit).await;
        if let Ok(None) = weighed {
            return Err(Error::WrongCredentialsAfter { wait: attempt.failed() });
        }
        attempt.not_failed();
        let row = weighed?.ok_or(Error::WrongCredentials)?;
        let network = NetworkHash::of(&row, from);
        let recent = time::now(io).saturating_sub(millis(NETWORK_REFRESH_TIME));
        // Another hash of the same password gives other hashes of networks, too.
        if known.is_none_or(|(seen, hash)| hash != network || seen <= recent) {
            self.add_network(io, row.account.id, network).await;
        }
        Ok(row)
    }

    /// Returns when the account of this name last logged in from the network, and the network's hash, if
    /// it is known. Makes the same two lookups if there is no such account, so that the response time
    /// reveals nothing.
    async fn known_network(
        &self,
        io: &Io,
        name: &str,
        from: Source,
    ) -> Result<Option<(Millis, NetworkHash)>, Error> {
        let name = name.to_owned();
        let seen = self.directory(io, move |directory, _| {
            let row = directory.account(&name)?;
            let hash = row.as_ref().map_or("", |row| &row.hash);
            let id = row.as_ref().map_or(0, |row| row.account.id);
            let network = NetworkHash::under(hash, from);
            Ok(directory.network_seen(id, network)?.map(|seen| (seen, network)))
        });
        let oldest = time::now(io).saturating_sub(millis(NETWORK_AGE_MAX));
        Ok(seen.await?.filter(|(seen, _)| *seen > oldest))
    }

    /// Stores that an account logged in from a network. A failure is not returned: on a full disk, passwords
    /// are still checked.
    pub(super) async fn add_network(&self, io: &Io, account: i64, network: NetworkHash) {
        if self.settings().attempts.is_none() {
            return;
        }
        let now = time::now(io);
        let added = self.directory(io, move |directory, _| {
            directory.add_network(account, network, now, NETWORKS_PER_ACCOUNT_MAX)
        });
        if let Err(error) = added.await {
            tracing::debug!(%error, "a network of a log-in was not stored");
        }
    }

    /// Returns the account, or `None` if the name is unknown, the password wrong or the account disabled.
    async fn weigh(
        &self,
        io: &Io,
        name: String,
        password: Secret,
        permit: Option<HashPermit>,
    ) -> Result<Option<AccountRow>, Error> {
        let row = self.directory(io, move |directory, _| directory.account(&name)).await?;
        let stored = row.as_ref().map(|row| row.hash.clone());
        let weighed = self
            .hashing(io, permit, move |settings, salt| {
                passwords::weigh(settings, stored.as_deref(), &password, salt)
            })
            .await?;
        let mut row = row.filter(|row| row.account.enabled);
        if let (Some(row), Weighed::Outdated(hash)) = (&mut row, &weighed) {
            let (id, version, new) = (row.account.id, row.version, hash.clone());
            // On failure the old hash stays valid, and the next log-in tries again.
            let set = self.directory(io, move |directory, _| directory.set_hash(id, version, &new)).await;
            if set.is_ok() {
                row.hash.clone_from(hash);
            }
        }
        Ok(row.filter(|_| weighed != Weighed::Wrong))
    }

    /// Returns the queue of a client that presents a password.
    fn lane(&self, io: &Io, (from, standing): (Source, Standing)) -> Lane {
        match standing {
            Standing::Familiar | Standing::Known => Lane::Known,
            Standing::Stranger if self.counts.has_failed(io, from) => Lane::Others,
            Standing::Stranger => Lane::Clean,
        }
    }

    /// Waits for a permit of the hashing. Returns `None` if attempts are not limited.
    pub(super) async fn hash_permit(
        &self,
        io: &Io,
        name: Option<&str>,
        (from, lane): (Source, Lane),
    ) -> Result<Option<HashPermit>, Error> {
        let settings = self.settings();
        if settings.attempts.is_none() {
            return Ok(None);
        }
        let request = Request {
            name: name.map(str::to_owned),
            network: from.network(),
            lane,
            at_once: settings.hashes_at_once,
        };
        self.hash_queue.wait(io, request).await.map(Some)
    }

    /// Hashes a new password. An operator needs no permit.
    pub(super) async fn hash(
        &self,
        io: &Io,
        password: Secret,
        permit: Option<HashPermit>,
    ) -> Result<String, Error> {
        self.hashing(io, permit, move |settings, salt| passwords::hash(settings, &password, salt)).await
    }

    pub(super) async fn hashing<T: Send + 'static>(
        &self,
        io: &Io,
        permit: Option<HashPermit>,
        work: impl FnOnce(Argon2Settings, &Salt) -> Result<T, DirectoryError> + Send + 'static,
    ) -> Result<T, Error> {
        let settings = self.settings().argon2;
        let mut salt = Salt::default();
        io.entropy(&mut salt);
        let state = Arc::clone(&self.state);
        let hashed = io.offload(Work::Passwords, move |_| {
            state.hashes.fetch_add(1, Ordering::Relaxed);
            let hashed = work(settings, &salt);
            drop(permit);
            hashed
        });
        settle(hashed.await, "password hashing")
    }
}
