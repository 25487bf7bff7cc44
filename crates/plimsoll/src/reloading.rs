//! SIGHUP: the configuration is read again, and log files are opened again.
//!
//! It does not know what a configuration changes ([`crate::assemble`] does). What must hold: a configuration
//! that is wrong changes nothing and is told with its line; connections that are open notice nothing.

use std::io::{self, IsTerminal as _};

use anyhow::Context as _;
use plimsoll_io::Stop;
use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;

use crate::config::{Config, Loaded};
use crate::listening::Addresses;
use crate::operator_log::{Level, warn_of_lab};
use crate::service_manager;

/// What of a server that runs can be replaced.
pub(crate) trait Replace: Send {
    /// Puts what a reload may change into effect, all of it or nothing.
    fn apply(&self, config: &Config) -> anyhow::Result<()>;

    /// Opens the files of the logs again, which may have been moved away.
    fn reopen_logs(&self);
}

/// A server that runs, and what it was started with.
pub(crate) struct Reloading {
    pub(crate) loaded: Loaded,
    pub(crate) parts: Box<dyn Replace>,
    pub(crate) level: Level,
    /// What the service manager is told of the server.
    pub(crate) status: String,
}

/// What the service manager is told of a server: what it does, and where.
pub(crate) fn status(does: &str, addresses: &Addresses) -> String {
    format!("{does} at {}", addresses.urls().join(", "))
}

impl Reloading {
    /// Watches for the signal, on a thread of its own, and tells the service manager that the server is
    /// ready: it may ask for a reload from then on. A terminal that goes away sends the signal too: who was
    /// started on one ends with it.
    pub(crate) fn watch(self, stop: &Stop) -> anyhow::Result<()> {
        let status = self.status.clone();
        self.watch_apart(stop.clone()).context("cannot watch for signals")?;
        service_manager::ready(&status);
        Ok(())
    }

    fn watch_apart(mut self, stop: Stop) -> io::Result<()> {
        let mut signals = Signals::new([SIGHUP])?;
        let on_terminal = io::stdin().is_terminal();
        std::thread::Builder::new().name("reload".to_owned()).spawn(move || {
            for _ in signals.forever() {
                if on_terminal && !io::stdin().is_terminal() {
                    tracing::info!("the terminal is gone; stopping");
                    stop.order();
                } else {
                    self.reload();
                }
            }
        })?;
        Ok(())
    }

    fn reload(&mut self) {
        service_manager::reloading();
        self.parts.reopen_logs();
        match self.read_again() {
            Ok(()) => tracing::info!("the configuration was reloaded; new connections have it"),
            Err(error) => {
                let error = format!("{error:#}");
                tracing::error!(error, "nothing was reloaded; the server goes on as it was");
            }
        }
        service_manager::ready(&self.status);
    }

    fn read_again(&mut self) -> anyhow::Result<()> {
        let mut new = self.loaded.again()?;
        let kept = self.loaded.changes_of_fixed(&new);
        if !kept.is_empty() {
            tracing::warn!(settings = kept.join(", "), "these need a restart and stay as they were");
        }
        new.config.fixed = self.loaded.config.fixed.clone();
        self.parts.apply(&new.config)?;
        self.level.set(new.config.live.log_level);
        warn_of_lab(&new.config.lab());
        self.loaded.config = new.config;
        Ok(())
    }
}
