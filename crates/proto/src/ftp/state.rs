//! What a session remembers from one command to the next.
//!
//! It waits for nothing. What must hold: it is small, because most sessions are idle; who logs in anew begins
//! anew.

use core::net::SocketAddr;

use plimsoll_io::{Instant, Listener};
use plimsoll_operations::{Caller, Place};
use plimsoll_wire::ftp::facts::Facts;
use plimsoll_wire::ftp::hash::Algorithm;

use super::answer::Answer;

/// What a session remembers.
pub(super) struct State {
    pub(super) who: Who,
    /// Refused log-ins so far.
    pub(super) refused: u32,
    /// The folder that relative paths begin at: absolute, without a slash at its end; empty is `/`.
    pub(super) folder: Vec<u8>,
    /// Whether files go over the network as they are ("image"), and not as text.
    pub(super) is_image: bool,
    /// Where the next transfer begins, as REST has it.
    pub(super) rest: u64,
    /// The path and the size that the last SIZE reported, until a transfer or a change: an upload that
    /// resumes there continues what had that size, or is refused.
    pub(super) sized: Option<(Place, u64)>,
    /// What RNTO is to rename.
    pub(super) renaming: Option<Place>,
    /// How the next data connection comes to be.
    pub(super) way: Way,
    /// Whether EPSV ALL was said: nothing else opens data connections from then on.
    pub(super) only_epsv: bool,
    /// The facts that MLST and MLSD tell.
    pub(super) facts: Facts,
    /// How HASH makes its digests.
    pub(super) digest: Algorithm,
}

/// Who is at the other end.
pub(super) enum Who {
    /// Nobody that we know.
    Nobody,
    /// Somebody who has said a name and no password.
    Named(Vec<u8>),
    /// A guest.
    Guest,
    /// An account.
    Person(Box<Caller>),
}

/// How a data connection comes to be.
pub(super) enum Way {
    /// Nobody has said.
    Unset,
    /// The client connects to us; the transfer must be asked for by this time.
    Passive(Listener, Instant),
    /// We connect to the client.
    Active(SocketAddr),
}

impl State {
    pub(super) fn new() -> State {
        State {
            who: Who::Nobody,
            refused: 0,
            folder: Vec::new(),
            // "The default representation type is ASCII Non-print" (RFC 959, section 4.1.2).
            is_image: false,
            rest: 0,
            sized: None,
            renaming: None,
            way: Way::Unset,
            only_epsv: false,
            facts: Facts::default(),
            digest: Algorithm::default(),
        }
    }

    /// Forgets everything but how often a log-in was refused.
    pub(super) fn reset(&mut self) {
        *self = State { refused: self.refused, ..State::new() };
    }

    /// The way of the next data connection, which is for one transfer.
    pub(super) fn take_way(&mut self) -> Result<Way, Answer> {
        match std::mem::replace(&mut self.way, Way::Unset) {
            Way::Unset => {
                Err(Answer::new(425, "Say EPSV or PASV first, so that there is a data connection."))
            }
            way => Ok(way),
        }
    }

    /// The size that SIZE reported of `place`, if it was the last to do so.
    pub(super) fn size_of(&self, place: &Place) -> Option<u64> {
        self.sized.as_ref().filter(|(sized, _)| sized == place).map(|(_, size)| *size)
    }

    /// Where the next transfer begins; the one after it begins at the start again.
    pub(super) fn take_rest(&mut self) -> u64 {
        std::mem::take(&mut self.rest)
    }
}
