//! The store in use.
//!
//! Invariant: a remote store is never contacted before a request, so that it may be unreachable when a
//! front starts.

use std::io;
use std::sync::Arc;

use plimsoll_io::{Fs, Io, Work};

use super::home::{Backend, Home};
use crate::backend::StoreBackend;
use crate::error::Result;
use crate::owner::HomeOwner;
use crate::remote::{StoreAddress, StoreClient};
use crate::store::{LocalStore, Settings};

/// Accounts' homes. Clones share the store.
#[derive(Clone)]
pub struct Store(Tier);

#[derive(Clone)]
enum Tier {
    Local(LocalStore),
    Other(Arc<dyn StoreBackend>),
}

impl Store {
    /// Opens the data folder `root`, which the operator named, and creates missing folders in it.
    ///
    /// # Errors
    /// Any error of the file system.
    pub fn open(fs: &dyn Fs, root: &std::path::Path, settings: Settings) -> io::Result<Store> {
        Ok(Store(Tier::Local(LocalStore::open(fs, root, settings)?)))
    }

    /// Returns a storage server.
    pub fn remote(address: StoreAddress) -> Store {
        Store::of(StoreClient::new(address))
    }

    /// Returns a store of another implementation.
    pub fn of(store: Arc<dyn StoreBackend>) -> Store {
        Store(Tier::Other(store))
    }

    /// Returns the home of the account of this number and name. Creates a missing one. `name` must be a
    /// valid folder name. A number is never reused for another account.
    ///
    /// # Errors
    /// Any error of opening the home; none for a remote one, which is not contacted yet.
    pub async fn home(&self, io: &Io, account: i64, name: &str) -> Result<Home> {
        match &self.0 {
            Tier::Local(store) => Ok(Home(Backend::Local(store.home(io, account, name, "").await?))),
            Tier::Other(store) => {
                let owner = HomeOwner { account, name: name.to_owned(), directory: String::new() };
                Ok(Home(Backend::Other(Arc::clone(store).home(owner))))
            }
        }
    }

    /// Returns the same home if it is in this process and open, without blocking.
    pub fn try_home(&self, account: i64, name: &str) -> Option<Home> {
        let Tier::Local(store) = &self.0 else { return None };
        Some(Home(Backend::Local(store.try_home(account, name, "")?)))
    }

    /// Returns the home that a front requests.
    pub(crate) async fn home_of(&self, io: &Io, owner: HomeOwner) -> Result<Home> {
        match &self.0 {
            Tier::Local(store) => {
                let HomeOwner { account, name, directory } = &owner;
                Ok(Home(Backend::Local(store.home(io, *account, name, directory).await?)))
            }
            Tier::Other(store) => {
                owner.check()?;
                Ok(Home(Backend::Other(Arc::clone(store).home(owner))))
            }
        }
    }

    /// Sets the time for which removed entries stay in the trash, to the second; zero for no trash. A remote
    /// store has its own setting.
    pub fn set_trash_time(&self, time: std::time::Duration) {
        if let Tier::Local(store) = &self.0 {
            store.set_trash_time(time);
        }
    }

    /// Returns the free bytes of the data folder's file system; `None` for a remote store, or if the file
    /// system does not report them.
    pub async fn free_bytes(&self, io: &Io) -> Option<u64> {
        let Tier::Local(store) = &self.0 else { return None };
        let store = store.clone();
        io.offload(Work::Files, move |fs| store.free_bytes(fs)).await.ok().flatten()
    }

    /// Checks that a remote store responds.
    ///
    /// # Errors
    /// [`crate::Error::Away`].
    pub async fn is_there(&self, io: &Io) -> Result<()> {
        match &self.0 {
            Tier::Local(_) => Ok(()),
            Tier::Other(store) => store.check(io).await,
        }
    }
}
