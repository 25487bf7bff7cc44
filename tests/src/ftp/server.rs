//! The real FTP server, in the same process as HTTP and over the same accounts.

use std::net::Ipv4Addr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_content::Site;
use plimsoll_io::{Cells, Fs, Setup};
use plimsoll_operations::{AuditLog, Meter};
use plimsoll_proto::Current;
use plimsoll_proto::ftp::{
    Encryption, Limits, PortShares, Ports, Services, Settings, StartBarrier, TlsReuse, Unconfirmed,
};
use plimsoll_tls::Handshakes;

use crate::accounts::Accounts;

/// The FTP settings of a scenario.
#[derive(Clone, Debug, Default)]
pub struct Ftp {
    pub limits: Limits,
    pub ports: Ports,
    /// The announced address in answers to PASV.
    pub announced: Option<Ipv4Addr>,
    /// The treatment of uploads whose clients close the control connection early.
    pub unconfirmed: Unconfirmed,
    /// Whether guests may read the scenario's tree.
    pub guests: bool,
    /// TLS, if the server has a certificate.
    pub tls: Option<FtpTls>,
    /// The number of transfers that the start barrier releases together.
    pub hold: Option<usize>,
}

/// The settings of TLS.
#[derive(Clone, Copy, Debug, Default)]
pub struct FtpTls {
    /// Whether sessions begin with TLS.
    pub is_implicit: bool,
    /// Whether logins in clear are refused.
    pub is_required: bool,
    /// The data connections that must resume the session.
    pub reuse: TlsReuse,
}

/// Serves accounts over FTP, and the folder `root` of `fs` to guests. `cells` are those of the start
/// barrier and of the ports' shares, if processes share them.
pub(crate) fn ftp(
    wanted: &Ftp,
    fs: &dyn Fs,
    root: &Path,
    accounts: Option<&Accounts>,
    cells: Option<(Cells, Cells)>,
) -> Setup {
    let Ftp { limits, ports, announced, unconfirmed, guests, tls, hold } = wanted.clone();
    let guests = guests.then(|| Site::open(fs, "/", root).expect("the folder is there"));
    let (line, held) = cells.unzip();
    let port_shares = held.map_or_else(|| PortShares::new(ports.count()), PortShares::in_cells);
    let current = Current::new(Settings {
        limits,
        ports,
        announced,
        guests,
        unconfirmed,
        tls: tls.map(|FtpTls { is_required, reuse, .. }| Encryption {
            server: Current::new(crate::tls::server(&["ftp"])),
            is_required,
            reuse,
        }),
    });
    let is_implicit = tls.is_some_and(|tls| tls.is_implicit);
    let nowhere = || AuditLog::new(Arc::<Meter>::default(), None, None);
    let served = Arc::new(Services {
        operations: accounts.map(|accounts| accounts.operations.clone()),
        audit_log: accounts.map_or_else(nowhere, |accounts| accounts.operations.audit_log().clone()),
        generated: Arc::default(),
        handshakes: Handshakes::new(),
        port_shares: Arc::new(port_shares),
        start_barrier: hold.map(|count| {
            StartBarrier::in_cells(line.unwrap_or_else(|| Cells::own(StartBarrier::CELLS)), count)
        }),
    });
    Arc::new(move |io| {
        let (current, served) = (Arc::clone(&current), Arc::clone(&served));
        let handler = plimsoll_proto::ftp::Ftp::new(io, current, served);
        Rc::new(if is_implicit { handler.implicit() } else { handler })
    })
}
