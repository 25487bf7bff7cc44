//! Which store it is.
//!
//! What must hold: that a store is elsewhere is found out by asking it, so that it may be away when a front
//! starts.

use std::io;
use std::sync::Arc;

use plimsoll_io::{Fs, Io};

use super::home::{At, Home};
use crate::apart::{Elsewhere, Owner, Place, Remote};
use crate::error::{Error, Result};
use crate::store::{self, Settings};

/// Accounts' homes. Clones are the same store.
#[derive(Clone)]
pub struct Store(Tier);

#[derive(Clone)]
enum Tier {
    Here(store::Store),
    Apart(Arc<Remote>),
}

impl Store {
    /// Opens the data folder `root`, which the operator named, and makes what is missing in it.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(fs: &dyn Fs, root: &std::path::Path, settings: Settings) -> io::Result<Store> {
        Ok(Store(Tier::Here(store::Store::open(fs, root, settings)?)))
    }

    /// A store elsewhere.
    pub fn apart(place: Place) -> Store {
        Store(Tier::Apart(Remote::new(place)))
    }

    /// The home of the account of this number and name, made if there is none. `name` must be fit for a
    /// folder's name; a number is never another account's.
    ///
    /// # Errors
    /// What keeps the home from being opened; nothing of one elsewhere, which nobody asks yet.
    pub async fn home(&self, io: &Io, account: i64, name: &str) -> Result<Home> {
        match &self.0 {
            Tier::Here(store) => Ok(Home(At::Here(store.home(io, account, name, "").await?))),
            Tier::Apart(remote) => Ok(Home(At::Apart(Elsewhere::new(Arc::clone(remote), account, name)))),
        }
    }

    /// The same home, if it is here and open.
    pub fn home_at_hand(&self, account: i64, name: &str) -> Option<Home> {
        let Tier::Here(store) = &self.0 else { return None };
        Some(Home(At::Here(store.home_at_hand(account, name, "")?)))
    }

    /// The home that a front asks for; a store that is elsewhere itself has none.
    pub(crate) async fn home_of(&self, io: &Io, owner: &Owner) -> Result<Home> {
        let Tier::Here(store) = &self.0 else { return Err(Error::Away) };
        let Owner { account, name, directory } = owner;
        Ok(Home(At::Here(store.home(io, *account, name, directory).await?)))
    }

    /// Whether it answers, if it is elsewhere.
    ///
    /// # Errors
    /// [`crate::Error::Away`].
    pub async fn is_there(&self, io: &Io) -> Result<()> {
        match &self.0 {
            Tier::Here(_) => Ok(()),
            Tier::Apart(remote) => remote.is_there(io).await,
        }
    }
}
