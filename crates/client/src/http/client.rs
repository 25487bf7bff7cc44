//! A client of one server.
//!
//! It does not send more than one request at a time. Invariants: a connection is kept alive only if no bytes
//! are left over in either direction. A request is repeated once at most, and only if a keep-alive
//! connection turned out to be closed.

use core::net::SocketAddr;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_io::{Address, Deadline, Either, Elapsed, Io, Stream, select};
use plimsoll_tls::{Connector, HandshakeError};
use plimsoll_wire::http::response::ResponseHead;

use super::connection::Connection;
use super::error::{Error, When};
use super::interim::{HeadWait, InterimState};
use super::limits::{INTERIM_ANSWERS_MAX, LATE_ANSWER_TIME_MAX, Times};
use super::outgoing::{Outgoing, SendContext};
use super::request::Request;
use super::response::{Owner, Response};
use super::url::{ServerAddress, Url};

/// A pending lookup of a name's addresses.
pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>>>>;

/// Looks up a name and a port. This crate has no resolver: a program passes the operating system's, run
/// where it may block.
pub type Resolve = Rc<dyn Fn(&str, u16) -> Resolving>;

/// A client of one server, with one keep-alive connection.
pub struct Client {
    io: Io,
    base: Url,
    pub(super) times: Times,
    resolve: Option<Resolve>,
    tls: Option<Connector>,
    /// For waits for the server's answer.
    pub(super) deadline: Deadline,
    /// For waits of the sending side, which runs at the same time.
    sending: Deadline,
    pub(super) keep_alive: Option<Connection>,
    /// Whether a request may be repeated on a new connection.
    repeats: bool,
    /// How long to wait for a 100 (Continue) that is required before a streamed body; `None` if it is not
    /// required.
    continue_time: Option<Duration>,
    interims_max: u32,
}

/// A keep-alive connection, to be passed to another client of the same server.
pub struct KeepAlive(Option<Connection>);

impl Drop for KeepAlive {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(Connection::close);
    }
}

impl Client {
    /// Creates a client of the server at `base`. It connects when the first request is sent.
    #[must_use]
    pub fn new(io: &Io, base: Url) -> Client {
        let (deadline, sending) = (io.deadline(), io.deadline());
        Client {
            io: io.clone(),
            base,
            times: Times::default(),
            resolve: None,
            tls: None,
            deadline,
            sending,
            keep_alive: None,
            repeats: true,
            continue_time: None,
            interims_max: INTERIM_ANSWERS_MAX,
        }
    }

    /// Replaces the default timeouts.
    #[must_use]
    pub fn with_times(mut self, times: Times) -> Client {
        self.times = times;
        self
    }

    /// Disables repeats, even of an idempotent request when a keep-alive connection turned out to be closed.
    #[must_use]
    pub fn without_repeats(mut self) -> Client {
        self.repeats = false;
        self
    }

    /// Requires a 100 (Continue) before a streamed body, and waits up to `time` for it, restarted by each
    /// interim answer. The first piece is requested from the source when the server has agreed to take the
    /// body.
    #[must_use]
    pub fn with_required_continue(mut self, time: Duration) -> Client {
        self.continue_time = Some(time);
        self
    }

    /// Accepts up to `most` interim answers to one request, counted anew after each piece of a streamed
    /// body. A server may report for long that it is processing (102).
    #[must_use]
    pub fn with_interims_max(mut self, most: u32) -> Client {
        self.interims_max = most;
        self
    }

    /// Starts with the keep-alive connection of another client of the same server.
    #[must_use]
    pub fn with_connection(mut self, mut keep_alive: KeepAlive) -> Client {
        self.keep_alive = keep_alive.0.take();
        self
    }

    /// Returns its keep-alive connection, for another client.
    #[must_use]
    pub fn into_connection(mut self) -> Option<KeepAlive> {
        self.keep_alive.take().map(|keep_alive| KeepAlive(Some(keep_alive)))
    }

    /// Ends its keep-alive connection; the next request opens another.
    pub fn close(&mut self) {
        drop(KeepAlive(self.keep_alive.take()));
    }

    /// Resolves names by `resolve`. Without it, a server's URL must have an IP address or `localhost`.
    #[must_use]
    pub fn with_resolve(mut self, resolve: Resolve) -> Client {
        self.resolve = Some(resolve);
        self
    }

    /// Encrypts connections by `tls`. Without it, a server with an `https` URL cannot be reached.
    #[must_use]
    pub fn with_tls(mut self, tls: Connector) -> Client {
        self.tls = Some(tls);
        self
    }

    /// Connects, unless there is a keep-alive connection, so that errors of connecting precede the first
    /// request.
    ///
    /// # Errors
    /// As [`Dial::connect`].
    pub async fn connect_early(&mut self) -> Result<(), Error> {
        if self.keep_alive.is_none() {
            let mut connection = self.connect().await?;
            connection.rest();
            self.keep_alive = Some(connection);
        }
        Ok(())
    }

    /// Returns the server's URL.
    #[must_use]
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// Sends a request and waits for the head of its answer. The caller receives the answer's body; if the
    /// answer is dropped before its end, so is the connection. Dropping this future abandons the request.
    ///
    /// # Errors
    /// There is no answer, or the received bytes are not one.
    pub async fn send(&mut self, request: Request<'_>) -> Result<Response<'_>, Error> {
        let (connection, head, keeps) = self.ask(request).await?;
        Ok(Response::new(Owner::Lent(self), connection, head, keeps))
    }

    /// As [`Client::send`], but moves the client into the answer: [`Response::into_connection`] returns its
    /// keep-alive connection.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn send_owned(mut self, request: Request<'_>) -> Result<Response<'static>, Error> {
        let (connection, head, keeps) = self.ask(request).await?;
        Ok(Response::new(Owner::Taken(Box::new(self)), connection, head, keeps))
    }

    /// Performs one request. Returns the head of its answer, and whether the connection can be kept alive.
    async fn ask(&mut self, request: Request<'_>) -> Result<(Connection, ResponseHead, bool), Error> {
        let mut outgoing = Outgoing::new(&self.base, request, self.continue_time)?;
        let (connection, head) = self.exchange(&mut outgoing).await?;
        let keeps = head.keeps_alive() && outgoing.is_sent(&connection.tx);
        Ok((connection, head, keeps))
    }

    /// Performs one request, on the keep-alive connection if there is one, and returns the head of its
    /// answer.
    async fn exchange(&mut self, outgoing: &mut Outgoing<'_>) -> Result<(Connection, ResponseHead), Error> {
        if let Some(mut keep_alive) = self.keep_alive.take()
            && keep_alive.is_quiet()
        {
            match self.attempt(&mut keep_alive, outgoing).await {
                Ok(head) => return Ok((keep_alive, head)),
                // Most likely the server closed it at the same moment. If not, repeating has the same effect
                // as once.
                Err(Error::Broken { .. })
                    if self.repeats && keep_alive.inbox.is_untouched() && outgoing.may_be_repeated() => {}
                Err(error) => return Err(error),
            }
        }
        let mut fresh = self.connect().await?;
        let head = self.attempt(&mut fresh, outgoing).await?;
        Ok((fresh, head))
    }

    /// Sends a request and watches for its answer meanwhile: "A client sending a message body SHOULD monitor
    /// the network connection for an error response while it is transmitting the request" (RFC 9112, section
    /// 9.5). Any final answer ends the sending.
    async fn attempt(
        &self,
        connection: &mut Connection,
        outgoing: &mut Outgoing<'_>,
    ) -> Result<ResponseHead, Error> {
        let interim_state = InterimState::default();
        let context = SendContext {
            deadline: &self.sending,
            between_bytes: self.times.between_bytes,
            interim_state: &interim_state,
        };
        let Connection { inbox, tx, .. } = connection;
        let wait = HeadWait {
            method: outgoing.method,
            deadline: &self.deadline,
            first_byte: self.times.first_byte,
            interims_max: self.interims_max,
            interim_state: &interim_state,
        };
        let sent = match select(wait.final_head(inbox), outgoing.send(tx, &context)).await {
            Either::Left(answered) => return answered,
            Either::Right(sent) => sent,
        };
        // A server that refuses may close before all is sent: its answer is more useful than the send error.
        let patience = match sent {
            Ok(()) => self.times.first_byte,
            Err(Error::Broken { .. }) => LATE_ANSWER_TIME_MAX,
            Err(error) => return Err(error),
        };
        self.deadline.after(patience);
        match (self.deadline.within(wait.final_head(inbox)).await, sent) {
            (Ok(Ok(head)), _) => Ok(head),
            (_, Err(broken)) => Err(broken),
            (Ok(Err(error)), Ok(())) => Err(error),
            (Err(Elapsed), Ok(())) => Err(Error::Late(When::Waiting)),
        }
    }

    async fn connect(&self) -> Result<Connection, Error> {
        let dial = Dial {
            io: &self.io,
            resolve: self.resolve.as_ref(),
            tls: self.tls.as_ref(),
            preface: &[],
            deadline: &self.deadline,
        };
        dial.connect(&self.base, self.times.connect).await.map(Connection::new)
    }
}

/// The means to connect to a server by its URL.
pub struct Dial<'a> {
    /// The engine.
    pub io: &'a Io,
    /// Resolves names; without it, a URL must have an IP address or `localhost`.
    pub resolve: Option<&'a Resolve>,
    /// Encrypts the connection if the URL's scheme is `https`.
    pub tls: Option<&'a Connector>,
    /// Bytes that are sent in clear before everything else: the header of the PROXY protocol.
    pub preface: &'a [u8],
    /// For the waits.
    pub deadline: &'a Deadline,
}

impl Dial<'_> {
    /// Connects to the first of the server's addresses that accepts, and waits at most `time_max` for each,
    /// and as long for the TLS handshake.
    ///
    /// # Errors
    /// The error of the first address, which is the preferred one, or of the handshake.
    pub async fn connect(&self, url: &Url, time_max: Duration) -> Result<Stream, Error> {
        let tls = match (url.is_https(), self.tls) {
            (true, None) => {
                return Err(Error::Request("the URL is https, but this client has no TLS settings"));
            }
            (true, tls) => tls,
            (false, _) => None,
        };
        let mut stream = self.open(url, time_max).await?;
        if !self.preface.is_empty() {
            stream.tx.push_slice(self.preface);
        }
        if let Some(tls) = tls {
            self.deadline.after(time_max);
            let connected = self.deadline.within(tls.connect(self.io, &mut stream, url.host())).await;
            let connected = connected.unwrap_or(Err(HandshakeError::Late));
            connected.map_err(|error| Error::of_handshake(url, error))?;
        }
        Ok(stream)
    }

    async fn open(&self, url: &Url, time_max: Duration) -> Result<Stream, Error> {
        let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for (at, address) in self.addresses(url, time_max).await?.iter().enumerate() {
            self.deadline.after(time_max);
            let error = match self.deadline.within(self.io.connect(address)).await {
                Ok(Ok(stream)) => return Ok(stream),
                Ok(Err(error)) => error,
                Err(Elapsed) => io::ErrorKind::TimedOut.into(),
            };
            if at == 0 {
                failed = error;
            }
        }
        Err(Error::Connect { to: url.to_string(), source: failed })
    }

    async fn addresses(&self, url: &Url, time_max: Duration) -> Result<Vec<Address>, Error> {
        let (host, port) = match &url.address {
            ServerAddress::Known(addresses) => return Ok(addresses.clone()),
            ServerAddress::Named { host, port } => (host, *port),
        };
        let resolved = match self.resolve {
            Some(resolve) => {
                let resolving = resolve(host, port);
                self.deadline.after(time_max);
                let timed_out = |Elapsed| Err(io::ErrorKind::TimedOut.into());
                self.deadline.within(resolving).await.unwrap_or_else(timed_out)
            }
            None => Err(io::ErrorKind::Unsupported.into()),
        };
        let addresses = resolved.map_err(|source| Error::Resolve { host: host.clone(), source })?;
        Ok(addresses.into_iter().map(Address::Ip).collect())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(keep_alive) = self.keep_alive.take() {
            keep_alive.close();
        }
    }
}
