//! Sending a file's bytes as the system has them.
//!
//! It waits for nothing but a disk that has to be read. What must hold: nothing is held back after it.

use std::os::fd::BorrowedFd;

use rustix::fs::sendfile;
use rustix::io::Errno;
use rustix::net::sockopt::set_tcp_cork;

use crate::limits::CORKED_FROM_BYTES;

/// Sends up to `count` bytes of `source` from `offset` on; how many, which may be fewer.
///
/// Each acknowledgement that comes meanwhile would have the system send what it has of a packet, since it
/// delays none (TCP_NODELAY): much is held back until a packet is full (TCP_CORK).
///
/// # Errors
/// As sendfile(2): [`Errno::AGAIN`] if there is no room.
pub(crate) fn send_file(
    to: BorrowedFd<'_>,
    source: BorrowedFd<'_>,
    mut offset: u64,
    count: u64,
) -> Result<u64, Errno> {
    let bytes = usize::try_from(count).unwrap_or(usize::MAX);
    // A Unix socket has no packets.
    let is_corked = count >= CORKED_FROM_BYTES && set_tcp_cork(to, true).is_ok();
    let sent = sendfile(to, source, Some(&mut offset), bytes);
    if is_corked {
        // What a broken connection says of it, the next call on it says, too.
        let _ = set_tcp_cork(to, false);
    }
    Ok(sent? as u64)
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

    /// Sends all of a file of so many bytes while `from` is read to its end: whether it is the same.
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
        let mut at = 0;
        while at < bytes {
            at += send_file(to.as_fd(), file.as_fd(), at, bytes - at).unwrap();
            let is_held_back = tcp_cork(to.as_fd()).unwrap_or(false);
            assert!(!is_held_back, "the rest of a packet would wait");
        }
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
}
