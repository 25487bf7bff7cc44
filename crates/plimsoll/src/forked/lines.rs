//! Sends log lines from connection processes to the main process, which writes them.
//!
//! It writes no log itself. Invariants: a sent line arrives completely or is counted as lost. A killed
//! process loses its unsent lines uncounted. A sender waits for a bounded time, and the fork master never.
//! A slow log delays no sender: the main process receives lines at once, and drops them if the log's queue
//! is full.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plimsoll_operations::LineSink;
use plimsoll_proto::http::{Counters, LogSink};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use rustix::process::{Pid, getpid};
use tracing_subscriber::fmt::MakeWriter;

use crate::bounded_thread::BoundedThread;
use crate::limits::{EMPTY_PIECES_MAX, LINES_IN_TRANSIT_BYTES_MAX, LINES_ROOM_TIME_MAX, PIECE_BYTES_MAX};
use crate::line_writer::Lines;

/// How long the end waits for the last pieces.
const FINISH_TIME: Duration = Duration::from_secs(2);

/// The log of a piece, which is its first byte.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum LogKind {
    Operator,
    Requests,
    Transfers,
    Xferlog,
}

/// The connection processes' end of the socket.
#[derive(Clone)]
pub(super) struct Sender {
    socket: Arc<OwnedFd>,
    /// The fork master, which never waits for space.
    master: Option<Pid>,
}

/// The main process's end of the socket.
pub(super) struct Receiver(OwnedFd);

/// A sender of lines to one log.
#[derive(Clone)]
pub(super) struct LineSender {
    sender: Sender,
    kind: LogKind,
    counters: Arc<Counters>,
}

/// The main process's log writers, by log.
pub(super) struct Writers {
    pub(super) operator: Lines,
    pub(super) requests: Option<Lines>,
    pub(super) transfers: Option<Lines>,
    pub(super) xferlog: Option<Lines>,
    pub(super) counters: Arc<Counters>,
}

/// The thread that receives lines.
pub(super) struct Receiving(BoundedThread<()>);

/// Creates a socket that preserves message boundaries, and reports to its reader when the last sender has
/// closed.
pub(super) fn pair() -> io::Result<(Sender, Receiver)> {
    let (sender, receiver) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    // A smaller limit of the kernel is used as it is.
    let _ = set_socket_send_buffer_size(&sender, LINES_IN_TRANSIT_BYTES_MAX);
    Ok((Sender { socket: Arc::new(sender), master: None }, Receiver(receiver)))
}

impl Sender {
    /// Returns the sender of the fork master, which is this process, and of its child processes.
    pub(super) fn of_master(&self) -> Sender {
        Sender { master: Some(getpid()), ..self.clone() }
    }

    /// Returns the sender of one log. Lost lines are counted in `counters`.
    pub(super) fn to(&self, kind: LogKind, counters: &Arc<Counters>) -> LineSender {
        LineSender { sender: self.clone(), kind, counters: Arc::clone(counters) }
    }
}

impl LineSender {
    /// Sends whole lines; returns whether they were sent.
    fn hand_over(&self, lines: &[u8]) -> bool {
        let piece = [&[self.kind as u8][..], lines].concat();
        if piece.len() > PIECE_BYTES_MAX {
            return false;
        }
        match self.send(&piece) {
            Err(Errno::AGAIN) => self.patience().is_some_and(|time| self.send_within(time, &piece)),
            sent => sent.is_ok(),
        }
    }

    /// Returns how long this process waits for space; `None` for the fork master.
    fn patience(&self) -> Option<Duration> {
        (self.sender.master != Some(getpid())).then_some(LINES_ROOM_TIME_MAX)
    }

    fn send(&self, piece: &[u8]) -> Result<(), Errno> {
        send(&*self.sender.socket, piece, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).map(drop)
    }

    /// Retries whenever there is space. Another sender may take it first, because all share the buffer.
    fn send_within(&self, time: Duration, piece: &[u8]) -> bool {
        let until = Instant::now() + time;
        loop {
            self.wait_for_room(until.saturating_duration_since(Instant::now()));
            match self.send(piece) {
                Err(Errno::AGAIN) if Instant::now() < until => {}
                sent => return sent.is_ok(),
            }
        }
    }

    fn wait_for_room(&self, time: Duration) {
        let mut fds = [PollFd::new(&*self.sender.socket, PollFlags::OUT)];
        // A failed poll is ignored, because the caller retries in any case.
        let _ = poll(&mut fds, Timespec::try_from(time).ok().as_ref());
    }

    fn take(&self, lines: &[u8]) {
        if !self.hand_over(lines) {
            self.counters.drop_log_lines(count_of(lines));
        }
    }
}

fn count_of(lines: &[u8]) -> u64 {
    lines.iter().filter(|byte| **byte == b'\n').count() as u64
}

impl LogSink for LineSender {
    fn take(&self, lines: Vec<u8>) {
        LineSender::take(self, &lines);
    }
}

impl LineSink for LineSender {
    fn take(&self, line: Vec<u8>) {
        LineSender::take(self, &line);
    }
}

/// For the operator's log, which writes each event in one call. Events that do not fit are lost.
impl Write for LineSender {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.hand_over(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for LineSender {
    type Writer = LineSender;

    fn make_writer(&self) -> LineSender {
        self.clone()
    }
}

impl Receiver {
    /// Receives lines on a thread of its own, until all senders have closed.
    pub(super) fn start(self, writers: Writers) -> io::Result<Receiving> {
        Ok(Receiving(BoundedThread::spawn("lines", move || self.take_in(&writers))?))
    }

    fn take_in(&self, writers: &Writers) {
        let (mut piece, mut nothing) = (vec![0; PIECE_BYTES_MAX], 0);
        loop {
            match recv(&self.0, &mut piece[..], RecvFlags::empty()) {
                // Either the end of file, which repeats, or an empty piece.
                Ok((0, _)) if self.has_no_senders() => {
                    nothing += 1;
                    if nothing > EMPTY_PIECES_MAX {
                        return;
                    }
                }
                Ok((0, _)) => {}
                Ok((bytes, _)) => {
                    nothing = 0;
                    writers.take(piece[0], &piece[1..bytes]);
                }
                Err(Errno::INTR) => {}
                Err(error) => {
                    tracing::error!(%error, "log lines of connections can no longer be received");
                    return;
                }
            }
        }
    }

    /// Returns whether all senders have closed; their last pieces may still be in the buffer.
    fn has_no_senders(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::empty())];
        let seen = poll(&mut fds, Some(&Timespec::default()));
        seen.is_err() || fds[0].revents().contains(PollFlags::HUP)
    }
}

impl Writers {
    fn take(&self, kind: u8, lines: &[u8]) {
        let log = match kind {
            0 => Some(&self.operator),
            1 => self.requests.as_ref(),
            2 => self.transfers.as_ref(),
            _ => self.xferlog.as_ref(),
        };
        let lost = log.is_none_or(|log| log.hand_over(lines.to_vec()).is_err());
        if lost && kind != LogKind::Operator as u8 {
            self.counters.drop_log_lines(count_of(lines));
        }
    }
}

impl Receiving {
    /// Waits until the last line is received. All sending processes must have ended.
    pub(super) fn finish(self) {
        if self.0.join_within(FINISH_TIME).is_none() {
            tracing::warn!("a process of a connection does not end; its last lines are lost");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::line_writer::LineWriter;

    /// Longer than any machine needs.
    const PATIENCE: Duration = Duration::from_secs(120);

    /// Returns a log writer and the path of its file.
    fn log_in(folder: &Path, name: &str) -> (LineWriter, PathBuf) {
        let (path, made) = (folder.join(name), folder.join(name));
        let open =
            move || -> io::Result<Box<dyn Write + Send>> { Ok(Box::new(std::fs::File::create(&made)?)) };
        (LineWriter::start("test", Box::new(open), Box::new(|_| {})).unwrap(), path)
    }

    #[test]
    fn lines_come_to_the_log_that_they_are_of_and_the_end_waits_for_the_last() {
        let folder = tempfile::tempdir().unwrap();
        let (sender, receiver) = pair().unwrap();
        let counters = Arc::<Counters>::default();
        let (of_operator, operator) = log_in(folder.path(), "operator");
        let (of_requests, requests) = log_in(folder.path(), "requests");
        let writers = Writers {
            operator: of_operator.lines(),
            requests: Some(of_requests.lines()),
            transfers: None,
            xferlog: None,
            counters: Arc::clone(&counters),
        };
        let receiving = receiver.start(writers).unwrap();
        let mut log = sender.to(LogKind::Operator, &counters);
        log.write_all(b"started\n").unwrap();
        // An empty piece is not the end of file.
        log.send(b"").unwrap();
        LogSink::take(&sender.to(LogKind::Requests, &counters), b"one\ntwo\n".to_vec());
        LineSink::take(&sender.to(LogKind::Xferlog, &counters), b"to nowhere\n".to_vec());
        drop((log, sender));
        receiving.finish();
        assert!(of_operator.finish() && of_requests.finish());
        let read = |path| std::fs::read_to_string(path).unwrap();
        assert_eq!((read(&operator).as_str(), read(&requests).as_str()), ("started\n", "one\ntwo\n"));
        assert_eq!(counters.dropped_log_lines(), 1);
    }

    #[test]
    fn lines_without_room_are_counted() {
        let (sender, receiver) = pair().unwrap();
        let counters = Arc::<Counters>::default();
        let sender_of_kind = sender.to(LogKind::Requests, &counters);
        while sender_of_kind.send(b"\x01line\n").is_ok() {}
        LineSender::take(&sender_of_kind, b"one\ntwo\n");
        LineSender::take(&sender_of_kind, &vec![b'\n'; PIECE_BYTES_MAX]);
        assert_eq!(counters.dropped_log_lines(), 2 + PIECE_BYTES_MAX as u64);
        drop(receiver);
    }

    /// Another sender may take the space before a woken sender does.
    #[test]
    fn an_overtaken_sender_retries_within_its_time() {
        const SENDERS: usize = 8;
        const EACH: usize = 200;
        let (sender, receiver) = pair().unwrap();
        let lines = vec![b'x'; PIECE_BYTES_MAX - 1];
        let sent: usize = std::thread::scope(|scope| {
            let hand_over = || {
                let sender_of_kind = sender.to(LogKind::Requests, &Arc::default());
                let piece = [&[sender_of_kind.kind as u8][..], &lines].concat();
                (0..EACH).filter(|_| sender_of_kind.send_within(PATIENCE, &piece)).count()
            };
            let sending: Vec<_> = (0..SENDERS).map(|_| scope.spawn(hand_over)).collect();
            let mut piece = vec![0; PIECE_BYTES_MAX];
            for _ in 0..SENDERS * EACH {
                assert_eq!(recv(&receiver.0, &mut piece[..], RecvFlags::empty()).unwrap().0, PIECE_BYTES_MAX);
            }
            sending.into_iter().map(|sender| sender.join().unwrap()).sum()
        });
        assert_eq!(sent, SENDERS * EACH);
    }

    #[test]
    fn the_fork_master_waits_for_no_room_and_others_for_a_bounded_time() {
        let (sender, receiver) = pair().unwrap();
        let of = |sender: &Sender| sender.to(LogKind::Operator, &Arc::default());
        // Marks this process as the master.
        let sender_of_kind = of(&sender.of_master());
        assert_eq!((sender_of_kind.patience(), of(&sender).patience()), (None, Some(LINES_ROOM_TIME_MAX)));
        // Nothing is received, so the buffer fills.
        while sender_of_kind.hand_over(b"line\n") {}
        assert!(!sender_of_kind.hand_over(b"line\n"));
        drop(receiver);
    }
}
