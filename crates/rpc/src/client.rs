//! A client of a tier's server: calls, and the pool of connections for them.
//!
//! Each thread keeps idle connections of its own, because a connection belongs to its thread's engine. The
//! bounds apply to all threads together. Invariant: a connection is kept only after a complete response,
//! and while it is recent: the server may close an older one just as a request is sent.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plimsoll_client::http::{
    Body, Client, Connector, KeepAlive, Request as HttpRequest, Resolve, Response, Times, Url,
};
use plimsoll_io::{Instant, Io, Work};
use plimsoll_wire::http::status::Status;
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use crate::call_error::CallError;
use crate::envelope::decode;
use crate::limits::{
    IDLE_CONNECTION_TIME, INTERIM_RESPONSE_INTERVAL, PARSED_INLINE_BYTES_MAX, REQUEST_BYTES_USUAL,
};
use crate::method::{ConnectionClass, Method, Request};
use crate::network::Network;
use crate::permits::{CallPermit, Permits};
use crate::secret::Secret;

/// The address of a tier's server, and the secret for it.
#[derive(Clone)]
pub struct ServerAddress {
    /// Its URL.
    pub url: Url,
    /// The secret that it shares with its clients.
    pub secret: Secret,
    /// Resolves the name of its host; without it, the URL must have an IP address or `localhost`.
    pub resolve: Option<fn(&Io) -> Resolve>,
    /// Encrypts connections, if the URL is `https`.
    pub tls: Option<Connector>,
}

/// The bounds of a client, for all threads together.
#[derive(Clone, Copy, Debug)]
pub struct ClientLimits {
    /// Calls of [`ConnectionClass::Quick`] at a time.
    pub quick_max: usize,
    /// Calls of [`ConnectionClass::Slow`] at a time.
    pub slow_max: usize,
    /// Of these, the calls of one network, or the transfers of one account.
    pub slow_share_max: usize,
    /// Calls of one class that wait.
    pub waiting_max: usize,
    /// Idle connections that are recent enough for another call.
    pub idle_max: usize,
    /// How long connecting may take.
    pub connect_time: Duration,
    /// How long the server may send nothing. While it works on a request, it sends interim responses.
    pub silence_time: Duration,
    /// Bytes of a response.
    pub response_bytes_max: usize,
}

/// A client of a tier's server.
pub struct RpcClient {
    address: ServerAddress,
    limits: ClientLimits,
    /// The URL as text: the key of its connections in a thread's pool.
    pool_key: Arc<str>,
    authorization: Zeroizing<String>,
    quick: Arc<Permits>,
    slow: Arc<Permits>,
    idle: Arc<IdleSlots>,
    keeps_alive: AtomicBool,
}

/// An idle connection in a thread's pool.
struct Idle {
    connection: KeepAlive,
    since: Instant,
    _slot: IdleSlot,
}

/// The slots of idle connections, for all threads together. An expired connection occupies no slot: it
/// stays open until its thread's next call, and a thread without calls must not keep the slots.
#[derive(Default)]
struct IdleSlots(Mutex<Vec<Instant>>);

/// The slot of one idle connection, until it is dropped.
struct IdleSlot {
    slots: Arc<IdleSlots>,
    since: Instant,
}

impl IdleSlots {
    /// Takes a slot for a connection that is idle from now on, or returns `None` if `max` are taken.
    fn take(self: &Arc<IdleSlots>, now: Instant, max: usize) -> Option<IdleSlot> {
        let mut taken = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        taken.retain(|since| !is_expired(*since, now));
        if taken.len() >= max {
            return None;
        }
        taken.push(now);
        drop(taken);
        Some(IdleSlot { slots: Arc::clone(self), since: now })
    }
}

impl Drop for IdleSlot {
    fn drop(&mut self) {
        let mut taken = self.slots.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Slots of the same instant are interchangeable. One that has expired may be gone.
        if let Some(slot) = taken.iter().position(|since| *since == self.since) {
            taken.swap_remove(slot);
        }
    }
}

/// Returns whether the server may be about to close a connection that is idle since then.
fn is_expired(since: Instant, now: Instant) -> bool {
    now >= since + IDLE_CONNECTION_TIME
}

impl RpcClient {
    /// Creates a client of the server at `address`. It connects when it is first called.
    #[must_use]
    pub fn new(address: ServerAddress, limits: ClientLimits) -> RpcClient {
        let secret = Zeroizing::new(String::from_utf8_lossy(address.secret.bytes()).into_owned());
        RpcClient {
            pool_key: address.url.to_string().into(),
            authorization: Zeroizing::new(format!("Bearer {}", *secret)),
            address,
            limits,
            quick: Permits::new(limits.quick_max, limits.quick_max, limits.waiting_max),
            slow: Permits::new(limits.slow_max, limits.slow_share_max, limits.waiting_max),
            idle: Arc::default(),
            keeps_alive: AtomicBool::new(true),
        }
    }

    /// Sets whether connections are kept after a call. Without that, each call has a connection of its own.
    pub fn set_keep_alive(&self, keeps_alive: bool) {
        self.keeps_alive.store(keeps_alive, Ordering::Relaxed);
    }

    /// Sends a request, and waits for the response, for the method's deadline at most. The inner result is
    /// the server's. If the future is dropped, the server may have executed the request or not.
    ///
    /// # Errors
    /// There is no response.
    pub async fn call<T, E>(&self, io: &Io, request: &impl Request) -> Result<Result<T, E>, CallError>
    where
        T: DeserializeOwned + Send + 'static,
        E: DeserializeOwned + Send + 'static,
    {
        // Serialising strings and numbers into memory cannot fail.
        let mut body = Zeroizing::new(Vec::with_capacity(REQUEST_BYTES_USUAL));
        let _ = serde_json::to_writer(&mut *body, request);
        let method = request.method();
        let response = async {
            let json = self.exchange(io, method, request.network(), body).await?;
            if json.len() <= PARSED_INLINE_BYTES_MAX {
                return decode(&json);
            }
            let parsed = io.offload(Work::Listings, move |_| decode(&json)).await;
            parsed.unwrap_or(Err(CallError::Busy))
        };
        // Boxed: inlining it would enlarge the futures of all callers, which run on small stacks too.
        within_deadline(io, method, Box::pin(response)).await
    }

    /// As [`RpcClient::call`], with the JSON of the request and of the response.
    ///
    /// # Errors
    /// There is no response.
    pub async fn call_with(
        &self,
        io: &Io,
        method: Method,
        network: Network,
        body: Zeroizing<Vec<u8>>,
    ) -> Result<Vec<u8>, CallError> {
        within_deadline(io, method, self.exchange(io, method, network, body)).await
    }

    /// Sends a request and receives the response, with no deadline for both together. Boxed: its code is
    /// compiled once, not for each kind of response.
    fn exchange<'a>(
        &'a self,
        io: &'a Io,
        method: Method,
        network: Network,
        mut body: Zeroizing<Vec<u8>>,
    ) -> Pin<Box<dyn Future<Output = Result<Vec<u8>, CallError>> + 'a>> {
        Box::pin(async move {
            let _permit = self.permit(method.class, network).await?;
            let request = self.request("POST", method.path).field("Content-Type", "application/json");
            // The client wipes it.
            let body = Body::Bytes(std::mem::take(&mut *body));
            let request = request.idempotent_if(method.is_idempotent).body(body);
            let response = self.client(io, method.deadline).send_owned(request).await?;
            self.receive(io, response).await
        })
    }

    /// Receives the body of a response, and keeps its connection.
    ///
    /// # Errors
    /// The response is incomplete, or not that of a tier's server.
    pub async fn receive(&self, io: &Io, mut response: Response<'static>) -> Result<Vec<u8>, CallError> {
        check_status(&response)?;
        let body = response.bytes(self.limits.response_bytes_max).await?;
        self.keep(io, response);
        Ok(body)
    }

    /// Takes a permit for a call that the caller sends by itself, as a file transfer. Waits for
    /// `wait_time` at most. Its holder is the owner of `io`.
    ///
    /// # Errors
    /// [`CallError::Busy`].
    pub async fn transfer_permit(&self, io: &Io, wait_time: Duration) -> Result<CallPermit, CallError> {
        let deadline = io.deadline();
        deadline.after(wait_time);
        let permit = deadline.within(self.slow.acquire(io.owner().number().to_le_bytes().to_vec())).await;
        permit.ok().flatten().ok_or(CallError::Busy)
    }

    async fn permit(
        &self,
        class: ConnectionClass,
        network: Network,
    ) -> Result<Option<CallPermit>, CallError> {
        let permits = match class {
            ConnectionClass::Unbounded => return Ok(None),
            ConnectionClass::Quick => &self.quick,
            ConnectionClass::Slow => &self.slow,
        };
        permits.acquire(network).await.map(Some).ok_or(CallError::Busy)
    }

    /// Creates a request that presents the secret.
    #[must_use]
    pub fn request<'a>(&self, method: &'a str, target: &'a str) -> HttpRequest<'a> {
        HttpRequest::new(method, target).field("Authorization", self.authorization.as_str())
    }

    /// Creates an HTTP client for one request, on a connection from the pool if there is one. The server may
    /// work on the request for as long as `patience`, if it sends interim responses.
    #[must_use]
    pub fn client(&self, io: &Io, patience: Duration) -> Client {
        let ClientLimits { connect_time, silence_time, .. } = self.limits;
        let times = Times { connect: connect_time, first_byte: silence_time, between_bytes: silence_time };
        let interims = patience.as_secs() / INTERIM_RESPONSE_INTERVAL.as_secs();
        let interims = u32::try_from(interims).unwrap_or(u32::MAX);
        let client = Client::new(io, self.address.url.clone()).with_times(times).with_interims_max(interims);
        let client = match self.address.resolve {
            Some(resolve) => client.with_resolve(resolve(io)),
            None => client,
        };
        let client = match &self.address.tls {
            Some(tls) => client.with_tls(tls.clone()),
            None => client,
        };
        match self.idle_connection(io) {
            Some(connection) => client.with_connection(connection),
            None => client,
        }
    }

    fn idle_connection(&self, io: &Io) -> Option<KeepAlive> {
        let idle: Idle = io.resource_pool().take(&self.pool_key)?;
        if !is_expired(idle.since, io.now()) {
            return Some(idle.connection);
        }
        // The remaining ones are older.
        while io.resource_pool().take::<Idle>(&self.pool_key).is_some() {}
        None
    }

    /// Returns the connection of a complete response to the pool.
    pub fn keep(&self, io: &Io, response: Response<'static>) {
        let Some(connection) = response.into_connection() else { return };
        let since = io.now();
        if self.keeps_alive.load(Ordering::Relaxed)
            && let Some(slot) = self.idle.take(since, self.limits.idle_max)
        {
            let idle = Idle { connection, since, _slot: slot };
            io.resource_pool().put(&self.pool_key, idle, self.limits.idle_max);
        }
    }
}

/// Awaits the result of a call for the method's deadline at most.
async fn within_deadline<T>(
    io: &Io,
    method: Method,
    result: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    let deadline = io.deadline();
    deadline.after(method.deadline);
    deadline.within(result).await.unwrap_or(Err(CallError::Deadline))
}

/// Checks that a tier's server has responded, and not another one.
///
/// # Errors
/// [`CallError::Secret`], [`CallError::Unknown`], [`CallError::Status`].
pub fn check_status(response: &Response<'_>) -> Result<(), CallError> {
    match response.status() {
        Status::OK => Ok(()),
        Status::UNAUTHORIZED => Err(CallError::Secret),
        status @ (Status::BAD_REQUEST | Status::NOT_FOUND) => Err(CallError::Unknown(status.code())),
        status => Err(CallError::Status(status.code())),
    }
}
