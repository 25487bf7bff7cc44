//! The configuration: one plain value, from flags, environment, file and defaults.
//!
//! It acts on nothing. Every setting is declared once, as an argument of clap in [`fixed`] or [`live`]. Its
//! key in the file and its environment variable follow from its name. Invariants: a flag overrides the
//! environment, which overrides the file, which overrides the default. A configuration is never changed; a
//! reload builds a new one.

mod acme;
mod environment;
mod file;
mod fixed;
mod ftp;
mod live;
mod load;
mod proxy;
mod server_command;
mod sites;
mod tls;
mod values;
mod wrong_value;

pub(crate) use acme::AcmeSettings;
pub(crate) use environment::unknown_variables;
pub(crate) use fixed::Fixed;
pub(crate) use ftp::FtpTls;
pub(crate) use live::Live;
pub(crate) use load::Loaded;
pub(crate) use plimsoll_wire::units::{Size, Time};
pub(crate) use proxy::{CertificateFile, Channel, ForwardHost, HeaderVersion, Origin, ProxySettings};
pub(crate) use server_command::ServerCommand;
pub(crate) use sites::{CacheFlag, SiteFlag};
use tls::TlsSettings;
pub(crate) use values::{
    AcmeChallenge, AtMost, AuthAt, Durability, ENGINES, Links, LogFormat, LogLevel, PlainPasswords, Proxied,
    Relay, SignUp, StoreAt, TlsVersion, engine_name,
};

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use plimsoll_io::{Address, Network, Networks};
use plimsoll_proto::http::Cors;

/// All settings.
#[derive(Args, Clone, Debug, PartialEq)]
pub(crate) struct Config {
    #[command(flatten)]
    pub(crate) fixed: Fixed,
    #[command(flatten)]
    pub(crate) live: Live,
}

/// The arguments of a command that reads the configuration.
#[derive(Args, Clone, Debug)]
pub(crate) struct Configured {
    /// A configuration file in TOML, with the same names; packaging/plimsoll.toml has them all
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_CONFIG")]
    config: Option<PathBuf>,

    #[command(flatten)]
    settings: Config,
}

impl Config {
    /// Loads the configuration of `plimsoll serve`, for a command that works on its data.
    pub(crate) fn of_server(
        flags: impl IntoIterator<Item = OsString>,
        file: Option<PathBuf>,
    ) -> anyhow::Result<Config> {
        let typed = ["plimsoll", "serve"].map(OsString::from).into_iter().chain(flags).collect();
        Ok(load::load(ServerCommand::Serve, typed, file)?.config)
    }

    /// Returns the configuration of these arguments of `plimsoll serve`.
    #[cfg(test)]
    pub(crate) fn of(args: &[&str]) -> Config {
        Config::of_server(args.iter().map(OsString::from), None).unwrap()
    }

    /// Returns the keys of the laboratory settings that are on.
    pub(crate) fn lab(&self) -> Vec<&'static str> {
        let all = [
            ("lab.fast_passwords", self.live.lab.lab_fast_passwords),
            ("lab.no_attempt_limits", self.live.lab.lab_no_attempt_limits),
            ("lab.connect_each", self.live.lab.lab_connect_each),
            ("lab.sync_each", self.fixed.lab_sync_each),
            ("lab.hold_transfers", self.fixed.lab_hold_transfers > 0),
        ];
        all.into_iter().filter_map(|(key, is_on)| is_on.then_some(key)).collect()
    }

    /// Clears all listeners but HTTP's, and the proxies. For a server of one tier: only other servers are
    /// its clients.
    pub(crate) fn of_tier(&mut self) {
        let Config { fixed, live } = self;
        fixed.https.clear();
        live.tls.self_signed = false;
        if !live.tls.certificate.is_empty() || !live.tls.key.is_empty() || !live.tls.client_ca.is_empty() {
            // No other machine can read a Unix socket.
            let is_ip = |at: &Address| matches!(at, Address::Ip(_));
            (fixed.https, fixed.http) = fixed.http.drain(..).partition(is_ip);
        }
        fixed.ftp.clear();
        fixed.ftps.clear();
        fixed.classic.clear();
        fixed.channel.clear();
        fixed.metrics.clear();
        fixed.metrics_tls.clear();
        fixed.proxy_protocol.clear();
        live.site.clear();
        live.trusted_proxy.clear();
        live.cors_origin.clear();
    }

    /// Clears what encrypts connections of clients.
    pub(crate) fn without_tls(&mut self) {
        self.fixed.https.clear();
        self.fixed.acme.acme.clear();
        self.fixed.ftps.clear();
        self.fixed.metrics_tls.clear();
        self.live.tls = TlsSettings::default();
    }

    /// Returns the protocols that clients on other machines can log in over without encryption.
    pub(crate) fn plain_beyond_loopback(&self) -> Vec<&'static str> {
        let fixed = &self.fixed;
        let is_beyond = |at: &Address| matches!(at, Address::Ip(at) if !at.ip().is_loopback());
        let ftp =
            self.live.ftp.ftp_tls != FtpTls::Require && fixed.ftp.iter().any(|at| !at.ip().is_loopback());
        let all = [
            ("http", fixed.http.iter().any(is_beyond)),
            ("ftp", ftp),
            ("classic", fixed.classic.iter().any(is_beyond)),
        ];
        all.into_iter().filter_map(|(name, is_beyond)| is_beyond.then_some(name)).collect()
    }

    /// Returns whether every client may create an account.
    pub(crate) fn sign_up_is_open(&self) -> bool {
        self.live.signup == SignUp::Open
    }

    /// Whether accounts may make public links.
    pub(crate) fn has_links(&self) -> bool {
        self.live.links == Links::On
    }

    /// Returns the origins whose pages may read responses.
    pub(crate) fn cors(&self) -> Cors {
        Cors::new(self.live.cors_origin.iter().map(|flag| flag.0.clone()).collect())
    }

    /// Returns the proxies that are trusted to name their clients.
    pub(crate) fn proxies(&self) -> Networks {
        Networks::from(self.live.trusted_proxy.clone())
    }

    /// Returns these, and the peers of another network.
    pub(crate) fn proxies_and(&self, network: Network) -> Networks {
        Networks::from([&self.live.trusted_proxy[..], &[network]].concat())
    }
}
