//! Sending a file's bytes to a socket by sendfile(2), without a copy through user space.
//!
//! On a non-blocking socket, it blocks only for a disk that has to be read. Invariant: the socket is never
//! left corked after it.

use std::os::fd::BorrowedFd;

use rustix::fs::sendfile;
use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_cork;

use crate::limits::CORKED_FROM_BYTES;

/// The sendfile state of one connection.
#[derive(Default)]
pub(crate) struct FileSender {
    /// The last large call sent little: the peer is slow, and packets are not the bottleneck.
    took_little: bool,
}

impl FileSender {
    /// Sends up to `count` bytes of `source` from `offset` on, and returns how many were sent.
    ///
    /// With TCP_NODELAY, each acknowledgement that arrives meanwhile makes the kernel send a partial packet.
    /// So the socket is corked (TCP_CORK) for large calls.
    ///
    /// # Errors
    /// As sendfile(2): [`Errno::AGAIN`] if the socket's buffer is full.
    pub(crate) fn send(
        &mut self,
        to: BorrowedFd<'_>,
        source: BorrowedFd<'_>,
        mut offset: u64,
        count: u64,
    ) -> Result<u64, Errno> {
        let bytes = usize::try_from(count).unwrap_or(usize::MAX);
        let is_much = count >= CORKED_FROM_BYTES;
        // A Unix socket has no packets, and refuses the option.
        let is_corked = is_much && !self.took_little && set_tcp_cork(to, true).is_ok();
        let sent = sendfile(to, source, Some(&mut offset), bytes);
        if is_corked {
            // If the connection is broken, the next call on it reports that, too.
            let _ = set_tcp_cork(to, false);
        }
        let sent = sent? as u64;
        if is_much {
            self.took_little = sent < CORKED_FROM_BYTES;
        }
        Ok(sent)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use rustix::net::sockopt::tcp_cork;

    use super::*;

    /// Sends a file of so many bytes while `from` is read to its end, and returns whether the content is
    /// equal.
    fn arrives(bytes: u64, to: impl AsFd, mut from: impl Read + Send + 'static) -> bool {
        let whole: Vec<u8> = (0..bytes).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let mut file = tempfile::tempfile().unwrap();
        std::io::Write::write_all(&mut file, &whole).unwrap();
        let reading = std::thread::spawn(move || {
            let mut read = Vec::new();
            from.read_to_end(&mut read).unwrap();
            read
        });
        send_all(&to, &file, bytes);
        drop(to);
        reading.join().unwrap() == whole
    }

    fn send_all(to: &impl AsFd, file: &File, bytes: u64) {
        let (mut at, mut sender) = (0, FileSender::default());
        while at < bytes {
            at += sender.send(to.as_fd(), file.as_fd(), at, bytes - at).unwrap();
            assert!(!is_held_back(to), "the rest of a packet would wait");
        }
    }

    fn is_held_back(to: &impl AsFd) -> bool {
        tcp_cork(to.as_fd()).unwrap_or(false)
    }

    #[test]
    fn a_file_arrives_and_nothing_of_it_is_held_back_after_a_call() {
        for bytes in [1, CORKED_FROM_BYTES - 1, CORKED_FROM_BYTES, 3 * CORKED_FROM_BYTES + 1] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let to = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            assert!(arrives(bytes, to, listener.accept().unwrap().0));
        }
    }

    #[test]
    fn a_unix_socket_takes_a_file_too() {
        let (to, from) = UnixStream::pair().unwrap();
        assert!(arrives(3 * CORKED_FROM_BYTES, to, from));
    }

    #[test]
    fn nothing_is_held_back_where_there_is_no_room() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        to.set_nonblocking(true).unwrap();
        let file = tempfile::tempfile().unwrap();
        file.set_len(64 * CORKED_FROM_BYTES).unwrap();
        let (mut sender, mut calls) = (FileSender::default(), 0);
        loop {
            let sent = sender.send(to.as_fd(), file.as_fd(), 0, CORKED_FROM_BYTES);
            assert!(!is_held_back(&to), "after {calls} calls");
            if sent == Err(Errno::AGAIN) {
                break;
            }
            (_, calls) = (sent.unwrap(), calls + 1);
        }
        assert!(calls > 0);
    }
}
