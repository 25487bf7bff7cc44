//! A runtime of tokio for one connection to a database: the calling thread polls the connection's driver
//! until the call ends or its deadline has passed.
//!
//! Drivers need tokio. The rest of the server does not, so tokio is a guest here: it runs on the thread of
//! the call, and stands still between calls. Invariants: a call ends at its deadline, whatever the server
//! sends meanwhile. A call to the C library's resolver can outlast it, on a thread of the runtime. A
//! connection is dropped before its [`Guest`].

use std::future::{self, Future};
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::runtime::{Builder, Runtime};

use super::deadline::Deadline;
use super::endpoint::Endpoint;
use super::stream::{ReplyBudget, Stream};
use crate::limits::{DATABASE_CONNECTIONS_MAX, DATABASE_RESOLVER_THREADS_MAX};

/// The call did not end before its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it gave no answer in time")]
pub(in crate::directory) struct Late;

impl From<Late> for io::Error {
    fn from(late: Late) -> io::Error {
        io::Error::new(io::ErrorKind::TimedOut, late)
    }
}

/// The runtime of one connection, and the limits of the present call.
pub(in crate::directory) struct Guest {
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
    idle: Arc<IdleRuntimes>,
    by: Deadline,
    budget: ReplyBudget,
}

/// Runtimes without a connection: a new connection takes one of them, because a new runtime costs six system
/// calls.
#[derive(Default)]
pub(in crate::directory) struct IdleRuntimes(Mutex<Vec<Runtime>>);

impl IdleRuntimes {
    fn take(&self) -> Option<Runtime> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn put(&self, runtime: Runtime) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if (idle.len() as u64) < DATABASE_CONNECTIONS_MAX {
            idle.push(runtime);
        } else {
            runtime.shutdown_background();
        }
    }
}

impl Drop for IdleRuntimes {
    fn drop(&mut self) {
        // Without waiting for the resolver.
        while let Some(runtime) = self.take() {
            runtime.shutdown_background();
        }
    }
}

impl Guest {
    /// Takes an idle runtime, or creates one, for a connection whose first call has this deadline.
    ///
    /// # Errors
    /// The process has too many open files.
    pub(in crate::directory) fn new(idle: &Arc<IdleRuntimes>, by: Deadline) -> io::Result<Guest> {
        let create = || {
            let mut builder = Builder::new_current_thread();
            builder.enable_io().enable_time().max_blocking_threads(DATABASE_RESOLVER_THREADS_MAX).build()
        };
        let runtime = idle.take().map_or_else(create, Ok)?;
        let budget = ReplyBudget::default();
        Ok(Guest { runtime: Some(runtime), idle: Arc::clone(idle), by, budget })
    }

    /// Begins a call with this deadline.
    pub(in crate::directory) fn set_deadline(&mut self, by: Deadline) {
        self.by = by;
        self.budget.renew();
    }

    /// Opens the connection's socket. This blocks.
    ///
    /// # Errors
    /// No address of the host has accepted before the deadline.
    pub(in crate::directory) fn connect(&self, endpoint: &Endpoint) -> io::Result<Stream> {
        let opened = self.run(Stream::open(endpoint, self.by, self.budget.clone()));
        opened.unwrap_or_else(|late| Err(late.into()))
    }

    /// Runs `work` to its end, or to the deadline. This blocks.
    ///
    /// # Errors
    /// The deadline has passed. `work` is dropped, and its connection must not be used again.
    pub(in crate::directory) fn run<F: Future>(&self, work: F) -> Result<F::Output, Late> {
        let runtime = self.runtime.as_ref().ok_or(Late)?;
        let by = self.by.instant().into();
        runtime.block_on(async { tokio::time::timeout_at(by, work).await }).map_err(|_| Late)
    }

    /// Runs `work`, and polls the driver of the connection meanwhile, until one of them ends. Returns the
    /// results of both. This blocks.
    ///
    /// # Errors
    /// As [`Guest::run`].
    pub(in crate::directory) fn drive<T, E>(
        &self,
        driver: &mut (impl Future<Output = E> + Unpin),
        work: impl Future<Output = T>,
    ) -> Result<(Poll<T>, Poll<E>), Late> {
        let mut work = pin!(work);
        self.run(future::poll_fn(|cx| {
            if let done @ Poll::Ready(_) = work.as_mut().poll(cx) {
                return Poll::Ready((done, Poll::Pending));
            }
            let ended = Pin::new(&mut *driver).poll(cx);
            // The driver has passed on all that it received before its end.
            match (work.as_mut().poll(cx), ended) {
                (Poll::Pending, Poll::Pending) => Poll::Pending,
                both => Poll::Ready(both),
            }
        }))
    }

    /// Returns whether the driver of the connection has not ended. It learns of all that was received before;
    /// this does not wait.
    pub(in crate::directory) fn is_driven(&self, driver: &mut (impl Future + Unpin)) -> bool {
        self.poll_once(|cx| Pin::new(&mut *driver).poll(cx)).is_pending()
    }

    /// Returns whether the same holds, and nothing was received since the last call.
    #[cfg(feature = "redis")]
    pub(in crate::directory) fn is_quiet(&self, driver: &mut (impl Future + Unpin)) -> bool {
        let before = self.budget.left();
        self.is_driven(driver) && self.budget.left() == before
    }

    /// Lets the runtime note the bytes received since the last call, and polls `work` once. It does not
    /// wait.
    fn poll_once<T>(&self, mut work: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Poll<T> {
        let Some(runtime) = &self.runtime else { return Poll::Pending };
        runtime.block_on(async {
            tokio::task::yield_now().await;
            future::poll_fn(|cx| Poll::Ready(work(cx))).await
        })
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            self.idle.put(runtime);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;
    use std::time::Duration;

    use tokio::io::AsyncReadExt as _;

    use super::*;
    use crate::limits::DATABASE_CONNECT_TIME;

    /// How long a call of a test may take.
    const TIME: Duration = Duration::from_millis(300);

    /// A server's socket, and a connection to it.
    struct Pair {
        /// Dropped before its runtime.
        stream: Stream,
        guest: Guest,
        listener: TcpListener,
    }

    fn connected() -> Pair {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = Endpoint::Tcp("127.0.0.1".to_owned(), listener.local_addr().unwrap().port());
        let mut guest = Guest::new(&Arc::default(), Deadline::after(DATABASE_CONNECT_TIME)).unwrap();
        let stream = guest.connect(&endpoint).unwrap();
        guest.set_deadline(Deadline::after(TIME));
        Pair { stream, guest, listener }
    }

    #[test]
    fn a_call_to_a_silent_server_ends_at_its_deadline() {
        let Pair { mut stream, guest, listener: _listener } = connected();
        let start = std::time::Instant::now();
        assert_eq!(guest.run(stream.read_u8()).unwrap_err(), Late);
        assert!(start.elapsed() >= TIME);
    }

    #[test]
    fn a_call_to_a_server_that_sends_a_byte_at_a_time_ends_at_its_deadline() {
        let Pair { mut stream, guest, listener } = connected();
        let server = std::thread::spawn(move || {
            let mut socket = listener.accept().unwrap().0;
            // Each byte comes long before the deadline. The connection's end comes long after it.
            (0..200)
                .take_while(|_| {
                    std::thread::sleep(TIME / 10);
                    socket.write_all(b"x").is_ok()
                })
                .count()
        });
        let mut received = Vec::new();
        assert!(matches!(guest.run(stream.read_to_end(&mut received)), Err(Late)));
        drop(stream);
        assert!(server.join().unwrap() < 200, "the server was still sending");
    }

    #[test]
    fn an_end_of_the_connection_is_noticed_between_two_calls_without_a_request() {
        let Pair { mut stream, guest, listener } = connected();
        let mut look = || {
            guest
                .poll_once(|cx| pin!(stream.read_u8()).poll(cx))
                .map(|read| read.map_err(|error| error.kind()))
        };
        let socket = listener.accept().unwrap().0;
        assert_eq!(look(), Poll::Pending);
        drop(socket);
        // The kernel delivers the end at once on loopback, but not within the same call.
        let seen = std::iter::repeat_with(look).find(Poll::is_ready);
        assert_eq!(seen, Some(Poll::Ready(Err(io::ErrorKind::UnexpectedEof))));
    }

    #[test]
    fn a_reply_has_a_limit_that_each_call_renews() {
        let Pair { mut stream, mut guest, listener } = connected();
        listener.accept().unwrap().0.write_all(&[7; 64]).unwrap();
        let mut block = [0; 32];
        guest.set_deadline(Deadline::after(DATABASE_CONNECT_TIME));
        guest.budget.spend_all_but(40);
        assert_eq!(guest.run(stream.read_exact(&mut block)).unwrap().unwrap(), 32);
        let beyond = guest.run(stream.read_exact(&mut block)).unwrap().unwrap_err();
        assert_eq!(beyond.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_connection_that_ends_leaves_its_runtime_to_the_next() {
        let idle = Arc::new(IdleRuntimes::default());
        let by = Deadline::after(TIME);
        let count = || idle.0.lock().unwrap().len();
        let all = [(); 3].map(|()| Guest::new(&idle, by).unwrap());
        assert_eq!(count(), 0);
        drop(all);
        assert_eq!(count(), 3);
        let one = Guest::new(&idle, by).unwrap();
        assert_eq!(count(), 2);
        assert_eq!(one.run(async { 7 }), Ok(7));
    }
}
