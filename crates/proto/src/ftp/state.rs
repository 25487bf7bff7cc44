//! The state of a control connection between commands.
//!
//! This module never waits. Invariants: the state is small, because most connections are idle. A new login
//! starts with new state.

use core::net::SocketAddr;

use plimsoll_operations::{Caller, HomePath};
use plimsoll_wire::ftp::facts::Facts;
use plimsoll_wire::ftp::hash::Algorithm;

use super::announcement::Announcement;
use super::ports::PassivePort;
use super::reply::Reply;

/// The state of a control connection.
pub(super) struct State {
    pub(super) login: Login,
    /// Refused logins so far.
    pub(super) refused: u32,
    /// The folder that relative paths begin at: absolute, without a trailing slash; empty for `/`.
    pub(super) folder: Vec<u8>,
    /// Whether files are transferred as they are ("image") instead of as text.
    pub(super) is_image: bool,
    /// The offset of the next transfer, set by REST.
    pub(super) rest: u64,
    /// The announced properties of the next upload, set by ALLO and OPTS STOR.
    pub(super) announcement: Announcement,
    /// The path and size of the last SIZE, until a transfer or a change. An upload that resumes at that size
    /// continues the object that had it, or is refused.
    pub(super) sized: Option<(HomePath, u64)>,
    /// The source path of a rename, set by RNFR.
    pub(super) renaming: Option<HomePath>,
    /// How the next data connection is established.
    pub(super) data_mode: DataMode,
    /// Whether EPSV ALL was received: from then on, no other command opens data connections.
    pub(super) only_epsv: bool,
    /// The facts in the output of MLST and MLSD.
    pub(super) facts: Facts,
    /// The digest algorithm of HASH.
    pub(super) digest: Algorithm,
}

/// The login state of the client.
pub(super) enum Login {
    /// Not logged in.
    None,
    /// USER was received, but not PASS.
    NameGiven(Vec<u8>),
    /// Logged in as a guest.
    Guest,
    /// Logged in as an account.
    Account(Box<Caller>),
}

/// How a data connection is established.
pub(super) enum DataMode {
    /// No command has chosen a mode.
    Unset,
    /// The client connects to the server.
    Passive(PassivePort),
    /// The server connects to the client.
    Active(SocketAddr),
}

impl State {
    pub(super) fn new() -> State {
        State {
            login: Login::None,
            refused: 0,
            folder: Vec::new(),
            // "The default representation type is ASCII Non-print" (RFC 959, section 4.1.2).
            is_image: false,
            rest: 0,
            announcement: Announcement::default(),
            sized: None,
            renaming: None,
            data_mode: DataMode::Unset,
            only_epsv: false,
            facts: Facts::default(),
            digest: Algorithm::default(),
        }
    }

    /// Resets everything but the number of refused logins.
    pub(super) fn reset(&mut self) {
        *self = State { refused: self.refused, ..State::new() };
    }

    /// Takes the mode of the next data connection. It serves for one transfer.
    pub(super) fn take_data_mode(&mut self) -> Result<DataMode, Reply> {
        match std::mem::replace(&mut self.data_mode, DataMode::Unset) {
            DataMode::Unset => {
                Err(Reply::new(425, "Say EPSV or PASV first, so that there is a data connection."))
            }
            data_mode => Ok(data_mode),
        }
    }

    /// Returns the size of `place` that SIZE reported, if that was its last report.
    pub(super) fn size_of(&self, place: &HomePath) -> Option<u64> {
        self.sized.as_ref().filter(|(sized, _)| sized == place).map(|(_, size)| *size)
    }

    /// Takes the offset of the next transfer. The one after it begins at 0 again.
    pub(super) fn take_rest(&mut self) -> u64 {
        std::mem::take(&mut self.rest)
    }
}
