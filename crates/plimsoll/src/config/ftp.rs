//! Settings of FTP alone: its addresses and its ports for data.
//!
//! Limits that it shares with HTTP are in [`super::live`]. Invariants: FTP listens only on IP addresses. No
//! data port is a privileged one.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

use clap::{ArgAction, Args};
use plimsoll_io::Address;
use plimsoll_proto::ftp::{Ports, TlsReuse, Unconfirmed};
use plimsoll_wire::units::{DAY, Time, time_within};

use super::values::words;

/// Lower ports are privileged.
const PORT_MIN: u16 = 1024;

/// The reloadable settings of FTP.
#[derive(Args, Clone, Debug, PartialEq)]
#[command(next_help_heading = "FTP, where --ftp or --ftps is given")]
pub(crate) struct FtpSettings {
    /// Ports that clients connect to for data, FIRST-LAST; each transfer uses a random one
    #[arg(long, value_name = "PORTS", env = "PLIMSOLL_FTP_PORTS", default_value = "20000-29999")]
    pub(crate) ftp_ports: DataPorts,

    /// The IPv4 address that is announced to clients for data, or none: the one they connected to
    #[arg(long, value_name = "IP", env = "PLIMSOLL_FTP_ANNOUNCE", default_value = "none")]
    pub(crate) ftp_announce: Announce,

    /// Whether ftp and anonymous may log in, to read the site that is served under /
    #[arg(long, value_name = "true|false", env = "PLIMSOLL_FTP_GUESTS", default_value = "false")]
    #[arg(action = ArgAction::Set, hide_possible_values = true)]
    pub(crate) ftp_guests: bool,

    /// How long a control connection may be without a command
    #[arg(long, value_name = "TIME", env = "PLIMSOLL_FTP_IDLE_TIME", default_value = "5m")]
    #[arg(value_parser = time_within("10ms", DAY))]
    pub(crate) ftp_idle_time: Time,

    /// Whether to abort or keep an upload whose client closes its control connection early
    #[arg(long, value_name = "abort|keep", env = "PLIMSOLL_FTP_UNCONFIRMED", default_value = "abort")]
    pub(crate) ftp_unconfirmed: OnUnconfirmed,

    /// Whether a session must be encrypted before it logs in, may be, or cannot be; there is TLS only with a
    /// certificate
    #[arg(long, value_name = "require|allow|off", env = "PLIMSOLL_FTP_TLS", default_value = "allow")]
    pub(crate) ftp_tls: FtpTls,

    /// Which encrypted data connections must resume the TLS session of their control connection: those of
    /// clients that have done so before (auto), all (require), or none (off)
    #[arg(long, value_name = "auto|require|off", env = "PLIMSOLL_FTP_TLS_REUSE", default_value = "auto")]
    pub(crate) ftp_tls_reuse: OnNotResumed,
}

/// Whether sessions are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FtpTls {
    Require,
    Allow,
    Off,
}

const FTP_TLS: [(&str, FtpTls); 3] =
    [("require", FtpTls::Require), ("allow", FtpTls::Allow), ("off", FtpTls::Off)];

/// The treatment of data connections that do not resume the TLS session of their control connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OnNotResumed(pub(crate) TlsReuse);

const NOT_RESUMED: [(&str, OnNotResumed); 3] = [
    ("auto", OnNotResumed(TlsReuse::Auto)),
    ("require", OnNotResumed(TlsReuse::Require)),
    ("off", OnNotResumed(TlsReuse::Off)),
];

/// The treatment of an upload whose client closes the control connection early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OnUnconfirmed(pub(crate) Unconfirmed);

const UNCONFIRMED: [(&str, OnUnconfirmed); 2] =
    [("abort", OnUnconfirmed(Unconfirmed::Abort)), ("keep", OnUnconfirmed(Unconfirmed::Keep))];

/// The ports for data, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataPorts(pub(crate) Ports);

/// The announced address for data, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Announce(pub(crate) Option<Ipv4Addr>);

words!(OnUnconfirmed: UNCONFIRMED);
words!(FtpTls: FTP_TLS);
words!(OnNotResumed: NOT_RESUMED);

/// Parses an address for FTP to listen on.
pub(super) fn ftp_address(text: &str) -> Result<SocketAddr, String> {
    const WHY: &str = "FTP needs an address of IP, which its connections for data use too";
    match text.parse() {
        Ok(Address::Ip(at)) => Ok(at),
        Ok(Address::Unix(_)) => Err(format!("{WHY}: write IP:PORT, or :PORT for loopback, such as :2121")),
        Err(_) => Err(format!("{text:?} is not an address: write IP:PORT, or :PORT for loopback")),
    }
}

impl FromStr for DataPorts {
    type Err = String;

    fn from_str(text: &str) -> Result<DataPorts, String> {
        let ports = text.split_once('-').and_then(|(first, last)| {
            Some(Ports { first: first.trim().parse().ok()?, last: last.trim().parse().ok()? })
        });
        ports
            .filter(|ports| (PORT_MIN..=ports.last).contains(&ports.first))
            .map(DataPorts)
            .ok_or_else(|| format!("write FIRST-LAST, such as 20000-29999, from {PORT_MIN} on"))
    }
}

impl fmt::Display for DataPorts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0.first, self.0.last)
    }
}

impl FromStr for Announce {
    type Err = String;

    fn from_str(text: &str) -> Result<Announce, String> {
        let is_nobody = |ip: &Ipv4Addr| ip.is_unspecified() || ip.is_multicast() || ip.is_broadcast();
        match (text, text.parse::<Ipv4Addr>()) {
            ("none", _) => Ok(Announce(None)),
            (_, Ok(ip)) if !is_nobody(&ip) => Ok(Announce(Some(ip))),
            _ => Err("write the IPv4 address of one machine, such as 203.0.113.7, or none".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_ftp_is_one_of_ip() {
        assert_eq!(ftp_address(":2121").unwrap().to_string(), "127.0.0.1:2121");
        assert_eq!(ftp_address("[::1]:21").unwrap().to_string(), "[::1]:21");
        assert!(ftp_address("unix:/run/ftp").unwrap_err().contains("FTP needs an address of IP"));
        let bad = ftp_address("2121").unwrap_err();
        assert!(bad.contains("IP:PORT") && !bad.contains("unix"), "{bad}");
    }

    #[test]
    fn ports_for_data_are_at_least_one_and_none_of_the_systems() {
        for (text, first, last) in [("1024-65535", 1024, 65_535), ("2000-2000", 2000, 2000)] {
            let ports: DataPorts = text.parse().unwrap();
            assert_eq!(ports, DataPorts(Ports { first, last }));
            assert_eq!(ports.to_string(), text);
        }
        for bad in ["", "-", "2000", "2000-", "1023-2000", "2001-2000", "2000-65536", "a-b", "1024-2000-3000"]
        {
            assert!(bad.parse::<DataPorts>().unwrap_err().contains("FIRST-LAST"), "{bad:?}");
        }
    }

    #[test]
    fn the_announced_address_is_one_machine_or_none() {
        assert_eq!("none".parse(), Ok(Announce(None)));
        assert_eq!("203.0.113.7".parse(), Ok(Announce(Some(Ipv4Addr::new(203, 0, 113, 7)))));
        for bad in ["", "0.0.0.0", "255.255.255.255", "224.0.0.1", "::1", "example.org"] {
            assert!(bad.parse::<Announce>().unwrap_err().contains("203.0.113.7"), "{bad:?}");
        }
    }
}
