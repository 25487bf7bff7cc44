//! What the program tells its fork master, and what that answers: a byte for what, a byte for which.
//!
//! It is not how a server is stopped: that order reaches every process by itself. What must hold: an answer
//! belongs to its order, also after one that came too late.

use std::io::{self, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::limits::ORDER_TIME_MAX;

/// What the master is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// To accept connections.
    Begin,
    /// To serve those that come from now on by the configuration as it is now.
    Reload,
}

/// The program's end.
pub(super) struct Line {
    stream: UnixStream,
    last: u8,
}

/// The program's way to have its fork master read the configuration again. Clones are the same way.
#[derive(Clone)]
pub struct Reload(pub(super) Arc<Mutex<Line>>);

impl Reload {
    /// Has it do so; whether that could be done. Its log says why not.
    ///
    /// # Errors
    /// Where it does not answer.
    pub fn order(&self) -> io::Result<bool> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).order(Order::Reload)
    }
}

impl Line {
    pub(super) fn new(stream: UnixStream) -> io::Result<Line> {
        stream.set_read_timeout(Some(ORDER_TIME_MAX))?;
        Ok(Line { stream, last: 0 })
    }

    /// Orders, and waits for the answer.
    pub(super) fn order(&mut self, order: Order) -> io::Result<bool> {
        self.last = self.last.wrapping_add(1);
        let (number, mut answer) = (self.last, [0; 2]);
        self.stream.write_all(&[order as u8, number])?;
        loop {
            self.stream.read_exact(&mut answer)?;
            // An earlier one may have been answered after nobody waited any more.
            if answer[1] == number {
                return Ok(answer[0] == 1);
            }
        }
    }
}

/// The next order at the master's end, and its number; none if there is none yet, an error at the end.
pub(super) fn next(from: &UnixStream) -> io::Result<Option<(Order, u8)>> {
    let mut order = [0; 2];
    match recv(from, &mut order, RecvFlags::DONTWAIT) {
        // Two bytes that were written together are read together.
        Ok((2, _)) if order[0] == Order::Begin as u8 => Ok(Some((Order::Begin, order[1]))),
        Ok((2, _)) => Ok(Some((Order::Reload, order[1]))),
        Ok(_) => Err(io::ErrorKind::UnexpectedEof.into()),
        Err(Errno::AGAIN | Errno::INTR) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Answers the order with that number.
pub(super) fn answer(to: &UnixStream, number: u8, done: bool) {
    // If the program has gone, nobody needs it.
    let _ = send(to, &[u8::from(done), number], SendFlags::DONTWAIT | SendFlags::NOSIGNAL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_came_too_late_is_not_taken_for_the_next() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut line = Line::new(ours).unwrap();
        // That of an order before, after nobody waited any more.
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
