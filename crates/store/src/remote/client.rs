//! The RPC client of a storage server.
//!
//! The contents of messages are not here, but in [`super::request`]. Invariants: a request is repeated only
//! if it is read-only, or if the server received none of it. Transfers in progress are bounded, however slow
//! their receivers are.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_io::{File, Io};
use plimsoll_rpc::transport::{self, Client, Request, Response};
use plimsoll_rpc::{CallError, CallPermit, ClientLimits, Network, RpcClient, ServerAddress, decode};
use serde::de::DeserializeOwned;

use super::home::ServerHome;
use super::request::CHECK;
use crate::backend::{HomeBackend, Pending, StoreBackend};
use crate::error::{Error, Result};
use crate::limits::{
    STORE_ANSWER_BYTES_MAX, STORE_CONNECT_TIME, STORE_CONNECTIONS_IDLE_MAX, STORE_SILENT_TIME,
    STORE_TRANSFER_WAIT_TIME, STORE_TRANSFERS_MAX, STORE_TRANSFERS_PER_OWNER_MAX,
    STORE_TRANSFERS_WAITING_MAX,
};
use crate::owner::HomeOwner;

/// The field that has the request for a file, or the request to begin an upload.
pub const CALL: &str = "Plimsoll-Call";
/// The field that has the metadata of a file that is sent.
pub const STAT: &str = "Plimsoll-Stat";
/// The field that has the error if a file is not sent.
pub const ERROR: &str = "Plimsoll-Error";

const LIMITS: ClientLimits = ClientLimits {
    // Other requests than transfers are not bounded.
    quick_max: 0,
    slow_max: STORE_TRANSFERS_MAX,
    slow_share_max: STORE_TRANSFERS_PER_OWNER_MAX,
    waiting_max: STORE_TRANSFERS_WAITING_MAX,
    idle_max: STORE_CONNECTIONS_IDLE_MAX,
    connect_time: STORE_CONNECT_TIME,
    silence_time: STORE_SILENT_TIME,
    response_bytes_max: STORE_ANSWER_BYTES_MAX,
};

/// The address of a store, and the settings for its use.
#[derive(Clone)]
pub struct StoreAddress {
    /// The storage server.
    pub server: ServerAddress,
    /// The name of the directory of accounts, if accounts in another directory may have the same numbers:
    /// up to 64 letters and digits. Fronts that share a directory use the same name.
    pub directory: String,
    /// The local folder in which whole uploads are spooled until all bytes of each are received; none if
    /// they are streamed.
    pub spool: Option<File>,
}

/// A storage server.
pub(crate) struct StoreClient {
    client: RpcClient,
    directory: String,
    spool: Option<File>,
}

impl StoreClient {
    pub(crate) fn new(address: StoreAddress) -> Arc<StoreClient> {
        let StoreAddress { server, directory, spool } = address;
        Arc::new(StoreClient { client: RpcClient::new(server, LIMITS), directory, spool })
    }

    pub(super) fn spool(&self) -> Option<&File> {
        self.spool.as_ref()
    }

    /// Sends a request, and waits for the response.
    pub(super) async fn call<T: DeserializeOwned + Send + 'static>(
        &self,
        io: &Io,
        request: &impl plimsoll_rpc::Request,
    ) -> Result<T> {
        settle(self.client.call(io, request).await)
    }

    /// Takes a permit for a file transfer, which may take as long as a client does. Other requests need
    /// none.
    ///
    /// # Errors
    /// [`Error::Busy`].
    pub(super) async fn transfer(&self, io: &Io) -> Result<CallPermit> {
        self.client.transfer_permit(io, STORE_TRANSFER_WAIT_TIME).await.map_err(|error| unreachable(&error))
    }

    /// Creates a request that has the secret.
    pub(super) fn request<'a>(&self, method: &'a str, target: &'a str) -> Request<'a> {
        self.client.request(method, target)
    }

    /// Creates an HTTP client for a transfer.
    pub(super) fn client(&self, io: &Io, patience: Duration) -> Client {
        self.client.client(io, patience)
    }

    /// Receives the JSON response of a transfer.
    pub(super) async fn receive<T: DeserializeOwned>(
        &self,
        io: &Io,
        response: Response<'static>,
    ) -> Result<T> {
        let json = self.client.receive(io, response).await;
        settle(json.and_then(|json| decode(&json)))
    }

    /// Returns the connection of a response to the pool.
    pub(super) fn keep(&self, io: &Io, response: Response<'static>) {
        self.client.keep(io, response);
    }
}

impl StoreBackend for StoreClient {
    fn home(self: Arc<Self>, owner: HomeOwner) -> Arc<dyn HomeBackend> {
        let owner = HomeOwner { directory: self.directory.clone(), ..owner };
        Arc::new(ServerHome { client: self, owner })
    }

    /// Checks that the server responds, and accepts the secret.
    fn check<'a>(&'a self, io: &'a Io) -> Pending<'a, ()> {
        Box::pin(async move { settle(check(&self.client, io).await) })
    }
}

/// Checks that a storage server responds, and accepts the secret.
///
/// # Errors
/// A description of the problem, for an operator.
pub async fn check_server(server: ServerAddress, io: &Io) -> std::result::Result<(), String> {
    let checked = check(&RpcClient::new(server, LIMITS), io).await.map_err(|error| error.to_string())?;
    checked.map_err(|error| error.to_string())
}

async fn check(client: &RpcClient, io: &Io) -> std::result::Result<Result<()>, CallError> {
    decode(&client.call_with(io, CHECK, Network::new(), Vec::new().into()).await?)
}

fn settle<T>(response: std::result::Result<Result<T>, CallError>) -> Result<T> {
    response.map_err(|error| unreachable(&error))?
}

/// Checks that a store has responded, and not another server.
pub(super) fn check_status(response: &Response<'_>) -> Result<()> {
    plimsoll_rpc::check_status(response).map_err(|error| unreachable(&error))
}

/// Logs a missing or incomplete response. The outcome is unknown then.
fn unreachable(error: &CallError) -> Error {
    match error {
        CallError::Busy => return Error::Busy,
        CallError::Secret | CallError::Identity | CallError::Untrusted(_) => {
            tracing::error!("the store does not answer: {error}");
        }
        _ => tracing::warn!("the store does not answer: {error}"),
    }
    Error::Away
}

/// As [`unreachable()`], for a transfer.
pub(super) fn broken(error: transport::Error) -> Error {
    unreachable(&error.into())
}
