//! Digests of files as they are, which take as long as reading them.
//!
//! Which file somebody may read is not asked here. What must hold: no account, and not all of them together,
//! can keep the server at this and nothing else; what nobody waits for any more goes no further. The limits
//! are those of the process; a store elsewhere has the same for all of its fronts together.

use std::ops::ControlFlow;

use plimsoll_io::{File, Stat, Work};
use plimsoll_store::apart::Elsewhere;
use plimsoll_store::{Algorithm, DigestSlot, Error as StoreError, FileDigest, Path};

use crate::Operations;
use crate::caller::Caller;
use crate::error::Error;

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
    pub fn digest_turn(&self, caller: &Caller) -> Result<DigestSlot, Error> {
        Ok(self.0.digests.take(caller.job_owner()).ok_or(StoreError::Busy)?)
    }
}
