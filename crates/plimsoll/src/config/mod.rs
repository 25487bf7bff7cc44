//! The configuration: one plain value, made from flags, environment, file and defaults.
//!
//! It does nothing but say what the operator wants. Every setting is declared once, as an argument of clap's
//! in [`fixed`] or [`live`]; its key in the file and its variable in the environment follow from its name.
//! What must hold: a flag counts more than the environment, that more than the file, that more than the
//! default; a configuration never changes, a reload makes another one.

mod environment;
mod file;
mod fixed;
mod ftp;
mod live;
mod load;
mod nearest;
mod sites;
mod units;
mod values;

pub(crate) use environment::unknown_variables;
pub(crate) use fixed::Fixed;
pub(crate) use live::Live;
pub(crate) use load::Loaded;
pub(crate) use sites::SiteFlag;
pub(crate) use units::{Size, Time};
pub(crate) use values::{
    AtMost, AuthAt, Durability, ENGINES, LogFormat, LogLevel, Proxied, Relay, SignUp, StoreAt, engine_name,
};

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use plimsoll_io::Networks;

/// What the operator wants.
#[derive(Args, Clone, Debug, PartialEq)]
pub(crate) struct Config {
    #[command(flatten)]
    pub(crate) fixed: Fixed,
    #[command(flatten)]
    pub(crate) live: Live,
}

/// What a command takes that reads the configuration.
#[derive(Args, Clone, Debug)]
pub(crate) struct Configured {
    /// A file of settings in TOML, with the same names; packaging/plimsoll.toml has them all
    #[arg(long, value_name = "FILE", env = "PLIMSOLL_CONFIG")]
    config: Option<PathBuf>,

    #[command(flatten)]
    settings: Config,
}

impl Config {
    /// What `plimsoll serve` makes of these flags, a file and the environment: for who works on its data.
    pub(crate) fn of_server(
        flags: impl IntoIterator<Item = OsString>,
        file: Option<PathBuf>,
    ) -> anyhow::Result<Config> {
        let typed = ["plimsoll", "serve"].map(OsString::from).into_iter().chain(flags).collect();
        Ok(load::load(typed, file)?.config)
    }

    /// What these arguments of `plimsoll serve` make.
    #[cfg(test)]
    pub(crate) fn of(args: &[&str]) -> Config {
        Config::of_server(args.iter().map(OsString::from), None).unwrap()
    }

    /// The settings of a laboratory that are on, by their keys.
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

    /// Leaves HTTP alone to listen at, without proxies: for a server of one tier, to which only other servers
    /// connect.
    pub(crate) fn of_tier(&mut self) {
        let Config { fixed, live } = self;
        fixed.ftp.clear();
        fixed.classic.clear();
        fixed.metrics.clear();
        fixed.proxy_protocol.clear();
        live.site.clear();
        live.trusted_proxy.clear();
    }

    /// Whether every client may make an account.
    pub(crate) fn sign_up_is_open(&self) -> bool {
        self.live.signup == SignUp::Open
    }

    /// The peers that are believed when they name their clients.
    pub(crate) fn proxies(&self) -> Networks {
        Networks::from(self.live.trusted_proxy.clone())
    }
}
