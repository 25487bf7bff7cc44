//! The handler for classic on one thread, and the state that its connections share.
//!
//! It is not the conversation. Invariant: one [`Settings`] serves a connection from its first byte to its
//! last, also across reloads.

use std::rc::Rc;
use std::sync::Arc;

use plimsoll_io::{Handler, Io, LocalFuture, Stream};
use plimsoll_operations::Operations;

use super::conversation;
use super::limits::Limits;
use crate::Current;
use plimsoll_content::Site;

/// The settings that a reload replaces.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The operator's limits.
    pub limits: Limits,
    /// The site under `/`, if there is one. Every account may read there the files that its home does not
    /// have.
    pub common: Option<Site>,
}

/// The handler for classic on one thread.
pub struct Classic {
    io: Io,
    current: Arc<Current<Settings>>,
    operations: Operations,
}

/// The state that a connection is served with.
pub(super) struct Shared {
    pub(super) io: Io,
    pub(super) settings: Arc<Settings>,
    pub(super) operations: Operations,
}

impl Classic {
    /// Creates a handler for the thread of `io`. Each connection gets the settings that are current at its
    /// start.
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
        Box::pin(conversation::serve(stream, self.shared()))
    }

    fn refuse(&self, stream: Stream) -> LocalFuture {
        Box::pin(conversation::refuse(stream, self.shared()))
    }
}
