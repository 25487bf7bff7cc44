//! Limits on FTP commands and waits: the operator's, and the protocol's own.
//!
//! Limits on the length of names and options are not here but in `plimsoll_wire::ftp`. Invariant: every wait
//! of a control connection is under one of these limits.

use std::time::Duration;

/// An operator's limits on each control connection.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of a command line.
    pub line_bytes_max: usize,
    /// Time from a line's first byte to its last.
    pub line_time: Duration,
    /// Time until a client must have logged in, regardless of its commands.
    pub login_time: Duration,
    /// Time without a command.
    pub idle_time: Duration,
    /// Time in which a data connection must be established.
    pub connect_time: Duration,
    /// Time between two receives of an upload.
    pub receive_time: Duration,
    /// Time in which a client must take at least one byte of what is sent to it.
    pub send_time: Duration,
    /// Time in which a client must close its side after the server has closed its own.
    pub linger_time: Duration,
    /// Bytes of an uploaded file.
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

/// The shortest pause between two looks at whether a client has received the end of a download.
pub const DELIVERY_PAUSE_MIN: Duration = Duration::from_millis(1);
/// The longest of these pauses.
pub const DELIVERY_PAUSE_MAX: Duration = Duration::from_millis(50);
/// In between, a pause is this part of the download's time, so that the audit entry's end is exact to one
/// percent.
pub const DELIVERY_PAUSES: u32 = 128;
/// The longest time from the end of sending to the end of a download's audit entry.
pub const DELIVERY_TIME_MAX: Duration = Duration::from_secs(60);
/// Commands executed in a row without a wait, before other connections get their turn.
pub const COMMANDS_PER_TURN_MAX: u32 = 16;
/// Commands that are queued during a transfer. A client that sends more is disconnected: the server must
/// go on reading, to notice ABOR and the end of the connection.
pub const QUEUED_COMMANDS_MAX: usize = 64;
/// Refused logins after which a connection ends.
pub const LOGINS_MAX: u32 = 5;
/// How many ports are tried until a free one is found.
pub const PORT_TRIES_MAX: u32 = 64;
/// The part of the passive ports that one account may hold at a time: a quarter.
pub const ACCOUNT_PORTS_PART: usize = 4;
/// The part that one address may hold at a time: a half.
pub const ADDRESS_PORTS_PART: usize = 2;
/// The part of the passive ports above which they run short: a half.
pub const SHORT_PORTS_PART: usize = 2;
/// Time in which a transfer must be requested over a passive port while ports run short. A transfer that
/// waits for its data connection has the usual time.
pub const SHORT_PORT_TIME: Duration = Duration::from_secs(5);
/// The lowest port for active data connections. Privileged services are below.
pub const ACTIVE_PORT_MIN: u16 = 1024;
/// How long the client must stay connected after the last byte of an upload that it has not announced, a
/// round trip added. A killed client's connections end microseconds apart, unless its machine is busy: the
/// kernel may run other programs between the two. Each such upload takes this time longer.
pub const CONFIRM_TIME: Duration = Duration::from_millis(50);
/// The longest such wait, also for a client that sent less than the room it had announced.
pub const CONFIRM_TIME_MAX: Duration = Duration::from_secs(1);
/// How often a transfer on hold polls whether enough transfers have arrived, with several processes.
pub const START_POLL_TIME: Duration = Duration::from_millis(1);
/// Bytes of an upload that are received into memory in one go. If that many arrive, the rest may go
/// through a pipe.
pub const UPLOAD_RECEIVE_BYTES: usize = 64 * 1024;
/// Bytes of a pattern for LIST and NLST. Each name is compared with it, byte by byte in the worst case.
pub const PATTERN_BYTES_MAX: usize = 128;
/// Entries of a folder's listing.
pub const LISTING_ENTRIES_MAX: usize = 100_000;
/// Entries of a listing that STAT sends over the control connection.
pub const STATUS_ENTRIES_MAX: usize = 1000;
/// Letters of a name that STOU generates.
pub const NAME_LETTERS: usize = 8;
/// The greeting of a connection above the limit of its address.
pub const OVER_SHARE: &[u8] = b"421 Your address has too many connections open; try again shortly.\r\n";
