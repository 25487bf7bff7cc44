//! Settings that a reload replaces, for new connections.
//!
//! Settings that need a restart are not here ([`super::fixed`] has them). Invariant: no limit is zero or
//! unbounded.

use clap::{ArgAction, Args};
use plimsoll_io::Network;
use plimsoll_proto::{classic, ftp, http};
use plimsoll_wire::http::head::HeadLimits;
use plimsoll_wire::limits::HEAD_FIELDS_MAX;
use plimsoll_wire::units::{DAY, Size, Time, YEAR, size_within, time_within};

use super::ftp::FtpSettings;
use super::proxy::ProxySettings;
use super::sites::{CacheFlag, OriginFlag, SiteFlag};
use super::tls::TlsSettings;
use super::values::{AtMost, Links, LogLevel, OperatorHost, SignUp};
use crate::limits::TRASH_DAYS_MAX;

/// The shortest time that a limit may be set to.
const SHORT: &str = "10ms";

/// The reloadable settings.
#[derive(Args, Clone, Debug, PartialEq)]
pub(crate) struct Live {
    /// A folder to serve to anyone, read-only, under a prefix; several may be given
    #[arg(long, value_name = "PREFIX=DIR", env = "PLIMSOLL_SITE", display_order = 0)]
    pub(crate) site: Vec<SiteFlag>,

    /// Cache-Control of the sites' files below a path, such as /assets=public, max-age=31536000, immutable;
    /// several may be given, and the longest path counts
    #[arg(long, value_name = "PREFIX=VALUE", env = "PLIMSOLL_SITE_CACHE_CONTROL", display_order = 0)]
    pub(crate) site_cache_control: Vec<CacheFlag>,

    /// Whether new accounts can be created: closed (only by the operator), or open (by every client)
    #[arg(
        long,
        value_name = "open|closed",
        hide_possible_values = true,
        env = "PLIMSOLL_SIGNUP",
        default_value = "closed"
    )]
    pub(crate) signup: SignUp,

    /// Whether accounts may make public links, which need no account: on, or off. While this is
    /// off, existing links do not work. They work again when it is on
    #[arg(
        long,
        value_name = "on|off",
        hide_possible_values = true,
        env = "PLIMSOLL_LINKS",
        default_value = "on"
    )]
    pub(crate) links: Links,

    /// A proxy in front of the server, trusted to name its clients: an address, a network such as
    /// 10.0.0.0/8, or unix for the peers of Unix sockets; several may be given
    #[arg(long, value_name = "ADDR", env = "PLIMSOLL_TRUSTED_PROXY", value_delimiter = ',')]
    pub(crate) trusted_proxy: Vec<Network>,

    /// An origin whose pages may use the server by a browser (CORS), SCHEME://HOST; several may
    /// be given
    #[arg(long, value_name = "ORIGIN", env = "PLIMSOLL_CORS_ORIGIN", value_delimiter = ',')]
    pub(crate) cors_origin: Vec<OriginFlag>,

    /// A name, beside IP addresses and localhost, by which clients may request the pages at an address of
    /// --metrics; several may be given
    #[arg(long, value_name = "NAME", env = "PLIMSOLL_OPERATOR_HOSTS", value_delimiter = ',')]
    pub(crate) operator_hosts: Vec<OperatorHost>,

    /// Bytes that a new account may store, such as 10GiB, or none for no bound
    #[arg(long, value_name = "SIZE", env = "PLIMSOLL_QUOTA_BYTES", default_value = "none")]
    pub(crate) quota_bytes: AtMost,

    /// Files that a new account may store, or none for no bound
    #[arg(long, value_name = "COUNT", env = "PLIMSOLL_QUOTA_FILES", default_value = "none")]
    pub(crate) quota_files: AtMost,

    /// Days for which deleted files stay in the trash of their account and can be restored; 0 for no trash
    #[arg(long, value_name = "DAYS", env = "PLIMSOLL_TRASH_DAYS", default_value = "30")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=TRASH_DAYS_MAX))]
    pub(crate) trash_days: u32,

    /// How long a login session lasts
    #[arg(long, value_name = "TIME", env = "PLIMSOLL_SESSION_TIME", default_value = "30d")]
    #[arg(value_parser = time_within("1s", YEAR))]
    pub(crate) session_time: Time,

    /// The level of the server's own log: error, warn, info, debug or trace
    #[arg(
        long,
        value_name = "LEVEL",
        hide_possible_values = true,
        env = "PLIMSOLL_LOG_LEVEL",
        default_value = "info"
    )]
    pub(crate) log_level: LogLevel,

    #[command(flatten)]
    pub(crate) tls: TlsSettings,

    #[command(flatten)]
    pub(crate) ftp: FtpSettings,

    #[command(flatten)]
    pub(crate) proxy: ProxySettings,

    #[command(flatten)]
    limits: LimitSettings,

    #[command(flatten)]
    pub(crate) lab: LabSettings,
}

#[derive(Args, Clone, Debug, PartialEq)]
#[command(next_help_heading = "Limits on the size and time of requests")]
struct LimitSettings {
    /// Bytes of a request's head
    #[arg(long, value_name = "SIZE", env = "PLIMSOLL_LIMITS_HEAD_BYTES", default_value = "16KiB")]
    #[arg(value_parser = size_within("1KiB", "63KiB"), hide_short_help = true)]
    limits_head_bytes: Size,

    /// Fields of a request's head
    #[arg(long, value_name = "COUNT", env = "PLIMSOLL_LIMITS_FIELDS", default_value = "64")]
    #[arg(value_parser = fields, hide_short_help = true)]
    limits_fields: usize,

    /// Bytes of a request's target
    #[arg(long, value_name = "SIZE", env = "PLIMSOLL_LIMITS_TARGET_BYTES", default_value = "8KiB")]
    #[arg(value_parser = size_within("256", "63KiB"), hide_short_help = true)]
    limits_target_bytes: Size,

    /// Bytes of a request's body: the largest file that can be uploaded
    #[arg(long, value_name = "SIZE", env = "PLIMSOLL_LIMITS_BODY_BYTES", default_value = "1TiB")]
    #[arg(value_parser = size_within("1KiB", "8388607TiB"), hide_short_help = true)]
    limits_body_bytes: Size,

    /// Time from the first to the last byte of a head
    #[arg(long, value_name = "TIME", env = "PLIMSOLL_LIMITS_HEAD_TIME", default_value = "15s")]
    #[arg(value_parser = time_within(SHORT, DAY), hide_short_help = true)]
    limits_head_time: Time,

    /// Time between two receives of a body
    #[arg(long, value_name = "TIME", env = "PLIMSOLL_LIMITS_RECEIVE_TIME", default_value = "30s")]
    #[arg(value_parser = time_within(SHORT, DAY), hide_short_help = true)]
    limits_receive_time: Time,

    /// Time for the whole body of a request without valid credentials, beside a second for each 500 bytes
    #[arg(long, value_name = "TIME", env = "PLIMSOLL_LIMITS_BODY_TIME", default_value = "20s")]
    #[arg(value_parser = time_within(SHORT, DAY), hide_short_help = true)]
    limits_body_time: Time,

    /// Time in which a client must take at least one byte of a response
    #[arg(long, value_name = "TIME", env = "PLIMSOLL_LIMITS_SEND_TIME", default_value = "30s")]
    #[arg(value_parser = time_within(SHORT, DAY), hide_short_help = true)]
    limits_send_time: Time,

    /// Time without a request on a keep-alive connection
    #[arg(long, value_name = "TIME", env = "PLIMSOLL_LIMITS_IDLE_TIME", default_value = "75s")]
    #[arg(value_parser = time_within(SHORT, DAY), hide_short_help = true)]
    limits_idle_time: Time,

    /// Time in which a client must close its side after the server has closed its own
    #[arg(long, value_name = "TIME", env = "PLIMSOLL_LIMITS_LINGER_TIME", default_value = "5s")]
    #[arg(value_parser = time_within(SHORT, DAY), hide_short_help = true)]
    limits_linger_time: Time,
}

/// Settings for a laboratory only. The help does not show them, and a server warns of each that is on
/// ([`super::Config::lab`]). Two more are fixed.
#[derive(Args, Clone, Debug, PartialEq)]
pub(crate) struct LabSettings {
    /// Hash passwords so fast that the hashes give no protection
    #[arg(long, env = "PLIMSOLL_LAB_FAST_PASSWORDS", default_value = "false", hide = true)]
    #[arg(action = ArgAction::Set)]
    pub(crate) lab_fast_passwords: bool,

    /// Allow any number of wrong passwords
    #[arg(long, env = "PLIMSOLL_LAB_NO_ATTEMPT_LIMITS", default_value = "false", hide = true)]
    #[arg(action = ArgAction::Set)]
    pub(crate) lab_no_attempt_limits: bool,

    /// Send each auth request on a connection of its own, and cache no response
    #[arg(long, env = "PLIMSOLL_LAB_CONNECT_EACH", default_value = "false", hide = true)]
    #[arg(action = ArgAction::Set)]
    pub(crate) lab_connect_each: bool,
}

/// The least receive and send timeouts of a storage server. They exceed a front's timeouts for its clients,
/// because relayed bytes move at the clients' pace.
const FRONTS_TIME: Time = Time(std::time::Duration::from_secs(600));
/// The least idle timeout of a front's connection; a front reuses one for up to a third of it.
const FRONTS_IDLE_TIME: Time = Time(std::time::Duration::from_secs(60));
/// The most bytes of a front's request head: paths and conditions as clients sent them, and more.
const FRONTS_HEAD_BYTES: Size = Size(63 * 1024);

impl Live {
    /// Adjusts the limits for a server whose clients are fronts.
    pub(crate) fn of_fronts(&mut self) {
        let limits = &mut self.limits;
        limits.limits_head_bytes = FRONTS_HEAD_BYTES;
        limits.limits_fields = HEAD_FIELDS_MAX;
        // The fronts limit the size of files.
        limits.limits_body_bytes = Size(u64::MAX);
        limits.limits_idle_time = limits.limits_idle_time.max(FRONTS_IDLE_TIME);
        limits.limits_receive_time = limits.limits_receive_time.max(FRONTS_TIME);
        limits.limits_send_time = limits.limits_send_time.max(FRONTS_TIME);
    }

    /// Returns the limits of HTTP connections.
    pub(crate) fn limits(&self) -> http::Limits {
        let limits = &self.limits;
        http::Limits {
            head: HeadLimits {
                bytes_max: limits.limits_head_bytes.in_memory(),
                fields_max: limits.limits_fields,
                target_bytes_max: limits.limits_target_bytes.in_memory(),
            },
            body_bytes_max: limits.limits_body_bytes.0,
            head_time: limits.limits_head_time.0,
            receive_time: limits.limits_receive_time.0,
            body_time: limits.limits_body_time.0,
            send_time: limits.limits_send_time.0,
            idle_time: limits.limits_idle_time.0,
            linger_time: limits.limits_linger_time.0,
        }
    }

    /// Returns the limits of FTP control connections. A head's time limit applies to a command line.
    pub(crate) fn ftp_limits(&self) -> ftp::Limits {
        let limits = &self.limits;
        ftp::Limits {
            line_time: limits.limits_head_time.0,
            idle_time: self.ftp.ftp_idle_time.0,
            receive_time: limits.limits_receive_time.0,
            send_time: limits.limits_send_time.0,
            linger_time: limits.limits_linger_time.0,
            file_bytes_max: limits.limits_body_bytes.0,
            ..ftp::Limits::default()
        }
    }

    /// Returns the limits of classic connections.
    pub(crate) fn classic_limits(&self) -> classic::Limits {
        let limits = &self.limits;
        classic::Limits {
            line_time: limits.limits_head_time.0,
            send_time: limits.limits_send_time.0,
            linger_time: limits.limits_linger_time.0,
        }
    }
}

fn fields(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=HEAD_FIELDS_MAX).contains(number));
    number.ok_or_else(|| format!("write a whole number from 1 to {HEAD_FIELDS_MAX}"))
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches as _};

    use super::*;

    #[test]
    fn the_default_limits_are_those_of_the_protocol() {
        let command = Live::augment_args(Command::new("test"));
        let live = Live::from_arg_matches(&command.get_matches_from(["test"])).unwrap();
        assert_eq!(format!("{:?}", live.limits()), format!("{:?}", http::Limits::default()));
        assert_eq!(format!("{:?}", live.ftp_limits()), format!("{:?}", ftp::Limits::default()));
        assert_eq!(format!("{:?}", live.classic_limits()), format!("{:?}", classic::Limits::default()));
        assert_eq!(live.ftp.ftp_ports.0, ftp::Ports::default());
    }
}
