//! What an FTP client may send, and how long it may take: an operator's limits, and the protocol's own.
//!
//! What must hold: every wait of a session is under one of these.

use std::time::Duration;

/// An operator's limits on each session.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a command line.
    pub line_bytes_max: usize,
    /// Time from a line's first byte to its last.
    pub line_time: Duration,
    /// Time in which somebody must have logged in, whatever they say meanwhile.
    pub login_time: Duration,
    /// Time without a command.
    pub idle_time: Duration,
    /// Time in which a data connection must be there.
    pub connect_time: Duration,
    /// Time between two receives of an upload.
    pub receive_time: Duration,
    /// Time in which a client must take at least one byte of what is sent to it.
    pub send_time: Duration,
    /// Time in which a client must end its side after the server has ended its own.
    pub linger_time: Duration,
    /// Bytes of a file that is uploaded.
    pub file_bytes_max: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            line_bytes_max: 8 * 1024,
            line_time: Duration::from_secs(15),
            login_time: Duration::from_secs(60),
            idle_time: Duration::from_secs(300),
            connect_time: Duration::from_secs(30),
            receive_time: Duration::from_secs(30),
            send_time: Duration::from_secs(30),
            linger_time: Duration::from_secs(5),
            file_bytes_max: 1 << 40,
        }
    }
}

/// Commands that are obeyed in a row without a wait, before other connections have their turn.
pub const COMMANDS_PER_TURN_MAX: u32 = 16;
/// Bytes of answers that may be unsent before the next command is looked at.
pub const UNSENT_BYTES_MAX: u64 = 16 * 1024;
/// Commands that are kept for later while a transfer goes on. Who sends more is sent away: not to listen any
/// more would be not to hear ABOR, nor that the client has gone.
pub const HELD_COMMANDS_MAX: usize = 64;
/// Refused log-ins after which a connection ends.
pub const LOGINS_MAX: u32 = 5;
/// How often another port is tried when one is taken.
pub const PORT_TRIES_MAX: u32 = 64;
/// The lowest port that a data connection is made to: below are the system's services.
pub const ACTIVE_PORT_MIN: u16 = 1024;
/// Bytes that are read of a file at a time where it cannot be sent as it is.
pub const FILE_CHUNK_BYTES: usize = 64 * 1024;
/// Bytes of a transfer that may be unsent before more are read.
pub const UNSENT_DATA_BYTES_MAX: u64 = 256 * 1024;
/// How long after the last byte of an upload its client must still be there, before it takes the place of
/// what was there. It is no time lost where a sync takes longer, and little beside the way over a network.
/// The two connections of a killed curl ended 14 to 86 us apart.
pub const TAKE_BACK_TIME: Duration = Duration::from_millis(1);
/// The same for a client on this machine where nothing is synced, so that it would be time lost. Its end is
/// listened for until the very last, too, and whoever puts the upload in its place lets others go first: of
/// clients that killed themselves on the server's own core, 1 in 360 left half a file in the place of a whole
/// one; without that, and with 250 us, 25 did.
pub const TAKE_BACK_TIME_UNSYNCED: Duration = Duration::from_micros(100);
/// How often a held transfer looks whether enough have come, where they are in several processes.
pub const HOLD_LOOK_TIME: Duration = Duration::from_millis(1);
/// Bytes of an upload that are received into memory in one go, where so many have come: a pipe may take what
/// comes then.
pub const TAKEN_BYTES: usize = 64 * 1024;
/// Bytes of a file after which it is known anew how far its transfer is.
pub const TOLD_BYTES: u64 = 16 * 1024 * 1024;
/// Bytes of a pattern that LIST and NLST look for: each name is compared with it, byte by byte in the worst
/// case.
pub const PATTERN_BYTES_MAX: usize = 128;
/// Entries that a folder's listing has at most.
pub const LISTING_ENTRIES_MAX: usize = 100_000;
/// Entries of a listing that STAT sends over the control connection.
pub const STATUS_ENTRIES_MAX: usize = 1000;
/// Letters of a name that STOU draws.
pub const NAME_LETTERS: usize = 8;
/// The greeting of a connection of an address that has its share of them.
pub const OVER_SHARE: &[u8] = b"421 Your address has too many connections open; try again shortly.\r\n";
