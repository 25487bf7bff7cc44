//! The doorbells of a thread, and those of its peers.
//!
//! They carry no data. Invariants: channels to different processes share no doorbell, so that a process can
//! disturb its own channels only. A doorbell ends with the last channel that has it.

use std::cell::{OnceCell, RefCell};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::rc::{Rc, Weak};
use std::sync::Arc;

use plimsoll_io::{Event, EventSource, Io, Watch, Watcher};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{OFlags, fcntl_getfl, readlink};
use rustix::process::Pid;

use crate::doorbell;
use crate::limits::DOORBELL_CHANNELS;
use crate::region::{Region, invalid};

/// The kernel's name of an eventfd.
const EVENTFD_NAME: &[u8] = b"anon_inode:[eventfd]";

/// The doorbells of one thread.
#[derive(Default)]
pub(crate) struct Bells(RefCell<Vec<(Pid, Weak<OwnBell>)>>);

/// A doorbell of this thread.
pub(crate) struct OwnBell {
    parts: BellParts,
    /// By the channel's number; `None` if the number is vacant.
    channels: RefCell<Vec<Option<Weak<dyn Watcher>>>>,
    watch: OnceCell<Box<dyn Watch>>,
}

/// The parts of a doorbell, with which another thread can use it.
#[derive(Clone)]
pub(crate) struct BellParts {
    page: Arc<Region>,
    memory: Arc<OwnedFd>,
    wake: Arc<OwnedFd>,
}

/// A channel's place at a doorbell of this thread.
pub(crate) struct OwnPlace {
    bell: Rc<OwnBell>,
    number: usize,
}

/// A channel's place at a doorbell of the peer's.
pub(crate) struct PeerPlace {
    page: Region,
    wake: OwnedFd,
    number: usize,
}

impl Bells {
    /// Returns a place at the doorbell for a process.
    pub(crate) fn place(&self, io: &Io, peer: Pid) -> io::Result<OwnPlace> {
        let mut bells = self.0.borrow_mut();
        bells.retain(|(_, bell)| bell.strong_count() > 0);
        let of_peer = bells.iter().filter(|(pid, _)| *pid == peer).filter_map(|(_, bell)| bell.upgrade());
        let place = of_peer.filter_map(OwnBell::place).next();
        place.map_or_else(
            || {
                let bell = OwnBell::new(io, BellParts::new()?)?;
                bells.push((peer, Rc::downgrade(&bell)));
                OwnBell::place(bell).ok_or_else(|| invalid("a new doorbell has no place"))
            },
            Ok,
        )
    }
}

impl BellParts {
    fn new() -> io::Result<BellParts> {
        let (page, memory) = Region::create_page()?;
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(BellParts { page: Arc::new(page), memory: Arc::new(memory), wake: Arc::new(wake) })
    }
}

impl OwnBell {
    fn new(io: &Io, parts: BellParts) -> io::Result<Rc<OwnBell>> {
        let (channels, watch) = Default::default();
        let bell = Rc::new(OwnBell { parts, channels, watch });
        // Events of the eventfd only end a wait: the marks are polled after it.
        let none: Weak<dyn Watcher> = Weak::<Nothing>::new();
        let _ = bell.watch.set(io.watch(&bell.parts.wake, Event::Bell, &none)?);
        let source: Weak<dyn EventSource> = Rc::<OwnBell>::downgrade(&bell);
        io.poll_events(&source);
        Ok(bell)
    }

    fn place(self: Rc<OwnBell>) -> Option<OwnPlace> {
        let none: Weak<dyn Watcher> = Weak::<Nothing>::new();
        let mut channels = self.channels.borrow_mut();
        let vacant = channels.iter().position(Option::is_none);
        let number = match vacant {
            Some(number) => number,
            None if channels.len() == DOORBELL_CHANNELS => return None,
            None => {
                channels.push(None);
                channels.len() - 1
            }
        };
        channels[number] = Some(none);
        drop(channels);
        Some(OwnPlace { bell: self, number })
    }
}

impl EventSource for OwnBell {
    fn about_to_wait(&self) -> bool {
        doorbell::about_to_wait(self.parts.page.words())
    }

    fn report(&self) {
        doorbell::take(self.parts.page.words(), |number| {
            let watcher = self.channels.borrow().get(number).and_then(|it| it.as_ref()?.upgrade());
            if let Some(watcher) = watcher {
                watcher.on_event(Event::Bell);
            }
        });
    }
}

impl OwnPlace {
    /// Returns the place of a channel that has a doorbell of its own, which can move to another thread.
    pub(crate) fn movable(io: &Io) -> io::Result<OwnPlace> {
        OwnPlace::of(io, BellParts::new()?)
    }

    /// Returns the only place of a doorbell, in this thread.
    pub(crate) fn of(io: &Io, parts: BellParts) -> io::Result<OwnPlace> {
        OwnBell::new(io, parts)?.place().ok_or_else(|| invalid("a new doorbell has no place"))
    }

    /// Returns the parts of the doorbell.
    pub(crate) fn parts(&self) -> BellParts {
        self.bell.parts.clone()
    }

    /// Returns the channel's number.
    pub(crate) fn number(&self) -> u32 {
        u32::try_from(self.number).unwrap_or(u32::MAX)
    }

    /// Returns the descriptors for the peer.
    pub(crate) fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.bell.parts.memory.as_fd(), self.bell.parts.wake.as_fd()]
    }

    /// Reports the channel's events to `watcher`.
    pub(crate) fn watch(&self, watcher: &Weak<dyn Watcher>) {
        self.bell.channels.borrow_mut()[self.number] = Some(Weak::clone(watcher));
    }
}

impl Drop for OwnPlace {
    fn drop(&mut self) {
        self.bell.channels.borrow_mut()[self.number] = None;
    }
}

impl PeerPlace {
    /// Checks the descriptors that the peer has passed.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] if they are not those of a doorbell.
    pub(crate) fn new(memory: &OwnedFd, wake: OwnedFd, number: usize) -> io::Result<PeerPlace> {
        if !is_eventfd(&wake) {
            return Err(invalid("the peer has passed a descriptor that is no eventfd, or that would block"));
        }
        Ok(PeerPlace { page: Region::page_of_peer(memory)?, wake, number })
    }

    /// Marks the channel, and wakes the peer's thread if it waits. Returns whether it waited.
    pub(crate) fn ring(&self) -> bool {
        let must_wake = doorbell::press(self.page.words(), self.number);
        if must_wake {
            // The counter is full only if the peer never waits, and then it needs no wake-up.
            let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        }
        must_wake
    }
}

/// Returns whether a descriptor is a non-blocking eventfd. The kernel names it so; the name of a file in a
/// folder begins with a slash.
fn is_eventfd(fd: impl AsFd) -> bool {
    let name = format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd());
    fcntl_getfl(&fd).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK))
        && readlink(name, Vec::new()).is_ok_and(|name| name.as_bytes() == EVENTFD_NAME)
}

/// A watcher of no events.
struct Nothing;

impl Watcher for Nothing {
    fn on_event(&self, _: Event) {}

    fn on_turn_end(&self) {}
}

#[cfg(test)]
mod tests {
    use plimsoll_engine::{EngineKind, block_on};

    use super::*;

    #[test]
    fn channels_to_one_process_share_doorbells_and_others_have_their_own() {
        let kind = EngineKind::ALL.into_iter().find(|kind| kind.check().is_ok()).unwrap();
        let check = |io: Io| async move {
            let (bells, one, other) =
                (Bells::default(), Pid::from_raw(1).unwrap(), Pid::from_raw(2).unwrap());
            let mut full: Vec<OwnPlace> =
                (0..DOORBELL_CHANNELS).map(|_| bells.place(&io, one).unwrap()).collect();
            assert!(full.iter().all(|place| Rc::ptr_eq(&place.bell, &full[0].bell)));
            assert!(full.iter().enumerate().all(|(number, place)| place.number == number));
            let (next, of_other) = (bells.place(&io, one).unwrap(), bells.place(&io, other).unwrap());
            assert!(!Rc::ptr_eq(&next.bell, &full[0].bell) && !Rc::ptr_eq(&of_other.bell, &next.bell));
            full.remove(7);
            let again = bells.place(&io, one).unwrap();
            assert!(Rc::ptr_eq(&again.bell, &full[0].bell) && again.number == 7);
            drop((full, again));
            assert_eq!(bells.place(&io, other).unwrap().number, 1);
            assert_eq!(bells.0.borrow().len(), 2, "a doorbell ends with its channels");
        };
        block_on(kind, check).unwrap();
    }
}
