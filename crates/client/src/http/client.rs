//! A client of one server.
//!
//! Not here: more than one request at a time. What must hold: a connection is kept only if nothing is left
//! over on it in either direction; a request is repeated once at most, and only if a kept connection turned
//! out to be closed.

use core::net::SocketAddr;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use plimsoll_io::{Address, Deadline, Either, Elapsed, Io, select};
use plimsoll_wire::http::response::ResponseHead;

use super::connection::{Await, Connection, Said};
use super::error::{Error, When};
use super::limits::{INTERIM_ANSWERS_MAX, LAST_WORDS_TIME_MAX, Times};
use super::outgoing::{Leave, Outgoing};
use super::request::Request;
use super::response::{Owner, Response};
use super::url::{Place, Url};

/// The addresses of a name, being looked up.
pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>>>>;

/// Looks up a name and a port. There is no resolver here: a program passes the system's, run where it may
/// block.
pub type Resolve = Rc<dyn Fn(&str, u16) -> Resolving>;

/// A client of one server, with one connection that it keeps.
pub struct Client {
    io: Io,
    base: Url,
    pub(super) times: Times,
    resolve: Option<Resolve>,
    /// For what is waited for from the server.
    pub(super) deadline: Deadline,
    /// For what is sent at the same time.
    sending: Deadline,
    pub(super) kept: Option<Connection>,
    /// Whether a request may be repeated on a fresh connection.
    repeats: bool,
    /// How long leave to send a streamed body is waited for, where none is sent without.
    leave_time: Option<Duration>,
    interims_max: u32,
}

/// A connection that a client has kept, for another client of the same server.
pub struct Kept(Option<Connection>);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.take().into_iter().for_each(Connection::close);
    }
}

impl Client {
    /// A client of the server at `base`. It connects when the first request is sent.
    #[must_use]
    pub fn new(io: &Io, base: Url) -> Client {
        let (deadline, sending) = (io.deadline(), io.deadline());
        Client {
            io: io.clone(),
            base,
            times: Times::default(),
            resolve: None,
            deadline,
            sending,
            kept: None,
            repeats: true,
            leave_time: None,
            interims_max: INTERIM_ANSWERS_MAX,
        }
    }

    /// Waits otherwise than by default.
    #[must_use]
    pub fn with_times(mut self, times: Times) -> Client {
        self.times = times;
        self
    }

    /// Sends no request twice, also where a kept connection turned out to be closed and it would do no harm.
    #[must_use]
    pub fn without_repeats(mut self) -> Client {
        self.repeats = false;
        self
    }

    /// Sends no streamed body before the server has given leave for it, and waits as long as `time` for that,
    /// anew after each interim answer: the first piece is asked for when the server has said that it takes
    /// the body.
    #[must_use]
    pub fn with_leave(mut self, time: Duration) -> Client {
        self.leave_time = Some(time);
        self
    }

    /// Takes as many interim answers to one request, anew after each piece of a streamed body: a server may
    /// say for so long that it is at it (102).
    #[must_use]
    pub fn with_interims(mut self, most: u32) -> Client {
        self.interims_max = most;
        self
    }

    /// Begins with a connection that another client of the same server has kept.
    #[must_use]
    pub fn with_kept(mut self, mut kept: Kept) -> Client {
        self.kept = kept.0.take();
        self
    }

    /// The connection that it has kept, for another client.
    #[must_use]
    pub fn into_kept(mut self) -> Option<Kept> {
        self.kept.take().map(|kept| Kept(Some(kept)))
    }

    /// Ends the connection that it has kept; the next request makes another.
    pub fn close(&mut self) {
        drop(Kept(self.kept.take()));
    }

    /// Looks names up by `resolve`; without, a server's URL has an IP address or `localhost`.
    #[must_use]
    pub fn with_resolve(mut self, resolve: Resolve) -> Client {
        self.resolve = Some(resolve);
        self
    }

    /// The server.
    #[must_use]
    pub fn base(&self) -> &Url {
        &self.base
    }

    /// Sends a request and waits for the head of its answer. The answer's body is received by whoever
    /// asked; if the answer is dropped before its end, so is the connection. Dropping this future gives the
    /// request up.
    ///
    /// # Errors
    /// There is no answer, or what came is none.
    pub async fn send(&mut self, request: Request<'_>) -> Result<Response<'_>, Error> {
        let (connection, head, keeps) = self.ask(request).await?;
        Ok(Response::new(Owner::Lent(self), connection, head, keeps))
    }

    /// As [`Client::send`], where the answer takes the client along: [`Response::into_kept`] gives back what
    /// it has kept.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub async fn send_along(mut self, request: Request<'_>) -> Result<Response<'static>, Error> {
        let (connection, head, keeps) = self.ask(request).await?;
        Ok(Response::new(Owner::Taken(Box::new(self)), connection, head, keeps))
    }

    /// One request and the head of its answer; and whether the connection can go on.
    async fn ask(&mut self, request: Request<'_>) -> Result<(Connection, ResponseHead, bool), Error> {
        let mut outgoing = Outgoing::new(&self.base, request, self.leave_time)?;
        let (connection, head) = self.exchange(&mut outgoing).await?;
        let keeps = head.keeps_alive() && outgoing.is_gone(&connection.tx);
        Ok((connection, head, keeps))
    }

    /// One request and the head of its answer, on the kept connection if there is one.
    async fn exchange(&mut self, outgoing: &mut Outgoing<'_>) -> Result<(Connection, ResponseHead), Error> {
        if let Some(mut kept) = self.kept.take()
            && kept.is_quiet()
        {
            match self.attempt(&mut kept, outgoing).await {
                Ok(head) => return Ok((kept, head)),
                // Most likely it was closed as we asked. If not, once more is the same as once.
                Err(Error::Broken { .. })
                    if self.repeats && kept.inbox.is_untouched() && outgoing.may_be_repeated() => {}
                Err(error) => return Err(error),
            }
        }
        let mut fresh = self.connect().await?;
        let head = self.attempt(&mut fresh, outgoing).await?;
        Ok((fresh, head))
    }

    /// Sends a request and watches for its answer meanwhile: "A client sending a message body SHOULD
    /// monitor the network connection for an error response while it is transmitting the request" (RFC
    /// 9112, section 9.5), and whatever final answer comes ends the sending.
    async fn attempt(
        &self,
        connection: &mut Connection,
        outgoing: &mut Outgoing<'_>,
    ) -> Result<ResponseHead, Error> {
        let said = Said::default();
        let leave = Leave { deadline: &self.sending, between_bytes: self.times.between_bytes, said: &said };
        let Connection { inbox, tx } = connection;
        let wait = Await {
            method: outgoing.method,
            deadline: &self.deadline,
            first_byte: self.times.first_byte,
            interims_max: self.interims_max,
            said: &said,
        };
        inbox.begin();
        let sent = match select(inbox.final_head(&wait), outgoing.send(tx, &leave)).await {
            Either::Left(answered) => return answered,
            Either::Right(sent) => sent,
        };
        // A server that says no may close while we still send: what it said is worth more than that it did.
        let patience = match sent {
            Ok(()) => self.times.first_byte,
            Err(Error::Broken { .. }) => LAST_WORDS_TIME_MAX,
            Err(error) => return Err(error),
        };
        self.deadline.after(patience);
        match (self.deadline.within(inbox.final_head(&wait)).await, sent) {
            (Ok(Ok(head)), _) => Ok(head),
            (_, Err(broken)) => Err(broken),
            (Ok(Err(error)), Ok(())) => Err(error),
            (Err(Elapsed), Ok(())) => Err(Error::Late(When::Waiting)),
        }
    }

    /// Connects to the first of the server's addresses that lets us.
    async fn connect(&self) -> Result<Connection, Error> {
        let mut failed = io::Error::from(io::ErrorKind::AddrNotAvailable);
        for (at, address) in self.addresses().await?.iter().enumerate() {
            self.deadline.after(self.times.connect);
            let error = match self.deadline.within(self.io.connect(address)).await {
                Ok(Ok(stream)) => return Ok(Connection::new(stream)),
                Ok(Err(error)) => error,
                Err(Elapsed) => io::ErrorKind::TimedOut.into(),
            };
            // The first is the one that was meant most.
            if at == 0 {
                failed = error;
            }
        }
        Err(Error::Connect { to: self.base.to_string(), source: failed })
    }

    async fn addresses(&self) -> Result<Vec<Address>, Error> {
        let (host, port) = match &self.base.place {
            Place::At(addresses) => return Ok(addresses.clone()),
            Place::Named { host, port } => (host, *port),
        };
        let resolved = match &self.resolve {
            Some(resolve) => {
                let resolving = resolve(host, port);
                self.deadline.after(self.times.connect);
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
        if let Some(kept) = self.kept.take() {
            kept.close();
        }
    }
}
