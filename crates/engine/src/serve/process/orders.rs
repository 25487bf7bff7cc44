//! Orders from the main process to its fork master, and the answers: two bytes each, an order or result and a
//! sequence number.
//!
//! The order to stop is not among them: it reaches every process by a pipe. Invariant: an answer is matched
//! to its order, even after an earlier answer came too late.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::limits::ORDER_TIME_MAX;

/// An order to the master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Start to accept connections.
    Begin,
    /// Reload the configuration, for later connections.
    Reload,
    /// Read the files again that the present configuration names, for later connections.
    Refresh,
}

/// The main process's end of the channel.
pub(super) struct OrderChannel {
    stream: UnixStream,
    last: u8,
}

/// A handle by which the main process has its fork master reload the configuration. Clones share the channel.
#[derive(Clone)]
pub struct Reload(pub(super) Arc<Mutex<OrderChannel>>);

impl Reload {
    /// Orders a reload; returns whether it succeeded. The log says why not.
    ///
    /// # Errors
    /// Fails if the master does not answer.
    pub fn order(&self) -> io::Result<bool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).order(Order::Reload)
    }

    /// Orders the master to read the files again that its configuration names; returns whether it succeeded.
    ///
    /// # Errors
    /// Fails if the master does not answer.
    pub fn order_refresh(&self) -> io::Result<bool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).order(Order::Refresh)
    }
}

impl OrderChannel {
    pub(super) fn new(stream: UnixStream) -> io::Result<OrderChannel> {
        stream.set_read_timeout(Some(ORDER_TIME_MAX))?;
        Ok(OrderChannel { stream, last: 0 })
    }

    /// Sends an order, and waits for the answer.
    pub(super) fn order(&mut self, order: Order) -> io::Result<bool> {
        self.last = self.last.wrapping_add(1);
        let (number, mut answer) = (self.last, [0; 2]);
        self.stream.write_all(&[order as u8, number])?;
        loop {
            self.stream.read_exact(&mut answer)?;
            // The answer to an earlier order may have arrived after its timeout.
            if answer[1] == number {
                return Ok(answer[0] == 1);
            }
        }
    }
}

/// Reads the next order at the master's end, and its number; `None` if none has arrived, an error at the
/// end.
pub(super) fn next(from: &UnixStream) -> io::Result<Option<(Order, u8)>> {
    let mut order = [0; 2];
    match recv(from, &mut order, RecvFlags::DONTWAIT) {
        // Two bytes that were written together are read together.
        Ok((2, _)) if order[0] == Order::Begin as u8 => Ok(Some((Order::Begin, order[1]))),
        Ok((2, _)) if order[0] == Order::Refresh as u8 => Ok(Some((Order::Refresh, order[1]))),
        Ok((2, _)) => Ok(Some((Order::Reload, order[1]))),
        Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Answers the order with that number.
pub(super) fn answer(to: &UnixStream, number: u8, done: bool) {
    // If the main process has ended, the answer is not needed.
    let _ = send(to, &[u8::from(done), number], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_came_too_late_is_not_taken_for_the_next() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut line = OrderChannel::new(ours).unwrap();
        // The answer to an earlier order, after its timeout.
        answer(&theirs, 0, true);
        let master = std::thread::spawn(move || {
            let mut seen = Vec::new();
            while seen.len() < 2 {
                if let Some((order, number)) = next(&theirs).unwrap() {
                    answer(&theirs, number, order == Order::Begin);
                    seen.push(order);
                }
            }
            (seen, theirs)
        });
        assert!(!line.order(Order::Reload).unwrap());
        assert!(line.order(Order::Begin).unwrap());
        let (seen, theirs) = master.join().unwrap();
        assert_eq!(seen, [Order::Reload, Order::Begin]);
        drop(line);
        assert_eq!(next(&theirs).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }
}
