//! A remote store as its RPC client sees it.
//!
//! The contents of messages are not here, but in [`super::request`]. Invariants: a request is repeated only
//! if it is read-only, or if the store received none of it. Transfers in progress are bounded, however slow
//! their receivers are.

use std::sync::Arc;
use std::time::Duration;

use plimsoll_io::{File, Io};
use plimsoll_rpc::transport::{self, Client, Request, Response};
use plimsoll_rpc::{
    CallError, CallPermit, ClientLimits, ConnectionClass, Method, Network, RpcClient, ServerAddress, decode,
};
use serde::de::DeserializeOwned;

use super::error_json::ErrorJson;
use super::request::StoreRequest;
use crate::error::{Error, Result};
use crate::limits::{
    STORE_ANSWER_BYTES_MAX, STORE_ANSWER_TIME, STORE_CONNECT_TIME, STORE_CONNECTIONS_IDLE_MAX,
    STORE_SILENT_TIME, STORE_TRANSFER_WAIT_TIME, STORE_TRANSFERS_MAX, STORE_TRANSFERS_PER_OWNER_MAX,
    STORE_TRANSFERS_WAITING_MAX,
};

/// The URL path of requests.
pub const QUESTIONS: &str = "/api/store/questions";
/// The URL path of file transfers.
pub const FILES: &str = "/api/store/files";
/// The URL path of the readiness check.
pub const READY: &str = "/api/store/ready";
/// The field that has the request for a file, or the request to begin an upload.
pub const CALL: &str = "Plimsoll-Call";
/// The field that has the metadata of a file that is sent.
pub const STAT: &str = "Plimsoll-Stat";
/// The field that has the error if a file is not sent.
pub const TROUBLE: &str = "Plimsoll-Trouble";

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

/// The readiness check.
const CHECK: Method = Method {
    path: READY,
    deadline: STORE_ANSWER_TIME,
    is_idempotent: true,
    class: ConnectionClass::Unbounded,
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

/// A remote store.
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

    pub(super) fn directory(&self) -> &str {
        &self.directory
    }

    pub(super) fn spool(&self) -> Option<&File> {
        self.spool.as_ref()
    }

    /// Sends a request, and waits for the response.
    pub(super) async fn ask<T: DeserializeOwned + Send + 'static>(
        &self,
        io: &Io,
        asked: &StoreRequest,
    ) -> Result<T> {
        settle(self.client.call(io, asked).await)
    }

    /// Checks that the store responds, and accepts the secret.
    pub(crate) async fn is_there(&self, io: &Io) -> Result<()> {
        let response = self.client.call_with(io, CHECK, Network::new(), Vec::new().into()).await;
        settle(response.and_then(|json| decode(&json)))
    }

    /// Takes a permit for a file transfer, which may take as long as a client does. Other requests need
    /// none.
    ///
    /// # Errors
    /// [`Error::Busy`].
    pub(super) async fn transfer(&self, io: &Io) -> Result<CallPermit> {
        self.client.transfer_permit(io, STORE_TRANSFER_WAIT_TIME).await.map_err(|error| away(&error))
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

/// Checks that a storage server responds, and accepts the secret.
///
/// # Errors
/// A description of the problem, for an operator.
pub async fn check_server(server: ServerAddress, io: &Io) -> std::result::Result<(), String> {
    let response =
        RpcClient::new(server, LIMITS).call_with(io, CHECK, Network::new(), Vec::new().into()).await;
    let checked = response.and_then(|json| decode::<(), ErrorJson>(&json));
    let told = checked.map_err(|error| error.to_string())?;
    told.map_err(|error| Error::from(error).to_string())
}

fn settle<T>(response: std::result::Result<std::result::Result<T, ErrorJson>, CallError>) -> Result<T> {
    match response {
        Ok(response) => response.map_err(Error::from),
        Err(error) => Err(away(&error)),
    }
}

/// Checks that a store has responded, and not another server.
pub(super) fn check(response: &Response<'_>) -> Result<()> {
    plimsoll_rpc::check_status(response).map_err(|error| away(&error))
}

/// Logs a missing or incomplete response. The outcome is unknown then.
fn away(error: &CallError) -> Error {
    match error {
        CallError::Busy => return Error::Busy,
        CallError::Secret => tracing::error!("the store does not answer: {error}"),
        _ => tracing::warn!("the store does not answer: {error}"),
    }
    Error::Away
}

/// As [`away`], for a transfer.
pub(super) fn broken(error: transport::Error) -> Error {
    away(&error.into())
}
