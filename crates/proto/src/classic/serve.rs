//! Classic on one thread, and what its connections share.
//!
//! It is not the conversation. What must hold: a connection is served by one [`Settings`] from its first byte
//! to its last, whatever is reloaded meanwhile.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::{Handler, Io, LocalFuture, Stream};
use plimsoll_operations::Operations;

use super::conversation;
use super::limits::Limits;
use crate::Current;
use crate::http::site::Site;

/// What a reload replaces.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The operator's limits.
    pub limits: Limits,
    /// What anybody with an account gets that their home has not, if there is a site under `/`.
    pub common: Option<Site>,
}

/// Classic on one thread.
pub struct Classic {
    io: Io,
    current: Arc<Current<Settings>>,
    operations: Operations,
}

/// What a connection is served with.
pub(super) struct Shared {
    pub(super) io: Io,
    pub(super) settings: Arc<Settings>,
    pub(super) operations: Operations,
}

impl Classic {
    /// Serves on the thread that `io` is of, each connection by the settings that are current when it comes.
    pub fn new(io: Io, current: Arc<Current<Settings>>, operations: Operations) -> Classic {
        Classic { io, current, operations }
    }

    fn shared(&self) -> Rc<Shared> {
        let (io, operations) = (self.io.clone(), self.operations.clone());
        Rc::new(Shared { io, settings: self.current.get(), operations })
    }
}

impl Handler for Classic {
    fn serve(&self, stream: Stream) -> LocalFuture {
        Box::pin(conversation::hold(stream, self.shared()))
    }

    fn refuse(&self, stream: Stream) -> LocalFuture {
        Box::pin(conversation::refuse(stream, self.shared()))
    }
}
