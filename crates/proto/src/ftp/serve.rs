//! The handler for FTP on one thread, and the state that its sessions share.
//!
//! It is not the conversation. Invariant: one [`Settings`] serves a session from its first byte to its last,
//! also across reloads.

use core::net::Ipv4Addr;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::{Handler, Io, LocalFuture, Stream};
use plimsoll_operations::{AuditLog, Operations};
use plimsoll_tls::{Admission, Handshakes};

use super::confirming::Unconfirmed;
use super::conversation;
use super::encryption::Encryption;
use super::limits::Limits;
use super::port_shares::PortShares;
use super::ports::Ports;
use super::start_barrier::StartBarrier;

use crate::{Current, GeneratedBodies};
use plimsoll_content::Site;

/// The settings that a reload replaces.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The operator's limits.
    pub limits: Limits,
    /// The ports for passive data connections.
    pub ports: Ports,
    /// The address in the replies to PASV, if it is not the one that the client connected to: that of a
    /// router in front of the server.
    pub announced: Option<Ipv4Addr>,
    /// The site for guests, unless they are not admitted.
    pub guests: Option<Site>,
    /// The treatment of uploads whose clients close the control connection early.
    pub unconfirmed: Unconfirmed,
    /// TLS, if there is a certificate.
    pub tls: Option<Encryption>,
}

/// The services that stay the same from the server's start to its end.
pub struct Services {
    /// Operations on accounts and their files, if the server has accounts.
    pub operations: Option<Operations>,
    /// The audit log of transfers.
    pub audit_log: AuditLog,
    /// The bound on the memory of listings, which all protocols share.
    pub generated: Arc<GeneratedBodies>,
    /// The bounds of TLS handshakes, which all protocols share.
    pub handshakes: Arc<Handshakes>,
    /// The shares of the ports for passive data connections.
    pub port_shares: Arc<PortShares>,
    /// The start barrier, for a laboratory.
    pub start_barrier: Option<StartBarrier>,
}

/// The handler for FTP on one thread.
pub struct Ftp {
    current: Arc<Current<Settings>>,
    /// Whether sessions begin with TLS, without AUTH.
    is_implicit: bool,
    /// The state of the latest session's settings, which the next session usually shares.
    latest: RefCell<Rc<Shared>>,
}

/// The state that the sessions of one thread and one version of the settings share.
pub(super) struct Shared {
    pub(super) io: Io,
    pub(super) settings: Arc<Settings>,
    pub(super) services: Arc<Services>,
    pub(super) admission: Admission,
}

impl Ftp {
    /// Creates a handler for the thread of `io`. Each session gets the settings that are current at its
    /// start.
    pub fn new(io: Io, current: Arc<Current<Settings>>, services: Arc<Services>) -> Ftp {
        let admission = Admission::new(Arc::clone(&services.handshakes));
        let latest = RefCell::new(Rc::new(Shared { io, settings: current.get(), services, admission }));
        Ftp { current, is_implicit: false, latest }
    }

    /// Returns the handler for sessions that begin with TLS ("implicit TLS", port 990). Without settings of
    /// TLS, connections are closed.
    #[must_use]
    pub fn implicit(self) -> Ftp {
        Ftp { is_implicit: true, ..self }
    }

    fn shared(&self) -> Rc<Shared> {
        let (settings, mut latest) = (self.current.get(), self.latest.borrow_mut());
        if !Arc::ptr_eq(&settings, &latest.settings) {
            let (io, services) = (latest.io.clone(), Arc::clone(&latest.services));
            let admission = latest.admission.clone();
            *latest = Rc::new(Shared { io, settings, services, admission });
        }
        Rc::clone(&latest)
    }
}

impl Handler for Ftp {
    fn serve(&self, stream: Stream) -> LocalFuture {
        Box::pin(conversation::serve(stream, self.shared(), self.is_implicit))
    }

    fn refuse(&self, stream: Stream) -> LocalFuture {
        let shared = self.shared();
        match self.is_implicit {
            true => Box::pin(async move {
                let mut stream = stream;
                plimsoll_tls::refuse(&shared.io, &mut stream).await;
            }),
            false => Box::pin(conversation::refuse(stream, shared)),
        }
    }
}

impl Shared {
    pub(super) fn limits(&self) -> &Limits {
        &self.settings.limits
    }
}
