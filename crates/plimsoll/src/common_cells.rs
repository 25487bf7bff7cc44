//! The counters that processes share under the engine `process`.
//!
//! It counts nothing itself. Invariant: each part of a server has cells of its own.

use plimsoll_auth::DirectoryMeter;
use plimsoll_channel::Meter as ChannelMeter;
use plimsoll_engine::Connections;
use plimsoll_io::Cells;
use plimsoll_proto::ftp::StartBarrier;
use plimsoll_proto::http::Readiness;
use plimsoll_tls::Handshakes;

use crate::encryption::Renewals;

/// The counters that are shared between processes under the engine `process`.
pub(crate) struct CommonCells {
    pub(crate) connections: Cells,
    /// The barrier of `--lab-hold-transfers`.
    pub(crate) hold: Cells,
    /// The holders of FTP's ports for data; `None` if one process has them all.
    pub(crate) ports: Option<Cells>,
    /// The last results of the readiness checks.
    pub(crate) ready: Cells,
    /// The counters of channels.
    pub(crate) channels: Cells,
    /// The counts of TLS handshakes.
    pub(crate) handshakes: Cells,
    /// The counts of renewals of a certificate.
    pub(crate) renewals: Cells,
    /// The counts of requests to the directory.
    pub(crate) directory: Cells,
}

impl CommonCells {
    /// Counters of a single process, not shared.
    pub(crate) fn own() -> CommonCells {
        let own = Cells::own;
        CommonCells {
            connections: own(Connections::CELLS),
            hold: own(StartBarrier::CELLS),
            ports: None,
            ready: own(Readiness::CELLS),
            channels: own(ChannelMeter::CELLS),
            handshakes: own(Handshakes::CELLS),
            renewals: own(Renewals::CELLS),
            directory: own(DirectoryMeter::CELLS),
        }
    }
}
