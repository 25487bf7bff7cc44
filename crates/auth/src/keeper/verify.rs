//! Weighing passwords: the one way by which a name and a password become an account.
//!
//! It starts no session. What must hold: unknown name, wrong password and disabled account take the same way
//! and the same time; nothing is hashed but through the engine's bounded queue.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use plimsoll_io::{Io, Work};

use super::{Keeper, settle};
use crate::attempts::{Source, Standing};
use crate::directory::{Record, Trouble};
use crate::error::Error;
use crate::limits::{BUSY_RETRY_TIME, PASSWORD_BYTES_MAX};
use crate::names::account_name;
use crate::passwords::{self, Salt, Weighed};
use crate::seats::Seat;
use crate::secret::Secret;
use crate::settings::Argon2Settings;

impl Keeper {
    /// The account whose name and password these are.
    pub(super) async fn verify(
        &self,
        io: &Io,
        name: &str,
        password: Secret,
        (from, standing): (Source, Standing),
    ) -> Result<Record, Error> {
        let name = account_name(name.as_bytes()).map_err(|_| Error::WrongCredentials)?;
        if password.bytes().len() > PASSWORD_BYTES_MAX {
            return Err(Error::WrongCredentials);
        }
        let Some(limits) = self.settings().attempts else {
            return self.weigh(io, name, password, from).await?.ok_or(Error::WrongCredentials);
        };
        let attempt = self.counts.begin(io, limits, (&name, from, standing))?;
        let weighed = self.weigh(io, name, password, from).await;
        if let Ok(None) = weighed {
            io.sleep(attempt.failed()).await;
        } else {
            attempt.not_failed();
        }
        weighed?.ok_or(Error::WrongCredentials)
    }

    /// `None` if it is not so, for whatever reason.
    async fn weigh(
        &self,
        io: &Io,
        name: String,
        password: Secret,
        from: Source,
    ) -> Result<Option<Record>, Error> {
        let seat = self.seat(Some(&name), from)?;
        let record = self.directory(io, move |directory, _| directory.account(&name)).await?;
        let stored = record.as_ref().map(|record| record.hash.clone());
        let weighed = self
            .hashing(io, seat, move |settings, salt| {
                passwords::weigh(settings, stored.as_deref(), &password, salt)
            })
            .await?;
        let record = record.filter(|record| record.account.enabled);
        if let (Some(record), Weighed::Outdated(hash)) = (&record, &weighed) {
            let (id, version, hash) = (record.account.id, record.version, hash.clone());
            // The old hash is as good; at the next log-in it is tried again.
            let _ = self.directory(io, move |directory, _| directory.set_hash(id, version, &hash)).await;
        }
        Ok(record.filter(|_| weighed != Weighed::Wrong))
    }

    /// A seat before the hashing, which none needs where attempts are not held back.
    pub(super) fn seat(&self, name: Option<&str>, from: Source) -> Result<Option<Seat>, Error> {
        let Some(limits) = self.settings().attempts else { return Ok(None) };
        let is_exempt = limits.exempt_local && from.is_local();
        let seat = self.seats.take(name, (!is_exempt).then_some(from));
        seat.map(Some).ok_or(Error::Busy { retry_after: BUSY_RETRY_TIME })
    }

    /// The hash of a new password. An operator needs no seat.
    pub(super) async fn hash(&self, io: &Io, password: Secret, seat: Option<Seat>) -> Result<String, Error> {
        self.hashing(io, seat, move |settings, salt| passwords::hash(settings, &password, salt)).await
    }

    async fn hashing<T: Send + 'static>(
        &self,
        io: &Io,
        seat: Option<Seat>,
        work: impl FnOnce(Argon2Settings, &Salt) -> Result<T, Trouble> + Send + 'static,
    ) -> Result<T, Error> {
        let settings = self.settings().argon2;
        let mut salt = Salt::default();
        io.entropy(&mut salt);
        let shelf = Arc::clone(&self.shelf);
        let hashed = io.offload(Work::Passwords, move |_| {
            shelf.hashes.fetch_add(1, Ordering::Relaxed);
            let hashed = work(settings, &salt);
            drop(seat);
            hashed
        });
        settle(hashed.await, "password hashing")
    }
}
