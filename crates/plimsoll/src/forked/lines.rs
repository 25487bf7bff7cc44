//! Lines of logs on their way from the processes of connections to the program, which writes them.
//!
//! It writes no log itself. What must hold: a line that is handed over arrives whole or is counted as lost (a
//! process that is killed takes with it what it has not handed over: nobody knows of that); who hands lines
//! over waits for a bounded time, the fork master never, and nobody for whoever reads a log: the program
//! takes lines in as they come, and loses them itself where a log's place is slow.

use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll_operations::LineSink;
use plimsoll_proto::http::{Counters, LogSink};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, send, socketpair};
use rustix::process::{Pid, getpid};
use tracing_subscriber::fmt::MakeWriter;

use crate::line_writer::Lines;

/// Bytes that lines under way may take of the kernel's memory; the system may allow less
/// (`net.core.wmem_max`).
const UNDER_WAY_BYTES_MAX: usize = 1024 * 1024;
/// Pieces without anything in them that may be under way: each takes more of that memory than a part in so
/// many.
const EMPTY_PIECES_MAX: u32 = 4096;
/// How long a process waits where the program has not taken in what others have handed over.
const ROOM_TIME_MAX: Duration = Duration::from_secs(1);
/// Bytes of lines that are handed over at once; more would not go through the socket, whatever its room.
const PIECE_BYTES_MAX: usize = 128 * 1024;
/// How long the end waits for what is still under way, and how often it looks.
const FINISH_TIME: Duration = Duration::from_secs(2);
const FINISH_STEP: Duration = Duration::from_millis(2);

/// Which log lines belong to. The number goes before them.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum Which {
    Operator,
    Requests,
    Transfers,
    Xferlog,
}

/// The end that processes hand lines over at.
#[derive(Clone)]
pub(super) struct Sender {
    socket: Arc<OwnedFd>,
    /// Who waits for nothing.
    master: Option<Pid>,
}

/// The program's end.
pub(super) struct Receiver(OwnedFd);

/// The way of lines to one log.
#[derive(Clone)]
pub(super) struct Way {
    sender: Sender,
    which: Which,
    counters: Arc<Counters>,
}

/// Where the program writes lines, by log.
pub(super) struct Writers {
    pub(super) operator: Lines,
    pub(super) requests: Option<Lines>,
    pub(super) transfers: Option<Lines>,
    pub(super) xferlog: Option<Lines>,
    pub(super) counters: Arc<Counters>,
}

/// The thread that takes lines in.
pub(super) struct Receiving(JoinHandle<()>);

/// A socket that keeps pieces apart, and tells its reader when the last who could send has gone.
pub(super) fn pair() -> io::Result<(Sender, Receiver)> {
    let (sender, receiver) =
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    // What the system allows beyond is its to say.
    let _ = set_socket_send_buffer_size(&sender, UNDER_WAY_BYTES_MAX);
    Ok((Sender { socket: Arc::new(sender), master: None }, Receiver(receiver)))
}

impl Sender {
    /// That of the fork master, which is this process, and of those that come of it.
    pub(super) fn of_master(&self) -> Sender {
        Sender { master: Some(getpid()), ..self.clone() }
    }

    /// The way to one log; what is lost on it is counted.
    pub(super) fn to(&self, which: Which, counters: &Arc<Counters>) -> Way {
        Way { sender: self.clone(), which, counters: Arc::clone(counters) }
    }
}

impl Way {
    /// Hands whole lines over; whether they went.
    fn hand_over(&self, lines: &[u8]) -> bool {
        let piece = [&[self.which as u8][..], lines].concat();
        if piece.len() > PIECE_BYTES_MAX {
            return false;
        }
        match self.send(&piece) {
            Err(Errno::AGAIN) => self.patience().is_some_and(|time| self.send_within(time, &piece)),
            sent => sent.is_ok(),
        }
    }

    /// How long this process waits for room; the fork master does not.
    fn patience(&self) -> Option<Duration> {
        (self.sender.master != Some(getpid())).then_some(ROOM_TIME_MAX)
    }

    fn send(&self, piece: &[u8]) -> Result<(), Errno> {
        send(&*self.sender.socket, piece, SendFlags::DONTWAIT | SendFlags::NOSIGNAL).map(drop)
    }

    /// Tries whenever there is room again: others may take it first, because all have the same.
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
        // Whatever comes of it, it is tried again.
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

impl LogSink for Way {
    fn take(&self, lines: Vec<u8>) {
        Way::take(self, &lines);
    }
}

impl LineSink for Way {
    fn take(&self, line: Vec<u8>) {
        Way::take(self, &line);
    }
}

/// For the operator's log: each of its events is one write. What does not fit is lost.
impl Write for Way {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.hand_over(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Way {
    type Writer = Way;

    fn make_writer(&self) -> Way {
        self.clone()
    }
}

impl Receiver {
    /// Takes lines in, on a thread of its own, until nobody can send any more.
    pub(super) fn start(self, writers: Writers) -> io::Result<Receiving> {
        let named = std::thread::Builder::new().name("lines".to_owned());
        Ok(Receiving(named.spawn(move || self.take_in(&writers))?))
    }

    fn take_in(&self, writers: &Writers) {
        let (mut piece, mut nothing) = (vec![0; PIECE_BYTES_MAX], 0);
        loop {
            match recv(&self.0, &mut piece[..], RecvFlags::empty()) {
                // The end, which is seen again and again; or a piece without anything in it.
                Ok((0, _)) if self.nobody_can_send() => {
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
                    tracing::error!(%error, "the lines of connections' logs cannot be taken in any more");
                    return;
                }
            }
        }
    }

    /// Whether nobody is left who could send; what they have sent may still be under way.
    fn nobody_can_send(&self) -> bool {
        let mut fds = [PollFd::new(&self.0, PollFlags::empty())];
        let seen = poll(&mut fds, Some(&Timespec::default()));
        seen.is_err() || fds[0].revents().contains(PollFlags::HUP)
    }
}

impl Writers {
    fn take(&self, which: u8, lines: &[u8]) {
        let log = match which {
            0 => Some(&self.operator),
            1 => self.requests.as_ref(),
            2 => self.transfers.as_ref(),
            _ => self.xferlog.as_ref(),
        };
        let lost = log.is_none_or(|log| log.hand_over(lines.to_vec()).is_err());
        if lost && which != Which::Operator as u8 {
            self.counters.drop_log_lines(count_of(lines));
        }
    }
}

impl Receiving {
    /// Waits until the last line has been taken in: the processes that could send have ended.
    pub(super) fn finish(self) {
        let begun = Instant::now();
        while begun.elapsed() < FINISH_TIME {
            if self.0.is_finished() {
                return;
            }
            std::thread::sleep(FINISH_STEP);
        }
        tracing::warn!("a process of a connection does not end; its last lines are lost");
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::line_writer::LineWriter;

    /// Longer than any machine takes.
    const PATIENCE: Duration = Duration::from_secs(120);

    /// A log in a file, and its path.
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
        let mut log = sender.to(Which::Operator, &counters);
        log.write_all(b"started\n").unwrap();
        // Nothing is not the end.
        log.send(b"").unwrap();
        LogSink::take(&sender.to(Which::Requests, &counters), b"one\ntwo\n".to_vec());
        LineSink::take(&sender.to(Which::Xferlog, &counters), b"to nowhere\n".to_vec());
        drop((log, sender));
        receiving.finish();
        assert!(of_operator.finish() && of_requests.finish());
        let read = |path| std::fs::read_to_string(path).unwrap();
        assert_eq!((read(&operator).as_str(), read(&requests).as_str()), ("started\n", "one\ntwo\n"));
        assert_eq!(counters.dropped_log_lines(), 1);
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let (sender, receiver) = pair().unwrap();
        let counters = Arc::<Counters>::default();
        let way = sender.to(Which::Requests, &counters);
        while way.send(b"\x01line\n").is_ok() {}
        Way::take(&way, b"one\ntwo\n");
        Way::take(&way, &vec![b'\n'; PIECE_BYTES_MAX]);
        assert_eq!(counters.dropped_log_lines(), 2 + PIECE_BYTES_MAX as u64);
        drop(receiver);
    }

    /// Who wakes for the room may find that another has taken it.
    #[test]
    fn whoever_is_overtaken_by_others_tries_again_as_long_as_there_is_time() {
        const SENDERS: usize = 8;
        const EACH: usize = 200;
        let (sender, receiver) = pair().unwrap();
        let lines = vec![b'x'; PIECE_BYTES_MAX - 1];
        let sent: usize = std::thread::scope(|scope| {
            let hand_over = || {
                let way = sender.to(Which::Requests, &Arc::default());
                let piece = [&[way.which as u8][..], &lines].concat();
                (0..EACH).filter(|_| way.send_within(PATIENCE, &piece)).count()
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
        let of = |sender: &Sender| sender.to(Which::Operator, &Arc::default());
        // This process is the master.
        let way = of(&sender.of_master());
        assert_eq!((way.patience(), of(&sender).patience()), (None, Some(ROOM_TIME_MAX)));
        // Nobody reads.
        while way.hand_over(b"line\n") {}
        assert!(!way.hand_over(b"line\n"));
        drop(receiver);
    }
}
