//! The client of a remote authentication server: its methods, their bounds, and the changes that it
//! reports.
//!
//! Invariants: a request is answered, refused at once, or fails in a bounded time. No cached identity is
//! trusted once a change may have been missed. Token checks never queue behind requests with passwords,
//! which are slow.

use std::sync::Arc;

use plimsoll_io::{Instant, Io};
use plimsoll_rpc::{
    CallError, ClientLimits, ConnectionClass, Forwarder, Method, Network, Request, RpcClient, ServerAddress,
    Subscription, encode,
};

use crate::changes::{Changes, Topic};
use crate::error::Error;
use crate::limits::{
    BUSY_RETRY_TIME, CONNECT_TIME, MESSAGE_BYTES_MAX, QUICK_ANSWER_TIME, QUICK_CONNECTIONS,
    REQUESTS_WAITING_MAX, SLOW_ANSWER_TIME, SLOW_CONNECTIONS,
};
use crate::links::NewLink;
use crate::request::{AdminRequest, AuthRequest, AuthResponse};
use crate::service::Pending;
use crate::sessions::SessionId;
use crate::settings::{InForce, Settings};

/// The URL path of requests.
pub const REQUESTS_PATH: &str = "/api/auth/questions";
/// The URL path of the change feed.
pub const CHANGES_PATH: &str = "/api/auth/changes";

/// A lookup.
const READ: Method = Method {
    path: REQUESTS_PATH,
    deadline: QUICK_ANSWER_TIME,
    is_idempotent: true,
    class: ConnectionClass::Quick,
};
/// A change. After an unknown outcome, it must not be repeated.
const CHANGE: Method = Method { is_idempotent: false, ..READ };
/// A request with a password, which is hashed. It counts as an attempt.
const PASSWORD: Method = Method { deadline: SLOW_ANSWER_TIME, class: ConnectionClass::Slow, ..CHANGE };
/// A request for changes. It is an acknowledgement, too.
const WATCH: Method = Method {
    path: CHANGES_PATH,
    deadline: plimsoll_rpc::limits::WATCH_RESPONSE_TIME,
    is_idempotent: false,
    class: ConnectionClass::Unbounded,
};
/// A request that is forwarded. The sender has its own timeout; this is the longest of them.
const FORWARDED: [Method; 2] = [
    Method { deadline: SLOW_ANSWER_TIME, class: ConnectionClass::Unbounded, ..CHANGE },
    Method { deadline: SLOW_ANSWER_TIME, ..WATCH },
];

const LIMITS: ClientLimits = ClientLimits {
    quick_max: QUICK_CONNECTIONS,
    slow_max: SLOW_CONNECTIONS,
    // Many users may share a network, and each of these calls is short.
    slow_share_max: SLOW_CONNECTIONS,
    waiting_max: REQUESTS_WAITING_MAX,
    idle_max: QUICK_CONNECTIONS + SLOW_CONNECTIONS,
    connect_time: CONNECT_TIME,
    silence_time: SLOW_ANSWER_TIME,
    response_bytes_max: MESSAGE_BYTES_MAX,
};

impl Request for AuthRequest {
    fn method(&self) -> Method {
        match self {
            AuthRequest::SignUp { .. }
            | AuthRequest::LogIn { .. }
            | AuthRequest::Password { .. }
            | AuthRequest::ChangePassword { .. }
            | AuthRequest::AddLink { new: NewLink { password: Some(_), .. }, .. }
            | AuthRequest::UnlockLink { .. } => PASSWORD,
            AuthRequest::Session(_)
            | AuthRequest::Renew { .. }
            | AuthRequest::SharesBy(_)
            | AuthRequest::SharedWith(_)
            | AuthRequest::Granted { .. }
            | AuthRequest::Links(_)
            | AuthRequest::Locks(_)
            | AuthRequest::Link { .. }
            | AuthRequest::Administer {
                request:
                    AdminRequest::Accounts { .. }
                    | AdminRequest::Account(_)
                    | AdminRequest::Shares(_)
                    | AdminRequest::Links(_),
                ..
            }
            | AuthRequest::Check {} => READ,
            AuthRequest::LogOut(_)
            | AuthRequest::Share { .. }
            | AuthRequest::Unshare { .. }
            | AuthRequest::EndShares { .. }
            | AuthRequest::AddLink { .. }
            | AuthRequest::EndLink { .. }
            | AuthRequest::UseLink { .. }
            | AuthRequest::Administer { .. }
            | AuthRequest::Lock(_)
            | AuthRequest::RefreshLock { .. }
            | AuthRequest::Unlock { .. }
            | AuthRequest::EndLocks { .. }
            | AuthRequest::Operator(_) => CHANGE,
        }
    }

    fn network(&self) -> Network {
        match self {
            AuthRequest::SignUp { from, .. }
            | AuthRequest::LogIn { from, .. }
            | AuthRequest::Password { from, .. }
            | AuthRequest::ChangePassword { from, .. }
            | AuthRequest::AddLink { from, .. }
            | AuthRequest::UnlockLink { from, .. } => from.network(),
            _ => Network::new(),
        }
    }
}

/// A remote authentication server.
pub(crate) struct RemoteService {
    client: RpcClient,
    settings: InForce,
    changes: Changes,
    /// `None` for the main process of this server: it reports no changes, so each check is a request.
    subscription: Option<Subscription>,
}

impl RemoteService {
    pub(crate) fn new(address: ServerAddress, settings: Settings, reports_changes: bool) -> RemoteService {
        let remote = RemoteService {
            client: RpcClient::new(address, LIMITS),
            settings: InForce::new(settings.clone()),
            changes: Changes::new(),
            subscription: reports_changes.then(Subscription::default),
        };
        remote.set(settings);
        remote
    }

    pub(crate) fn set(&self, settings: Settings) {
        self.client.set_keep_alive(!settings.connect_each);
        self.settings.set(settings);
    }

    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.settings.get()
    }

    pub(crate) fn changes(&self) -> &Changes {
        &self.changes
    }

    /// Returns whether it reports changes. Otherwise, cached identities are never trusted.
    pub(crate) fn reports_changes(&self) -> bool {
        self.subscription.is_some()
    }

    /// Returns whether cached identities that have not changed can be trusted.
    pub(crate) fn is_trusted(&self, now: Instant) -> bool {
        self.subscription.as_ref().is_some_and(|subscription| subscription.is_trusted(now))
    }

    /// Sends a request, and waits for the response.
    pub(crate) fn call<'a>(&'a self, io: &'a Io, request: &'a AuthRequest) -> Pending<'a> {
        Box::pin(self.exchange(io, request))
    }

    async fn exchange(&self, io: &Io, request: &AuthRequest) -> Result<AuthResponse, Error> {
        match self.client.call(io, request).await {
            Ok(response) => response,
            Err(CallError::Busy) => Err(Error::Busy { retry_after: BUSY_RETRY_TIME }),
            Err(error) => {
                // The subscription logs once that the server is away.
                tracing::debug!("the auth server did not answer: {error}");
                Err(Error::Unavailable)
            }
        }
    }

    /// Applies the server's changes. Never ends, unless the server reports none.
    pub(crate) async fn follow_changes(&self, io: &Io) {
        if let Some(subscription) = &self.subscription {
            let apply = |topic: Topic| self.changes.note(topic);
            subscription.follow::<_, Error>(io, &self.client, (WATCH, "the auth server"), apply).await;
        }
    }
}

/// Returns a service that forwards requests to the main process at `address`.
pub fn forwarder(address: ServerAddress) -> Forwarder {
    let unavailable = encode(Err::<AuthResponse, _>(Error::Unavailable));
    Forwarder::new(RpcClient::new(address, LIMITS), &FORWARDED, unavailable)
}

/// Sends one request to the authentication server at `address`, to check that it answers.
///
/// # Errors
/// A description of the problem, for an operator.
pub async fn check_server(address: ServerAddress, io: &Io) -> Result<(), String> {
    let mut number = [0; 32];
    io.entropy(&mut number);
    // No session has this number: a server that can read its directory reports that.
    let request = AuthRequest::Session(SessionId(number));
    let response = RpcClient::new(address, LIMITS).call::<AuthResponse, Error>(io, &request).await;
    match response.map_err(|error| error.to_string())? {
        Err(Error::NoSession) => Ok(()),
        Err(error) => Err(error.to_string()),
        Ok(_) => Err("it reports a session that was never begun".to_owned()),
    }
}
