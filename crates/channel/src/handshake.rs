//! The handshake of a channel over a Unix socket.
//!
//! The connecting side sends its version and its doorbell; the accepting side answers with its doorbell, the
//! size of the shared memory and its descriptor. It sets no limit for connections: the listener does.
//! Invariants: it ends within a bounded time. Neither side uses a descriptor that it has not checked.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::task::{Poll, Waker};

use plimsoll_io::{Event, Io, Watcher};

use crate::bells::{Bells, OwnPlace, PeerPlace};
use crate::limits::HANDSHAKE_TIME_MAX;
use crate::link::SystemLink;
use crate::message::{
    HELLO_BYTES, OFFER_BYTES, VERSION, check_peer, hello, number_of, offer, receive, region_bytes_of, send,
    version_of,
};
use crate::region::{Region, invalid};

/// Sets up the accepting side of a channel whose rings have `ring_bytes` each. Without `bells`, it may move
/// to another thread, and has a doorbell of its own.
pub(crate) async fn accept(
    io: &Io,
    socket: Arc<OwnedFd>,
    ring_bytes: usize,
    bells: Option<&Bells>,
) -> io::Result<SystemLink> {
    let pid = check_peer(&socket)?;
    let mut files = Vec::new();
    let message: [u8; HELLO_BYTES] = in_time(io, receive_message(io, &socket, &mut files)).await?;
    if version_of(&message)? != VERSION {
        send(&socket, &offer(0, 0), &[])?;
        return Err(invalid("the peer speaks another version of the channel's protocol"));
    }
    let [page, wake]: [OwnedFd; 2] =
        files.try_into().map_err(|_| invalid("the peer has not passed two descriptors"))?;
    let peer = PeerPlace::new(&page, wake, number_of(&message)?)?;
    let (region, memory) = Region::create(ring_bytes)?;
    let own = bells.map_or_else(|| OwnPlace::movable(io), |bells| bells.place(io, pid))?;
    let [page, wake] = own.descriptors();
    send(&socket, &offer(own.number(), region.bytes()), &[memory.as_fd(), page, wake])?;
    Ok(SystemLink::new(io, socket, region, own, peer))
}

/// Sets up the connecting side.
pub(crate) async fn connect(io: &Io, socket: Arc<OwnedFd>, bells: &Bells) -> io::Result<SystemLink> {
    let own = bells.place(io, check_peer(&socket)?)?;
    send(&socket, &hello(own.number()), &own.descriptors())?;
    let mut files = Vec::new();
    let message: [u8; OFFER_BYTES] = in_time(io, receive_message(io, &socket, &mut files)).await?;
    let bytes = region_bytes_of(&message)?;
    let [memory, page, wake]: [OwnedFd; 3] =
        files.try_into().map_err(|_| invalid("the peer has not passed three descriptors"))?;
    let region = Region::of_peer(&memory, bytes)?;
    let peer = PeerPlace::new(&page, wake, number_of(&message)?)?;
    Ok(SystemLink::new(io, socket, region, own, peer))
}

async fn in_time<T>(io: &Io, work: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let deadline = io.deadline();
    deadline.after(HANDSHAKE_TIME_MAX);
    deadline.within(work).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

/// Receives a message of `N` bytes, however it is split, and its descriptors.
async fn receive_message<const N: usize>(
    io: &Io,
    socket: &Arc<OwnedFd>,
    files: &mut Vec<OwnedFd>,
) -> io::Result<[u8; N]> {
    let (mut message, mut filled) = ([0; N], 0);
    let readable = Rc::<Readable>::default();
    let mut watch = None;
    while filled < N {
        match receive(socket, &mut message[filled..], files)? {
            Some(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Some(bytes) => filled += bytes,
            None if watch.is_none() => {
                // A message that has arrived since is reported at once.
                let weak: Weak<Readable> = Rc::downgrade(&readable);
                let watcher: Weak<dyn Watcher> = weak;
                watch = Some(io.watch(socket, Event::Readable, &watcher)?);
            }
            None => readable.wait().await,
        }
    }
    Ok(message)
}

/// The wait for a readable socket.
#[derive(Default)]
struct Readable {
    is_reported: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Readable {
    async fn wait(&self) {
        poll_fn(|cx| {
            if self.is_reported.take() {
                return Poll::Ready(());
            }
            *self.waker.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

impl Watcher for Readable {
    fn on_event(&self, _: Event) {
        self.is_reported.set(true);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    fn on_turn_end(&self) {}
}
