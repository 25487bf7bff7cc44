//! The RPC server of accounts: answers the requests of its clients, and reports changes to those that
//! cache results.
//!
//! Invariant: a change is confirmed to its caller once each front has acknowledged it or no longer trusts
//! its cache.

use plimsoll_io::Io;
use plimsoll_rpc::{Call, CallRefused, Changes, FeedError, Service, Watch, encode, parse};

use crate::auth::Auth;
use crate::changes::Topic;
use crate::error::Error;
use crate::limits::BUSY_RETRY_TIME;
use crate::request::{AdminRequest, AuthRequest, AuthResponse, OperatorRequest};
use crate::rpc_client::{CHANGES_PATH, REQUESTS_PATH};

/// The RPC server of accounts.
pub struct AuthServer {
    auth: Auth,
    clients: Clients,
}

/// The clients of an RPC server.
enum Clients {
    /// Remote fronts, which cache results.
    Fronts,
    /// Processes of this program that each serve one connection, and never trust their caches.
    ConnectionProcesses,
}

impl AuthServer {
    /// Creates the RPC server of `auth` for remote fronts.
    pub fn for_fronts(auth: Auth) -> AuthServer {
        AuthServer { auth, clients: Clients::Fronts }
    }

    /// Creates the RPC server of `auth` for connection processes of this program.
    pub fn for_connection_processes(auth: Auth) -> AuthServer {
        AuthServer { auth, clients: Clients::ConnectionProcesses }
    }

    async fn respond(&self, io: &Io, request: AuthRequest) -> Result<AuthResponse, Error> {
        match self.clients {
            Clients::Fronts => self.respond_to_front(io, request).await,
            Clients::ConnectionProcesses => self.auth.respond_to_process(io, request).await,
        }
    }

    /// Answers a front's request. A request that ends a right is answered once no front trusts the old
    /// state.
    async fn respond_to_front(&self, io: &Io, request: AuthRequest) -> Result<AuthResponse, Error> {
        if matches!(request, AuthRequest::Operator(_)) {
            return Err(Error::NotAllowed);
        }
        let ends_right = request.ends_right();
        let response = self.auth.call_without_delay(io, request).await;
        // Also if it has ended already: the request that ended it may still be waiting for the fronts.
        if ends_right && matches!(response, Ok(_) | Err(Error::NoSession | Error::NotFound)) {
            let feed = self.auth.change_feed();
            feed.acknowledged_by_all(io, feed.last()).await;
        }
        response
    }

    /// Returns the changes since the front's position.
    async fn changes(&self, io: &Io, watch: Watch) -> Result<Changes<Topic>, Error> {
        if matches!(self.clients, Clients::ConnectionProcesses) {
            return Err(Error::NotAllowed);
        }
        let feed = self.auth.change_feed();
        let number = feed.acknowledge(io, watch).await.map_err(|error| match error {
            FeedError::TooMany => Error::Busy { retry_after: BUSY_RETRY_TIME },
            FeedError::BadName => Error::NotAllowed,
        })?;
        // Changes that other processes made to the directory are found by polling.
        self.auth.poll_directory(io).await?;
        Ok(feed.changes_after(io, number).await)
    }
}

impl Service for AuthServer {
    fn has(&self, path: &str) -> bool {
        [REQUESTS_PATH, CHANGES_PATH].contains(&path)
    }

    fn call<'a>(&'a self, io: &'a Io, path: &str, request: &[u8]) -> Result<Call<'a>, CallRefused> {
        match path {
            REQUESTS_PATH => {
                let request = parse(request)?;
                Ok(Call::new(async move { encode(self.respond(io, request).await) }))
            }
            CHANGES_PATH => {
                let watch = parse(request)?;
                Ok(Call::new(async move { encode(self.changes(io, watch).await) }))
            }
            _ => Err(CallRefused::NoSuchMethod),
        }
    }
}

impl AuthRequest {
    /// Returns whether it ends a right that a front may have cached, or changes locks. Then it is confirmed
    /// once no front trusts that entry.
    fn ends_right(&self) -> bool {
        match self {
            AuthRequest::LogOut(_)
            | AuthRequest::ChangePassword { .. }
            | AuthRequest::Unshare { .. }
            | AuthRequest::EndLink { .. }
            | AuthRequest::Lock(_)
            | AuthRequest::RefreshLock { .. }
            | AuthRequest::Unlock { .. }
            | AuthRequest::EndShares { .. } => true,
            AuthRequest::Administer { request, .. } => matches!(
                request,
                AdminRequest::Change(..)
                    | AdminRequest::EndSessions(_)
                    | AdminRequest::EndShare(..)
                    | AdminRequest::EndLink(..)
            ),
            AuthRequest::Operator(request) => matches!(
                request,
                OperatorRequest::SetPassword { .. }
                    | OperatorRequest::Change(..)
                    | OperatorRequest::Remove(_)
            ),
            _ => false,
        }
    }
}
