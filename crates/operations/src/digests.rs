//! Digests of stored files, which take as long as reading the files.
//!
//! This module does not check permissions. Invariants: neither one account nor all together can occupy
//! the server with digests alone. A digest whose requester has gone is abandoned. The limits are per
//! process; a remote store applies the same limits to all of its fronts together.

use std::ops::ControlFlow;

use plimsoll_io::{File, Stat, Work};
use plimsoll_store::apart::Elsewhere;
use plimsoll_store::{Algorithm, DigestSlot, Error as StoreError, FileDigest, Path};

use crate::Operations;
use crate::caller::Caller;
use crate::error::Error;

impl Operations {
    /// Computes the digest of a whole file that the caller has read or may read. It is not an operation of
    /// its own.
    ///
    /// # Errors
    /// [`StoreError::Busy`] if the caller's account, or all accounts together, have too many digests in
    /// progress; the reason why the file cannot be read.
    pub async fn digest(&self, caller: &Caller, file: File, algorithm: Algorithm) -> Result<Vec<u8>, Error> {
        // The slot is occupied until the digest is complete or abandoned.
        let _turn = self.digest_turn(caller)?;
        let mut going = FileDigest::new(algorithm, file);
        loop {
            // One slice at a time, so that other digests proceed in between.
            let turn = caller.io().ask(Work::Chores, move |fs| going.go_on(fs));
            match turn.await.map_err(StoreError::from)? {
                ControlFlow::Continue(further) => going = further,
                ControlFlow::Break(digest) => return Ok(digest),
            }
        }
    }
}

impl Operations {
    /// As [`Operations::digest`], of a file at a remote store. Also returns the status of the same file.
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

    /// Reserves a slot for a digest on the caller's behalf, also for one that a remote store computes.
    /// Dropping the slot releases it.
    ///
    /// # Errors
    /// [`StoreError::Busy`].
    pub fn digest_turn(&self, caller: &Caller) -> Result<DigestSlot, Error> {
        Ok(self.0.digests.take(caller.job_owner()).ok_or(StoreError::Busy)?)
    }
}
