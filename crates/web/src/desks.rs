//! The desks at which the processes of connections ask the program that they belong to, for accounts and
//! for files.
//!
//! They are no tier of fronts elsewhere, which remember and have to hear of changes. What must hold: whoever
//! asks shows a secret that those processes alone have.

use std::sync::Arc;

use plimsoll_auth::{Auth, Secret};
use plimsoll_proto::http::{Answering, Api, Called, Request};
use plimsoll_store::Store;

use crate::auth_tier::AuthTier;
use crate::store_tier::StoreTier;

/// Both of them, at one place.
pub struct Desks {
    auth: Arc<AuthTier>,
    store: Option<Arc<StoreTier>>,
}

impl Desks {
    /// Answers whoever shows `secret` from `auth` and, if the files are kept here, from `store`.
    pub fn new(auth: Auth, store: Option<Store>, secret: &Secret) -> Arc<Desks> {
        let store = store.map(|store| StoreTier::new(store, secret.clone()));
        Arc::new(Desks { auth: AuthTier::beside(auth, secret.clone()), store })
    }
}

impl Api for Desks {
    fn answer<'a>(&'a self, request: &'a mut Request<'_>, called: Called<'a>) -> Answering<'a> {
        match &self.store {
            Some(store) if called.path.starts_with(b"/api/store/") => store.answer(request, called),
            _ => self.auth.answer(request, called),
        }
    }

    fn is_private(&self) -> bool {
        true
    }
}
