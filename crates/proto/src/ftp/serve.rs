//! FTP on one thread, and what its sessions share.
//!
//! It is not the conversation. What must hold: a session is served by one [`Settings`] from its first byte to
//! its last, whatever is reloaded meanwhile.

use core::net::Ipv4Addr;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::{Handler, Io, LocalFuture, Stream};
use plimsoll_operations::{Operations, Recorder};

use super::conversation;
use super::hold::Hold;
use super::limits::Limits;
use super::ports::Ports;
use crate::Current;
use crate::http::Counters;
use crate::http::site::Site;

/// What a reload replaces.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The operator's limits.
    pub limits: Limits,
    /// Where clients are told to connect to for data.
    pub ports: Ports,
    /// The address that is told with the port, if it is not the one that the client reached: that of a router
    /// in front of the server.
    pub announced: Option<Ipv4Addr>,
    /// What guests see, if there are any.
    pub guests: Option<Site>,
}

/// What holds from the server's start to its end.
pub struct Served {
    /// Accounts and their files, unless there are none.
    pub operations: Option<Operations>,
    /// Where transfers are recorded.
    pub recorder: Recorder,
    /// What bounds the memory of listings, which all protocols share.
    pub counters: Arc<Counters>,
    /// For a laboratory: holds transfers until there are enough.
    pub hold: Option<Hold>,
}

/// FTP on one thread.
pub struct Ftp {
    current: Arc<Current<Settings>>,
    /// For sessions of the settings that the last one got.
    latest: RefCell<Rc<Shared>>,
}

/// What the sessions of one thread and of the same settings share.
pub(super) struct Shared {
    pub(super) io: Io,
    pub(super) settings: Arc<Settings>,
    pub(super) served: Arc<Served>,
}

impl Ftp {
    /// Serves on the thread that `io` is of, each session by the settings that are current when it comes.
    pub fn new(io: Io, current: Arc<Current<Settings>>, served: Arc<Served>) -> Ftp {
        let latest = RefCell::new(Rc::new(Shared { io, settings: current.get(), served }));
        Ftp { current, latest }
    }

    fn shared(&self) -> Rc<Shared> {
        let (settings, mut latest) = (self.current.get(), self.latest.borrow_mut());
        if !Arc::ptr_eq(&settings, &latest.settings) {
            let (io, served) = (latest.io.clone(), Arc::clone(&latest.served));
            *latest = Rc::new(Shared { io, settings, served });
        }
        Rc::clone(&latest)
    }
}

impl Handler for Ftp {
    fn serve(&self, stream: Stream) -> LocalFuture {
        Box::pin(conversation::hold(stream, self.shared()))
    }

    fn refuse(&self, stream: Stream) -> LocalFuture {
        Box::pin(conversation::refuse(stream, self.shared()))
    }
}

impl Shared {
    pub(super) fn limits(&self) -> &Limits {
        &self.settings.limits
    }
}
