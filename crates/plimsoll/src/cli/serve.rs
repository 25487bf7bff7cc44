//! `plimsoll serve`: the arguments, and the life cycle of the server.
//!
//! It does not assemble the parts ([`crate::assemble`] does). Invariants: all errors of the configuration
//! are found before the first connection. Each printed command can be typed.

use std::io::{IsTerminal as _, Write as _};

use anyhow::Context as _;
use clap::Args;
use plimsoll_cli::WrongUsage;
use plimsoll_io::Address;

use crate::assemble::Server;
use crate::cli::check::{CheckFlags, plan};
use crate::cli::greeting::greeting;
use crate::config::{Config, Configured, FtpTls, unknown_variables};
use crate::encryption;
use crate::exposure;
use crate::forked::{self, Role};
use crate::listening::{Addresses, Listening};
use crate::operator_log::{OperatorLog, warn_of_lab};
use crate::reloading::{self, Reloading};
use crate::sites::open_sites;
use crate::stopping;

/// Serve accounts and their files, and folders to anyone, over HTTP, FTP and classic
#[derive(Args)]
#[command(after_help = "Examples:
  plimsoll serve --data /srv/plimsoll
  plimsoll serve --data /srv/plimsoll --ftp :2121
  plimsoll serve --data /srv/plimsoll --https 0.0.0.0:443 --certificate cert.pem --key key.pem
  plimsoll serve --https :8443 --self-signed
  plimsoll serve --ftp 0.0.0.0:21 --ftp-tls require --certificate cert.pem --key key.pem
  plimsoll serve --site /=./public
  plimsoll serve --site /=./public --site /docs=./docs --http :8080 --http '[::1]:8080'
  plimsoll serve --site /=/srv/www --engine thread --access-log /var/log/plimsoll/access.log
  plimsoll serve --site /=./public --ftp :2121 --ftp-guests true
  plimsoll serve --config /etc/plimsoll/plimsoll.toml
  plimsoll serve --site /=./public --check

The server listens on loopback unless an address says otherwise: --http 0.0.0.0:8080
Every setting can be a flag, a variable in the environment, or a key of the file; the first counts.
SIGTERM, SIGINT, or q and Enter on a terminal let connections finish; a second signal ends at once.
SIGHUP reads the configuration again for new connections, and opens log files again. Certificates whose
files change are read again by themselves.")]
pub(crate) struct Serve {
    #[command(flatten)]
    configured: Configured,

    #[command(flatten)]
    checking: CheckFlags,
}

impl Serve {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if let Some(flag) = flag_of_proxy(std::env::args()) {
            let why = format!("{flag} is for a proxy, and this is none: see plimsoll proxy --help");
            return Err(WrongUsage(why).into());
        }
        let loaded = self.configured.load()?;
        if loaded.config.fixed.engine.forks() && !self.checking.check {
            return forked::serve(loaded, Role::Front, greet);
        }
        let config = &loaded.config;
        let log = OperatorLog::start(config.fixed.log_format, config.live.log_level);
        let log = log.context("cannot start the log")?;
        plimsoll_engine::check_kernel()?;
        config.fixed.engine.check()?;
        let sites = open_sites(config)?;
        if self.checking.check {
            encryption::check(config)?;
            check_logs(config)?;
            return self.checking.report(config, plan(config));
        }
        let listening = Listening::at(config)?;
        let server = Server::new(config, sites)?;
        let addresses = listening.addresses();
        stopping::watch(server.stop(), &addresses).context("cannot watch for signals")?;
        let (parts, level) = (Box::new(server.reloadable()), log.level());
        let status = reloading::status("serving", &addresses);
        Reloading { loaded: loaded.clone(), parts, level, status }.watch(server.stop())?;
        greet(config, &addresses)?;
        let served = server.serve(listening).context("the server ended early");
        log.finish();
        served
    }
}

/// Returns the first flag that only a proxy has a use for. In a file, which a proxy may share, such settings
/// are ignored.
fn flag_of_proxy(arguments: impl IntoIterator<Item = String>) -> Option<String> {
    let mut flags = arguments.into_iter().map(|argument| match argument.split_once('=') {
        Some((flag, _)) => flag.to_owned(),
        None => argument,
    });
    flags.find(|flag| flag.starts_with("--proxy-") && flag != "--proxy-protocol")
}

/// The transfer log is not checked, because its folder may not exist yet.
fn check_logs(config: &Config) -> anyhow::Result<()> {
    config.fixed.access_log.check_as("access-log")?;
    config.fixed.xferlog.check_as("xferlog")
}

fn greet(config: &Config, addresses: &Addresses) -> anyhow::Result<()> {
    warn_of_lab(&config.lab());
    exposure::warn(config);
    exposure::warn_of_plain_passwords(config);
    let may_be_in_clear = config.live.ftp.ftp_tls != FtpTls::Require;
    if may_be_in_clear && config.fixed.ftp.iter().any(|at| !at.ip().is_loopback()) {
        tracing::warn!("FTP sends files unencrypted, and listens beyond this machine");
    }
    if config.fixed.classic.iter().any(|at| matches!(at, Address::Ip(at) if !at.ip().is_loopback())) {
        tracing::warn!("classic sends files unencrypted, and listens beyond this machine");
    }
    for variable in unknown_variables() {
        tracing::warn!(variable, "a variable of the environment is ignored");
    }
    let greeting = greeting(config, addresses, std::io::stdin().is_terminal());
    std::io::stdout().lock().write_all(greeting.as_bytes()).context("cannot write to standard output")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_for_a_proxy_is_found_and_the_proxy_protocol_is_none() {
        let found =
            |arguments: &[&str]| flag_of_proxy(arguments.iter().map(|argument| (*argument).to_owned()));
        assert_eq!(found(&["plimsoll", "serve", "--proxy-protocol", "--proxy-protocol=http"]), None);
        for flag in ["--proxy-origin", "--proxy-cache-size"] {
            assert_eq!(found(&["plimsoll", "serve", flag, "x"]).as_deref(), Some(flag));
            assert_eq!(found(&["plimsoll", "serve", &format!("{flag}=x")]).as_deref(), Some(flag));
        }
    }
}
