//! The store in use: in this process, or remote.
//!
//! Invariant: a remote store is never contacted before a request, so that it may be unreachable when a
//! front starts.

use std::io;
use std::sync::Arc;

use plimsoll_io::{Fs, Io};

use super::home::{Backend, Home};
use crate::error::{Error, Result};
use crate::remote::{Owner, RemoteHome, StoreAddress, StoreClient};
use crate::store::{self, Settings};

/// Accounts' homes. Clones share the store.
#[derive(Clone)]
pub struct Store(Tier);

#[derive(Clone)]
enum Tier {
    Local(store::Store),
    Remote(Arc<StoreClient>),
}

impl Store {
    /// Opens the data folder `root`, which the operator named, and creates missing folders in it.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn open(fs: &dyn Fs, root: &std::path::Path, settings: Settings) -> io::Result<Store> {
        Ok(Store(Tier::Local(store::Store::open(fs, root, settings)?)))
    }

    /// Returns a remote store.
    pub fn remote(address: StoreAddress) -> Store {
        Store(Tier::Remote(StoreClient::new(address)))
    }

    /// Returns the home of the account of this number and name. Creates a missing one. `name` must be a
    /// valid folder name. A number is never reused for another account.
    ///
    /// # Errors
    /// Any error of opening the home; none for a remote one, which is not contacted yet.
    pub async fn home(&self, io: &Io, account: i64, name: &str) -> Result<Home> {
        match &self.0 {
            Tier::Local(store) => Ok(Home(Backend::Local(store.home(io, account, name, "").await?))),
            Tier::Remote(remote) => {
                Ok(Home(Backend::Remote(RemoteHome::new(Arc::clone(remote), account, name))))
            }
        }
    }

    /// Returns the same home if it is in this process and open, without blocking.
    pub fn try_home(&self, account: i64, name: &str) -> Option<Home> {
        let Tier::Local(store) = &self.0 else { return None };
        Some(Home(Backend::Local(store.try_home(account, name, "")?)))
    }

    /// Returns the home that a front requests; a store that is itself remote has none.
    pub(crate) async fn home_of(&self, io: &Io, owner: &Owner) -> Result<Home> {
        let Tier::Local(store) = &self.0 else { return Err(Error::Away) };
        let Owner { account, name, directory } = owner;
        Ok(Home(Backend::Local(store.home(io, *account, name, directory).await?)))
    }

    /// Checks that a remote store responds.
    ///
    /// # Errors
    /// [`crate::Error::Away`].
    pub async fn is_there(&self, io: &Io) -> Result<()> {
        match &self.0 {
            Tier::Local(_) => Ok(()),
            Tier::Remote(remote) => remote.is_there(io).await,
        }
    }
}
