//! The RPC servers of accounts and files, for connection processes of the same program.
//!
//! They do not serve remote fronts, which cache results and must receive changes. Invariant: a client
//! must present a secret that only those processes have.

use std::sync::Arc;

use plimsoll_auth::{Auth, Secret};
use plimsoll_proto::http::{Api, DecodedTarget, PendingAnswer, Request};
use plimsoll_store::Store;

use crate::auth_tier::AuthTier;
use crate::store_tier::StoreTier;

/// Both RPC servers, at one address.
pub struct Desks {
    auth: Arc<AuthTier>,
    store: Option<Arc<StoreTier>>,
}

impl Desks {
    /// Creates the RPC servers for clients that present `secret`: of `auth`, and of `store` if the files
    /// are in this process.
    pub fn new(auth: Auth, store: Option<Store>, secret: &Secret) -> Arc<Desks> {
        let store = store.map(|store| StoreTier::new(store, secret.clone()));
        Arc::new(Desks { auth: AuthTier::beside(auth, secret.clone()), store })
    }
}

impl Api for Desks {
    fn answer<'a>(&'a self, request: &'a mut Request<'_>, called: DecodedTarget<'a>) -> PendingAnswer<'a> {
        match &self.store {
            Some(store) if called.path.starts_with(b"/api/store/") => store.answer(request, called),
            _ => self.auth.answer(request, called),
        }
    }

    fn is_private(&self) -> bool {
        true
    }
}
