//! The server side of a call: a tier's methods, independent of the transport.
//!
//! It does not check the secret: the transport does, before it calls a method.

use std::pin::Pin;

use plimsoll_io::Io;
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use crate::client::RpcClient;
use crate::method::Method;
use crate::network::Network;

/// A call that the server executes.
pub struct Call<'a> {
    /// The JSON of the response.
    pub response: Pin<Box<dyn Future<Output = Vec<u8>> + 'a>>,
    /// Whether the work is aborted when the client disconnects: long work for a client that has gone would
    /// only delay others.
    pub is_aborted_with_client: bool,
}

/// Why a request is not executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallRefused {
    /// The service has no such method.
    NoSuchMethod,
    /// The request is malformed; the text says why.
    Malformed(String),
}

/// The methods of a tier. Their clients have presented the secret.
pub trait Service: Send + Sync {
    /// Returns whether it has a method at the URL path.
    fn has(&self, path: &str) -> bool;

    /// Begins to execute the method at `path`, if it has one.
    ///
    /// # Errors
    /// [`CallRefused`].
    fn call<'a>(&'a self, io: &'a Io, path: &str, request: &[u8]) -> Result<Call<'a>, CallRefused>;
}

impl<'a> Call<'a> {
    /// A call that is executed even if its client disconnects.
    pub fn new(response: impl Future<Output = Vec<u8>> + 'a) -> Call<'a> {
        Call { response: Box::pin(response), is_aborted_with_client: false }
    }
}

/// Parses the JSON of a request.
///
/// # Errors
/// [`CallRefused::Malformed`].
pub fn parse<T: DeserializeOwned>(request: &[u8]) -> Result<T, CallRefused> {
    serde_json::from_slice(request).map_err(|error| CallRefused::Malformed(error.to_string()))
}

/// A service that forwards calls to another server, unread. Under the engine `process`, each process that
/// serves a connection has one.
pub struct Forwarder {
    client: RpcClient,
    methods: &'static [Method],
    /// The response if the other server does not answer.
    unavailable: Vec<u8>,
}

impl Forwarder {
    /// Forwards calls of `methods` to `client`'s server, and responds with `unavailable` if that does not.
    #[must_use]
    pub fn new(client: RpcClient, methods: &'static [Method], unavailable: Vec<u8>) -> Forwarder {
        Forwarder { client, methods, unavailable }
    }
}

impl Service for Forwarder {
    fn has(&self, path: &str) -> bool {
        self.methods.iter().any(|method| method.path == path)
    }

    fn call<'a>(&'a self, io: &'a Io, path: &str, request: &[u8]) -> Result<Call<'a>, CallRefused> {
        let method = self.methods.iter().find(|method| method.path == path);
        let (method, request) = (*method.ok_or(CallRefused::NoSuchMethod)?, Zeroizing::new(request.to_vec()));
        Ok(Call::new(async move {
            match self.client.call_with(io, method, Network::new(), request).await {
                Ok(response) => response,
                Err(error) => {
                    tracing::error!("a request could not be forwarded: {error}");
                    self.unavailable.clone()
                }
            }
        }))
    }
}
