//! Digests of files as they are, which take as long as reading them.
//!
//! Which file somebody may read is not asked here. What must hold: no account, and not all of them together,
//! can keep the server at this and nothing else; what nobody waits for any more goes no further.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_io::{File, Stat, Work};
use plimsoll_store::apart::Elsewhere;
use plimsoll_store::{Algorithm, Error as StoreError, FileDigest, Path};

use crate::Operations;
use crate::caller::Caller;
use crate::error::Error;
use crate::limits::{DIGESTS_MAX, DIGESTS_PER_ACCOUNT_MAX};

impl Operations {
    /// The digest of a whole file that the caller has read or may read. It is no operation of its own.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if the caller's account, or all together, have too many under way; the file
    /// cannot be read.
    pub async fn digest(&self, caller: &Caller, file: File, algorithm: Algorithm) -> Result<Vec<u8>, Error> {
        // Held until the digest is made or given up.
        let _turn = self.digest_turn(caller)?;
        let mut going = FileDigest::new(algorithm, file);
        loop {
            // One turn at a time, so that others' digests are made in between.
            let turn = caller.io().ask(Work::Chores, move |fs| going.go_on(fs));
            match turn.await.map_err(StoreError::from)? {
                ControlFlow::Continue(further) => going = further,
                ControlFlow::Break(digest) => return Ok(digest),
            }
        }
    }
}

impl Operations {
    /// As [`Operations::digest`], of a file at a store elsewhere; and what is known of that very file.
    ///
    /// # Errors
    /// As [`Operations::digest`], and as [`Elsewhere::digest`].
    pub async fn digest_elsewhere(
        &self,
        caller: &Caller,
        home: &Elsewhere,
        path: &Path,
        algorithm: Algorithm,
    ) -> Result<(Stat, Vec<u8>), Error> {
        let _turn = self.digest_turn(caller)?;
        Ok(home.digest(caller.io(), path, algorithm).await?)
    }

    /// The right to have a digest made for the caller, wherever that is done; it ends when it is dropped.
    ///
    /// # Errors
    /// [`StoreError::Busy`].
    pub fn digest_turn(&self, caller: &Caller) -> Result<DigestTurn<'_>, Error> {
        Ok(self.0.digests.begin(caller.identity.account.id).ok_or(StoreError::Busy)?)
    }
}

/// How many digests each account has under way.
#[derive(Default)]
pub(crate) struct UnderWay(Mutex<HashMap<i64, usize>>);

/// The right to have one under way; it ends when it is dropped.
pub struct DigestTurn<'a> {
    under_way: &'a UnderWay,
    account: i64,
}

impl UnderWay {
    fn counts(&self) -> MutexGuard<'_, HashMap<i64, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another one of an account; `None` if it, or all together, have as many as may be.
    fn begin(&self, account: i64) -> Option<DigestTurn<'_>> {
        let mut counts = self.counts();
        if counts.values().sum::<usize>() >= DIGESTS_MAX {
            return None;
        }
        let count = counts.entry(account).or_default();
        (*count < DIGESTS_PER_ACCOUNT_MAX).then(|| {
            *count += 1;
            DigestTurn { under_way: self, account }
        })
    }
}

impl Drop for DigestTurn<'_> {
    fn drop(&mut self) {
        let mut counts = self.under_way.counts();
        if let Some(count) = counts.get_mut(&self.account) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.account);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_has_so_many_and_its_own_turns_come_back() {
        let under_way = UnderWay::default();
        let turns: Vec<_> = (0..DIGESTS_PER_ACCOUNT_MAX).map(|_| under_way.begin(1).unwrap()).collect();
        assert!(under_way.begin(1).is_none());
        assert!(under_way.begin(2).is_some());
        drop(turns);
        assert!(under_way.begin(1).is_some());
        assert!(under_way.counts().is_empty());
    }

    #[test]
    fn all_accounts_together_have_so_many() {
        let under_way = UnderWay::default();
        let turns: Vec<_> = (1..).map_while(|account| under_way.begin(account)).collect();
        assert_eq!(turns.len(), DIGESTS_MAX);
    }
}
